"""Jobs must be quiet before their light moves: paused by their hook, or stopped as an operator confirms."""

from collections.abc import Iterator, Sequence

from lumctl.change.circuits import placed_by
from lumctl.change.foreign_circuits import way_of
from lumctl.change.plan import Do, Plan, Step, only_adopts, programmed
from lumctl.change.rollback_check import takes_back
from lumctl.errors import RefusedError
from lumctl.inventory.wiring import circuits_of
from lumctl.jobs import by_hand
from lumctl.site import Site
from lumctl.store.records import OPEN

FABRIC = "fabric"
"""The kind of plans that may find no job at work: a fabric is written where it is commissioned or mended."""


def to_be_stopped(site: Site, plan: Plan, left: Sequence[Step] | None = None) -> tuple[str, ...]:
    """The jobs whose light a plan moves and that only a person can stop; ``left`` is what is to be done of it yet.

    There are none on a simulator, where no job runs; none where a run that was cut or left half done is taken back:
    what is broken is mended first; none where nothing is left but that jobs go on; none where it is only written down
    where jobs run; and none for a plan that was made for another target, which is refused as that. A fabric that is
    written concerns the jobs whose light is there.

    Raises:
        StoreError: the store cannot be read.
    """
    if plan.target != site.target or _mends(site, plan) or only_adopts(plan):
        return ()
    if left is not None and all(step.resumes_job for step in left):
        return ()
    if plan.kind == FABRIC and not plan.replacements:
        return by_hand(site.inventory, site.target, dict.fromkeys(_disturbed(site, plan)))
    moved = [circuit.owner for circuit in (*plan.remove, *plan.add)]
    placed = [job for step in plan.steps if step.do is Do.ASSIGN for job in step.data["assignment"]]
    return by_hand(site.inventory, site.target, dict.fromkeys((*moved, *placed)))


def require_stopped(site: Site, plan: Plan, said_by: str | None, left: Sequence[Step] | None = None) -> dict[str, str]:
    """Require that somebody has said that such jobs are stopped; gives what the journal keeps of that.

    Raises:
        RefusedError: nobody has.
    """
    jobs = to_be_stopped(site, plan, left)
    if not jobs:
        return {}
    if said_by is None:
        raise RefusedError(must_be_stopped(jobs), hint=HINT)
    return {"stopped": ", ".join(jobs), "by": said_by}


HINT = "stop it and say so: --job-is-stopped; or name its `hook:` in the inventory, or `needs_no_pause: true`"


def must_be_stopped(jobs: Sequence[str]) -> str:
    """What a person has to see to, in words."""
    if len(jobs) == 1:
        return f"job {jobs[0]} has no hook; it must be stopped before its light moves"
    return f"jobs {', '.join(jobs)} have no hook; they must be stopped before their light moves"


def _disturbed(site: Site, plan: Plan) -> Iterator[str]:
    """The jobs that a fabric takes light away from, or puts elsewhere, by the plan and by what our record shows.

    What stands by the record and is planned anew goes dark meanwhile; what a plan says of its cells is no proof.
    """
    yield from (circuit.owner for circuit in plan.remove)
    anew = {circuit.id for circuit in plan.add}
    written: dict[str, dict[int, str]] = {}
    for change in programmed(plan.steps):
        written.setdefault(change.device, {})[change.puc] = change.after
    for circuit in circuits_of(site.inventory, site.assignment(sound=False)) if written else ():
        if circuit.device not in written:
            continue
        held = site.known_cells(circuit.device)
        way = way_of(site, circuit, held) if held else ()
        if way and (circuit.id in anew or way != way_of(site, circuit, {**held, **written[circuit.device]})):
            yield circuit.owner
    stored = site.store(plan.rack).assignment()
    for step in plan.steps:
        if step.do is Do.ASSIGN:
            placed = placed_by(step.data["assignment"])
            yield from (job for job, ranks in placed.items() if stored.get(job, ranks) != ranks)


def _mends(site: Site, plan: Plan) -> bool:
    """A plan is a file: what it says of itself is no proof."""
    return takes_back(site, plan) and site.store(plan.rack).run(str(plan.undoes)).state in OPEN
