"""Programming the jobs' circuits onto the meshes: on day one, after a repair, and when a simulator comes up."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from lumctl.change import apply
from lumctl.change.engine import RunResult
from lumctl.change.light import LightProof
from lumctl.change.plan import Plan
from lumctl.fabric import circuit_losses
from lumctl.inventory.model import Evidence
from lumctl.inventory.switching import own_cells
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, initial_assignment
from lumctl.site import Site
from lumctl.swap.budgets import States
from lumctl.swap.lightpaths import light_paths, with_rewritten
from lumctl.swap.planning import start_of, with_timer
from lumctl.swap.steps import StepList


def plan_fabric(
    site: Site, rack: str, *, rewrite: bool = False, placement: Assignment | None = None, forget: bool = False
) -> Plan:
    """Plan to program whatever circuits the jobs of a rack need and its meshes do not carry.

    Where the record says that a circuit stands and the light does not, all cells of its mesh are written again as
    recorded: a controller may have restarted, or somebody may have changed them.

    A mesh whose states are not certain, or every mesh with ``rewrite``, is routed afresh and written whole: that
    darkens what it carries for as long as it takes. ``placement`` is put in force with it; unless given, jobs stay
    where they run now. ``forget`` passes over the record of what the meshes hold.
    """
    inventory = site.inventory
    jobs = [job.name for job in inventory.jobs.values() if job.rack == rack]
    before = site.assignment(sound=placement is None)
    after = {**before, **(placement or {})}
    here = [d for d in inventory.devices.values() if d.rack == rack and own_cells(inventory, d)]
    states: dict[str, States] = {d.id: {} if forget else site.known_cells(d.id) for d in here}
    afresh = frozenset(device for device in states if rewrite or not states[device])
    wanted = [c for c in circuits_of(inventory, after) if c.owner in jobs]
    carried = _carried(site, {d: held for d, held in states.items() if d not in afresh}, wanted)
    paths = light_paths(inventory, carried, wanted, states, rewrite=afresh)
    unsound = _unsound(site, carried)
    paths = with_rewritten(paths, {c.device: states[c.device] for c in unsound})
    steps = StepList(inventory)
    kept = [c.id for c in carried if paths.writes.get(c.device) and c not in unsound]
    if any(paths.writes.values()):
        steps.check([], kept=kept, replaced=[c.id for c in paths.remove])
        steps.program(paths.writes)
        steps.verify([*(c.id for c in paths.add), *(c.id for c in unsound)], kept)
        steps.confirm(with_timer(site, paths))
    moved = {job: after[job] for job in jobs if site.store(rack).assignment().get(job) != after[job]}
    if moved:
        steps.assign({job: before[job] for job in moved}, moved)
    pinned = start_of({job: before[job] for job in jobs}, states, paths)
    return Plan(
        kind="fabric",
        title=f"program {len(paths.add)} circuits of {rack}" + (f", and {len(unsound)} again" if unsound else ""),
        rack=rack,
        target=site.target,
        created_at=site.now(),
        inventory_digest=inventory.digest,
        start=replace(
            pinned,
            crosses={d: pucs for d, pucs in pinned.crosses.items() if d not in afresh},
            joins={d: joins for d, joins in pinned.joins.items() if d not in afresh},
        ),
        add=paths.add,
        remove=paths.remove,
        keep=paths.keep,
        changes=tuple(change for cells in paths.writes.values() for change in cells),
        steps=tuple(steps.steps),
        warnings=tuple(f"{device} is written whole: all it carries goes dark meanwhile" for device in sorted(afresh)),
    ).sealed()


def commission(site: Site, *, progress: Callable[[str], None] | None = None) -> list[RunResult]:
    """Bring a simulator that has just come up to where a running rack is: jobs placed and their circuits proved.

    A fresh simulator holds nothing of what an earlier one held, so its store's record is overwritten, by a run like
    any other.
    """
    results = []
    for rack in site.inventory.racks:
        jobs = {job.name for job in site.inventory.jobs.values() if job.rack == rack}
        placement = {job: ranks for job, ranks in initial_assignment(site.inventory).items() if job in jobs}
        plan = plan_fabric(site, rack, placement=placement, forget=True)
        results.append(apply(site, plan, progress=progress) if progress else apply(site, plan))
    return results


def _unsound(site: Site, carried: Iterable[Circuit]) -> list[Circuit]:
    """The circuits that stand by the record, and whose receivers do not hear whom they should."""
    lanes = site.inventory.transponders
    telling = [c for c in carried if all(lanes[r].verify[0] is Evidence.LLDP for r, _ in c.receivers)]
    if not telling:
        return []
    heard = LightProof(site.inventory, site.fleet, site.devices, now=site.now).sound(telling)
    return [c for c in telling if any(heard.get(receiver) != meant for receiver, meant in c.receivers)]


def _carried(site: Site, states: dict[str, States], wanted: Iterable[Circuit]) -> list[Circuit]:
    """The wanted circuits that the known states of the meshes already make."""
    carried: list[Circuit] = []
    for device, held in states.items():
        if held:
            here = [c for c in wanted if c.device == device]
            made = circuit_losses(site.inventory.devices[device], held, here)
            carried += [c for c in here if c.id in made]
    return carried
