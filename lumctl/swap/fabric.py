"""Programming the jobs' circuits onto the meshes: on day one, after a repair, and when a simulator comes up."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from lumctl.change import apply
from lumctl.change.engine import RunResult
from lumctl.change.light import LightProof
from lumctl.change.plan import Do, Plan, from_document
from lumctl.fabric import circuit_losses
from lumctl.inventory.lane_orders import PREFIX, is_order, jobs_in
from lumctl.inventory.model import Evidence, Inventory
from lumctl.inventory.switching import own_cells
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, initial_assignment
from lumctl.site import Site
from lumctl.swap.budgets import States
from lumctl.swap.lightpaths import LightPaths, light_paths, with_rewritten
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
    # Who is placed as written uses the lanes as written, whatever the store says, be it of lanes that are no more.
    stored = site.store(rack).assignment()
    after |= {name: () for name in stored if is_order(name) and placement is not None}
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
        dark = _left_dark(inventory, before, after, paths)
        for lane in dark:
            steps.transmit(lane, enabled=True, required=True)
        for lane in _put_out_by_open_runs(site, rack, paths):
            if lane not in dark:
                steps.transmit(lane, enabled=True, required=False)
        steps.program(paths.writes)
        steps.verify([*(c.id for c in paths.add), *(c.id for c in unsound)], kept)
        steps.confirm(with_timer(site, paths))
    moved = {job: after[job] for job in jobs if stored.get(job) != after[job]}
    moved |= {name: after[name] for name, lanes in stored.items() if is_order(name) and after[name] != lanes}
    if moved:
        steps.assign({name: before.get(name, ()) for name in moved}, moved)
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


def _left_dark(inventory: Inventory, before: Assignment, after: Assignment, paths: LightPaths) -> list[str]:
    """The transmitters that a swap may have darkened, of what comes back into use."""
    back = {a for job, ranks in jobs_in(after).items() for a in ranks if a not in before[job]}
    back |= {name.removeprefix(PREFIX) for name, lanes in after.items() if is_order(name) and before.get(name) != lanes}
    ends = dict.fromkeys(str(end["lane"]) for circuit in paths.add for end in circuit.ends)
    return [lane for lane in ends if inventory.transponders[lane].accelerator in back]


def _put_out_by_open_runs(site: Site, rack: str, paths: LightPaths) -> list[str]:
    """The transmitters that runs which were cut or left half done may have darkened, of what is to carry light."""
    store, out = site.store(rack), set[str]()
    for run in store.unfinished(now=site.now()):
        steps = from_document(store.run(run).plan).steps
        out |= {step.data["transponder"] for step in steps if step.do is Do.TRANSMIT and not step.data["enabled"]}
    ends = dict.fromkeys(str(end["lane"]) for circuit in paths.add for end in circuit.ends)
    return [lane for lane in ends if lane in out]


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
