"""Program the jobs' circuits onto meshes and switches: at commissioning, after a repair, when a simulator starts."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from lumctl.change import apply
from lumctl.change.engine import RunResult
from lumctl.change.live_paths import (
    Ends,
    cut_by,
    dark_transmitters,
    hear,
    idle_transmitters,
    live_paths,
    path_ends,
    require_agreed,
    unrecorded,
    with_powers,
)
from lumctl.change.plan import Cut, Plan, from_document
from lumctl.context import Context
from lumctl.devices.errors import DeviceError
from lumctl.errors import LumctlError, RefusedError, RunError, UsageError
from lumctl.fabric import FabricStates
from lumctl.inventory.model import Evidence, Inventory
from lumctl.inventory.phase_records import is_phase, without_permits
from lumctl.inventory.slice_records import is_job, shape_of
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, initial_assignment, is_order
from lumctl.swap.adoption import Shown, shown_by
from lumctl.swap.device_states import DeviceStates, cells_to_plan_on
from lumctl.swap.draft import start_of, with_timer
from lumctl.swap.light_paths import LightPaths, planned_circuits, with_rewritten
from lumctl.swap.path_routing import light_paths
from lumctl.swap.steps import StepList

Failed = Callable[[str, str], object]
"""Called with a device that could not be programmed, the reason, and the plug-in of its driver."""


@dataclass(frozen=True)
class _Light:
    """The light of a rack before planning: which transmitters receivers hear, and which must be switched."""

    heard: Mapping[str, str]
    dark: tuple[str, ...] = ()
    """Transmitters that are off although a circuit needs them."""
    idle: tuple[str, ...] = ()
    """Transmitters that are on although their accelerator was replaced."""


def plan_fabric(
    context: Context,
    rack: str,
    *,
    rewrite: bool = False,
    placement: Assignment | None = None,
    forget: bool = False,
    cut: Collection[str] = (),
    only: frozenset[str] | None = None,
) -> Plan:
    """Plan to program a rack as recorded: the circuits that its jobs need, and their transmitters.

    If the record has a circuit that the light does not show, all cells of its mesh are written again as recorded: a
    controller may have restarted, or another user may have changed them. If only the transmitter of a circuit is off,
    no cell is written: the transmitter is switched on. Transmitters of replaced accelerators are switched off.

    A device that can be read is planned from its own states, if they differ from the record. A mesh that cannot be
    read and is uncertain, and every device with ``rewrite``, is routed from scratch and written as a whole: its
    circuits are dark meanwhile, and with ``rewrite`` a running job that changes its phases must prove them again.
    ``placement`` becomes active with the plan; by default jobs stay where they are.
    ``forget`` ignores the record and the light, for a simulator that has just started. ``only`` names the meshes and
    switches to plan for; the default is all of the rack.

    The plan lists the light paths that it cuts; ``cut`` names ports of paths without a job that may be cut.

    Raises:
        RefusedError: the light shows that jobs run elsewhere than recorded.
        DeviceError: a readable device does not answer.
    """
    inventory = context.inventory
    jobs = [job.name for job in inventory.jobs.values() if job.rack == rack]
    # A given placement replaces the stored one, which may name what the inventory no longer has.
    before = context.assignment(sound=placement is None)
    after = {**before, **(placement or {})}
    # Jobs placed as in the inventory use its lanes too, even if the store records others, which may no longer exist.
    stored = context.store(rack).fabric.assignment()
    after |= {name: () for name in stored if (is_order(name) or is_phase(name)) and placement is not None}
    cells = cells_to_plan_on(context, rack, rewrite=rewrite, forget=forget, only=only)
    here, wanted = (
        [c for c in circuits_of(inventory, placed) if c.owner in jobs and (only is None or set(c.devices) <= only)]
        for placed in (before, after)
    )
    held = FabricStates(inventory, {d: s for d, s in cells.states.items() if d not in cells.afresh})
    carried = [circuit for circuit in wanted if held.path_of(circuit) is not None]
    # Those of the earlier placement give way: a switch has one connection at each port.
    left = [circuit for circuit in here if circuit not in wanted and held.path_of(circuit) is not None]
    light = _Light({}) if forget else _light(context, rack, cells, wanted, carried, after)
    unsound = [] if forget else _unsound(inventory, carried, light)
    relit = [c for c in carried if c not in unsound and _needs(c, light.dark)]
    missing = [c for c in wanted if cells.whole.isdisjoint(c.devices) and c not in carried]
    if (unsound or relit or missing) and placement is None and not cut:
        _require_here(context, rack, light.heard, before)
    paths, written = _light_paths(context, cells, wanted, carried, left, _devices_of(held, unsound))
    standing = _standing(cells, wanted, light)
    cuts = () if forget else _cuts(context, rack, cells, written, light.heard, cut)
    steps, moved = StepList(inventory), _moved(jobs, stored, after)
    if rewrite:  # a running job that changes its phases must prove them again on devices that were written as a whole
        moved |= without_permits(before, dict.fromkeys(circuit.owner for circuit in wanted))
    written_now = {device for device, changes in paths.writes.items() if changes}
    # Circuits on devices that are not written cannot be disturbed: they need no proof.
    kept = [
        circuit.id
        for circuit in carried
        if circuit not in unsound and circuit not in relit and written_now & _devices_of(held, [circuit])
    ]
    if any(paths.writes.values()) or light.dark or light.idle:
        replaced = dict.fromkeys([*(c.id for c in paths.remove), *(c.id for c in (*standing, *relit))])
        steps.check([], kept=kept, replaced=list(replaced))
        for lane in light.dark:
            steps.transmit(lane, enabled=True, required=True)
        for lane in light.idle:
            steps.transmit(lane, enabled=False, required=False)
        steps.program(paths.writes)
        proved = dict.fromkeys([*(c.id for c in paths.add), *(c.id for c in (*unsound, *relit))])
        if proved or kept:
            steps.verify(list(proved), kept)
        steps.confirm(with_timer(context, paths))
    if moved:
        steps.assign({name: before.get(name, ()) for name in moved}, moved)
    pinned = start_of({job: before[job] for job in jobs}, cells.states, paths, beside=before)
    return Plan(
        kind="fabric",
        title=_title(rack, paths, len(unsound), light),
        rack=rack,
        target=context.target,
        created_at=context.now(),
        inventory_digest=inventory.digest,
        start=replace(
            pinned,
            crosses={d: pucs for d, pucs in pinned.crosses.items() if d not in cells.whole},
            joins={d: joins for d, joins in pinned.joins.items() if d not in cells.whole},
        ),
        add=paths.add,
        remove=(*paths.remove, *planned_circuits(inventory, standing, {})),
        keep=paths.keep,
        changes=tuple(change for changes in paths.writes.values() for change in changes),
        steps=tuple(steps.steps),
        warnings=tuple(
            f"all cells of {device} are written: all its circuits are dark meanwhile" for device in sorted(cells.afresh)
        ),
        cuts=cuts,
    ).sealed()


def require_cuts_agreed(context: Context, plan: Plan, command: str) -> None:
    """Refuse a plan that cuts light paths which no operator has named.

    ``command`` is the command that made the plan; an operator agrees to the cuts by adding ``--cut``. If a device has
    no record and the light shows a job elsewhere, that is the reason to refuse.

    Raises:
        RefusedError: there are such paths; the hint is the command that adopts the shown placement, or names the ports.
    """
    if any(cut.needs_word for cut in plan.cuts) and unrecorded(context, plan.rack):
        heard = hear(context, [device.id for device in context.inventory.light_devices if device.rack == plan.rack])
        _require_here(context, plan.rack, heard, context.assignment(sound=False))
    require_agreed(plan.cuts, command)


def commission(
    context: Context,
    *,
    progress: Callable[[str], None] | None = None,
    without: Collection[str] = (),
    failed: Failed | None = None,
) -> list[RunResult]:
    """Bring a simulator that has just started to the state of a running rack: jobs placed and their circuits proved.

    A fresh simulator has none of the states of an earlier one, so its store's record is overwritten, by a run like any
    other. The devices in ``without`` are left as they started.

    A device whose driver does not come with lumctl has a run of its own, so that undoing that run costs no other device
    its circuits. Such a device that cannot be programmed is reported to ``failed`` with the reason and left as it
    started.

    Raises:
        LumctlError: a device cannot be programmed, and there is no ``failed``; or lumctl's own drivers fail.
    """
    results: list[RunResult] = []
    context.assignment(sound=False)  # reads which slices an earlier simulator had
    for rack in context.inventory.racks:
        jobs = {job.name for job in context.inventory.jobs.values() if job.rack == rack}
        placement = {job: ranks for job, ranks in initial_assignment(context.inventory).items() if job in jobs}
        for job in jobs:
            if context.inventory.jobs[job].is_slice:  # it ended with the simulator that it ran on
                placement |= {job: (), shape_of(job): ()}
        plan_of = partial(plan_fabric, context, rack, placement=placement, forget=True)
        before, groups = len(results), _groups(context, rack, without) or [()]
        while groups:
            group = groups.pop(0)
            try:
                plan = plan_of(only=frozenset(group))
            except DeviceError as error:
                if len(group) == 1:
                    _report(context, group[0], error, failed)
                else:  # nothing was sent yet: plan for each device alone to find the one that fails
                    groups[:0] = [(device,) for device in group]
                continue
            try:
                results.append(apply(context, plan, progress=progress) if progress else apply(context, plan))
            except (DeviceError, RunError, RefusedError) as error:
                if all(_is_ours(context, device) for device in group):
                    raise  # a new simulator has no faults
                _report(context, group[0], error, failed)
        # No device was programmed; the placement is recorded all the same.
        if jobs and len(results) == before:
            results.append(apply(context, plan_of(only=frozenset())))
    return results


def _groups(context: Context, rack: str, without: Collection[str]) -> list[tuple[str, ...]]:
    """The groups of devices that one run each programs: those with lumctl's own drivers together, each other one alone.

    Devices that fibres connect are in one group, because a circuit may need both.
    """
    inventory = context.inventory
    here = [device.id for device in inventory.light_devices if device.rack == rack and device.id not in without]
    groups: dict[str, list[str]] = {}
    for device in here:
        joined = [other for other in here if inventory.joined_by_fibres(device, other)]
        ours = all(_is_ours(context, other) for other in joined)
        groups.setdefault("" if ours else joined[0], []).append(device)
    return sorted((tuple(group) for group in groups.values()), key=lambda group: not _is_ours(context, group[0]))


def _is_ours(context: Context, device: str) -> bool:
    with suppress(UsageError):  # Two packages offer the driver: opening the device reports that.
        return context.devices.culprit(device).is_ours
    return False


def _report(context: Context, device: str, error: LumctlError, failed: Failed | None) -> None:
    if failed is None:
        raise error
    why = error.message.removeprefix(f"{device}: ")
    with suppress(UsageError):
        named = str(context.devices.culprit(device))
        why = why if named in why else f"{named}: {why}"
    failed(device, why)


def _light(
    context: Context,
    rack: str,
    cells: DeviceStates,
    wanted: Iterable[Circuit],
    carried: Iterable[Circuit],
    after: Assignment,
) -> _Light:
    heard = hear(context, list(cells.states), carried)
    dark = dark_transmitters(context, wanted, heard)
    return _Light(heard, tuple(dark), tuple(idle_transmitters(context, rack, after, wanted)))


def _unsound(inventory: Inventory, carried: Iterable[Circuit], light: _Light) -> list[Circuit]:
    """The recorded circuits with a receiver that hears another transmitter, or none although both ends are on.

    A lane whose transmitter is off may hear nothing either, because its host has switched off the whole interface.
    """
    lanes = inventory.transponders
    telling = [c for c in carried if all(lanes[r].verify[0] is Evidence.LLDP for r, _ in c.receivers)]
    return [c for c in telling if any(_is_astray(light, r, t) for r, t in c.receivers)]


def _is_astray(light: _Light, receiver: str, transmitter: str) -> bool:
    hears = light.heard.get(receiver)
    return hears != transmitter and (hears is not None or not {receiver, transmitter} & set(light.dark))


def _require_here(context: Context, rack: str, heard: Mapping[str, str], placed: Assignment) -> None:
    """Refuse to program a rack if the light shows beyond doubt that a job runs elsewhere than recorded.

    Raises:
        RefusedError: a job does.
    """
    found: Shown = shown_by(context.inventory, rack, heard, placed)
    stored = context.store(rack).fabric.assignment()
    for job, ranks in found.elsewhere.items():
        said = "the record" if job in stored else "the inventory (there is no record)"
        moved = [(rank, was, now) for rank, (was, now) in enumerate(zip(placed[job], ranks, strict=True)) if was != now]
        rank, was, now = moved[0]
        more = f"; and {len(moved) - 1} more of its ranks elsewhere" if len(moved) > 1 else ""
        raise RefusedError(
            f"the light shows rank {rank} of {job} on {now}, but {said} has it on {was}{more}",
            hint=f"record the placement that the light shows: lumctl store adopt {rack} --target {context.target}",
        )


def _light_paths(
    context: Context,
    cells: DeviceStates,
    wanted: list[Circuit],
    carried: list[Circuit],
    left: list[Circuit],
    again: Collection[str],
) -> tuple[LightPaths, dict[str, dict[int, str]]]:
    """The changes to write, and the states of each written device afterwards; circuits that are ``left`` lose light.

    The devices to write ``again`` have an unsound circuit: all their cells are written as recorded.
    """
    cleared = cells.cleared_for(context.inventory, wanted, carried)
    paths = light_paths(context.inventory, (*carried, *left), wanted, cleared, rewrite=cells.afresh)
    paths = with_rewritten(paths, {device: cells.states[device] for device in again if device not in cells.whole})
    switches = [d for d in cells.states if d not in cells.whole and cleared[d] != cells.states[d]]
    writes = {d: cells.with_cleared(d, cleared[d], paths.writes.get(d, ())) for d in switches}
    paths = replace(paths, writes={**paths.writes, **writes})
    written = {
        device: {
            **({} if device in cells.afresh else cleared[device]),
            **{c.puc: c.after for c in paths.writes.get(device, ())},
        }
        for device in cells.states
    }
    whole = {device: cells.whole_write(device, written[device]) for device in cells.whole}
    paths = replace(paths, writes={**paths.writes, **whole})
    return paths, {device: written[device] for device, changes in paths.writes.items() if changes}


def _standing(cells: DeviceStates, wanted: Iterable[Circuit], light: _Light) -> list[Circuit]:
    """The intended circuits with light, through a device that is now routed from scratch: they are dark meanwhile."""
    here = [c for c in wanted if not cells.afresh.isdisjoint(c.devices)]
    return [c for c in here if all(light.heard.get(r) == t for r, t in c.receivers)]


def _cuts(
    context: Context,
    rack: str,
    cells: DeviceStates,
    written: Mapping[str, Mapping[int, str]],
    heard: Mapping[str, str],
    named: Collection[str],
) -> tuple[Cut, ...]:
    """The live paths that are cut, at readable devices and at devices without a record.

    At a device with a record, a path to a receiver of a job's circuit is that job's, even if a fault leads other light
    there.
    """
    unknown = set(unrecorded(context, rack))
    devices = [device for device in (cells.readable | unknown) & cells.whole if device in written]
    paths = [
        path for device in sorted(devices) for path in live_paths(context, context.inventory.devices[device], heard)
    ]
    lost = cut_by(context, paths, written, _owners(context, rack))
    placed = circuits_of(context.inventory, context.assignment(sound=False))
    listens = {receiver: circuit.owner for circuit in placed for receiver, _ in circuit.receivers}
    owned = [
        replace(cut, owner=listens.get(cut.receiver or "")) if cut.owner is None and cut.device not in unknown else cut
        for cut in lost
    ]
    return tuple(replace(cut, agreed=_is_named(cut, named)) for cut in with_powers(context, owned))


def _owners(context: Context, rack: str) -> dict[Ends, str]:
    """The jobs that own light paths according to the record: paths of placed jobs, and of interrupted runs' plans."""
    store = context.store(rack)
    plans = [from_document(store.runs.get(run).plan) for run in store.runs.unfinished(now=context.now())]
    led = [circuit for plan in plans for circuit in (*plan.add, *plan.remove)]
    owners = {ends: circuit.owner for circuit in led for ends in circuit.device_ports}
    placed = circuits_of(context.inventory, context.assignment(sound=False))
    states = FabricStates(context.inventory, context.known_fabric(rack))
    return owners | {ends: circuit.owner for circuit in placed for ends in path_ends(circuit, states)}


