"""The request for a swap: accelerators, hosts and jobs by name, checked against the present assignment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lumctl.change import Plan
from lumctl.context import Context, Observation
from lumctl.errors import RefusedError, UsageError
from lumctl.health.observation import place_of
from lumctl.health.replaced_faults import unproven
from lumctl.health.states import State
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import require_known
from lumctl.inventory.wiring import Assignment, initial_assignment
from lumctl.printable import counted
from lumctl.swap.groups import with_tied

_SEE_ALL = "see: lumctl status -o wide"


@dataclass(frozen=True, slots=True)
class SwapRequest:
    """The accelerators to replace, and the jobs whose ranks they run. ``hosts`` are those that were given as a whole.

    ``tied`` are accelerators that were not given, each with the given one that it is tied to.
    """

    failed: tuple[str, ...]
    jobs: tuple[str, ...]
    rack: str
    hosts: frozenset[str] = frozenset()
    tied: Mapping[str, str] = field(default_factory=dict)


def parse_request(
    inventory: Inventory, placed: Assignment, job: str | None, failed: Sequence[str], spares: Sequence[str]
) -> SwapRequest:
    """Parse the words of a request. A host means all its accelerators that run ranks (of ``job``, if it is given).

    Raises:
        UsageError: a name is unknown, an accelerator runs no rank, several racks are named, or numbers do not match.
    """
    if job is not None:
        require_job(inventory, job)
    if not failed:
        raise UsageError("no failed accelerator was given", hint="--failed ACCELERATOR[,ACCELERATOR...]")
    names: list[str] = []
    for word in failed:
        names += _accelerators(inventory, placed, job, word)
    require_known("accelerator", spares, inventory.accelerators)
    for accelerator in names:
        _require_place(inventory, placed, job, accelerator)
    for what, words in (("--failed", names), ("--spare", spares)):
        if len(set(words)) != len(words):
            raise UsageError(f"an accelerator is given twice after {what}")
    found = with_tied(inventory, placed, names)
    names, tied = list(found), {name: to for name, to in found.items() if to is not None}
    if spares and len(spares) != len(names):
        those = f" ({', '.join(names)}: they are tied)" if tied else ""
        raise UsageError(
            f"{counted(len(names), 'accelerators')} failed{those}, but {len(spares)} "
            f"spare{' is' if len(spares) == 1 else 's are'} given"
        )
    places = [place_of(placed, accelerator) for accelerator in names]
    jobs = tuple(dict.fromkeys(place[0] for place in places if place))
    return SwapRequest(
        tuple(names), jobs, _one_rack(inventory, names), frozenset(w for w in failed if w in inventory.hosts), tied
    )


def require_job(inventory: Inventory, job: str) -> None:
    """Refuse an unknown job. If an accelerator or a host was named instead, the hint gives the right command.

    Raises:
        UsageError: there is no job of that name.
    """
    if job in inventory.jobs:
        return
    if job in inventory.accelerators or job in inventory.hosts:
        what = "an accelerator" if job in inventory.accelerators else "a host"
        raise UsageError(f"{job} is {what}, not a job", hint=f"lumctl swap plan --failed {job}")
    require_known("job", [job], inventory.jobs)


def require_trouble(seen: Observation, asked: SwapRequest) -> None:
    """Refuse to replace an accelerator that is ok: a dead process is not a dead GPU.

    Raises:
        RefusedError: an accelerator is ok, and so is its host if the host was named.
    """
    for accelerator in asked.failed:
        host = seen.inventory.accelerators[accelerator].host
        judged = seen.report.hosts.get(host)
        if host in asked.hosts and judged is not None and judged.state is not State.OK:
            continue
        if seen.in_trouble(asked.tied.get(accelerator, accelerator)):
            continue
        if not seen.in_trouble(accelerator):
            ill = [other for other in asked.failed if seen.in_trouble(other)]
            only = f", or give those that are not: --failed {','.join(ill)}" if ill else ""
            if (cause := seen.cause_elsewhere(accelerator)) is not None:
                raise RefusedError(
                    f"{accelerator} is not the faulty component: the cause is {cause.cause} ({cause.evidence})",
                    hint=f"{cause.words}; to replace {accelerator} nevertheless, add --even-if-healthy",
                )
            raise RefusedError(
                f"{accelerator} was read just now and is ok: the job can restart on it in place",
                hint=f"to replace it nevertheless, add --even-if-healthy{only}",
            )


def require_trouble_still(context: Context, plan: Plan) -> None:
    """Refuse a plan that has become old if readings show that its fault is gone: it would take a spare for nothing.

    The reading from which a younger plan was made is not yet stale. A plan that takes ranks home is not refused.

    Raises:
        RefusedError: a fault because of which the plan was made is gone.
    """
    inventory = context.inventory
    if plan.even_if_healthy or context.now() - plan.created_at <= inventory.thresholds.stale_after_s:
        return
    home = initial_assignment(inventory)
    away = [each.failed for each in plan.replacements if place_of(home, each.spare) != (each.job, each.rank)]
    faulty = [name for name in away if any(fault.accelerator == name for fault in plan.faults)]
    if not faulty:
        return
    seen = context.observe()
    lasting = {fault.accelerator for fault in unproven(seen.report, plan.faults)}
    ill = [name for name in faulty if name in lasting or seen.in_trouble(name)]
    if well := [name for name in faulty if name not in ill]:
        verb = "is" if len(well) == 1 else "are"
        raise RefusedError(
            f"{', '.join(well)} {verb} ok by now: the fault for which {plan.id} was made is gone",
            hint=f"plan again for what is not: lumctl swap plan --failed {','.join(ill)}"
            if ill
            else f"to replace it nevertheless: lumctl swap plan --failed {','.join(well)} --even-if-healthy",
        )


def _accelerators(inventory: Inventory, placed: Assignment, job: str | None, word: str) -> list[str]:
    if word in inventory.accelerators:
        return [word]
    require_known("accelerator", [word], [*inventory.accelerators, *inventory.hosts])
    here = [a.id for a in inventory.accelerators_of(word)]
    found = [a for a in here if (place := place_of(placed, a)) and job in {None, place[0]}]
    if not found:
        raise UsageError(
            f"no accelerator of host {word} runs a rank of {job or 'any job'}",
            hint=f"it has {', '.join(here)}" if here else None,
        )
    return found


def _require_place(inventory: Inventory, placed: Assignment, job: str | None, accelerator: str) -> None:
    place = place_of(placed, accelerator)
    if place is None and job is None:
        role = inventory.accelerators[accelerator].role
        raise UsageError(
            f"{accelerator} runs no rank of any job (in the inventory it is {role})", hint="lumctl job list"
        )
    if job is not None and (place is None or place[0] != job):
        where = f"see: lumctl job show {job}"
        if place is not None:
            where = f"it runs rank {place[1]} of {place[0]}: give that job, or none"
        raise UsageError(f"{accelerator} is not used by {job}", hint=where)


def _one_rack(inventory: Inventory, names: Iterable[str]) -> str:
    by_rack: dict[str, list[str]] = {}
    for name in names:
        by_rack.setdefault(inventory.accelerators[name].rack, []).append(name)
    if len(by_rack) == 1:
        return next(iter(by_rack))
    each = "; ".join(f"lumctl swap plan --failed {','.join(here)}" for here in by_rack.values())
    raise UsageError(
        f"the accelerators are in {len(by_rack)} racks ({', '.join(sorted(by_rack))}): a plan is for one rack",
        hint=each,
    )