def _is_named(cut: Cut, named: Collection[str]) -> bool:
    ports = (str(cut.ingress), str(cut.egress))
    return any(word in named for port in ports for word in (port, f"{cut.device}/port/{port}"))


def _moved(jobs: Iterable[str], stored: Assignment, after: Assignment) -> dict[str, tuple[str, ...]]:
    """The placements that the store does not hold yet."""
    moved = {job: after[job] for job in jobs if stored.get(job) != after[job]}
    return moved | {name: after[name] for name, record in stored.items() if not is_job(name) and after[name] != record}


def _needs(circuit: Circuit, lanes: Collection[str]) -> bool:
    return any(end.transponder in lanes for end in (circuit.a, circuit.b))


def _title(rack: str, paths: LightPaths, unsound: int, light: _Light) -> str:
    said = [f"program {len(paths.add)} circuits of {rack}"] if paths.add or any(paths.writes.values()) else []
    said += [f"{unsound} again"] if unsound else []
    said += [f"turn on {len(light.dark)} transmitters"] if light.dark else []
    said += [f"turn off {len(light.idle)}"] if light.idle else []
    return ", and ".join(said) or f"record where the jobs of {rack} run"


def _devices_of(held: FabricStates, circuits: Iterable[Circuit]) -> set[str]:
    """The devices on the paths that these states make for some circuits."""
    paths = [held.path_of(circuit) for circuit in circuits]
    return {segment.device for path in paths if path for segment in path.segments}
