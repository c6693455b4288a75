"""Programming the jobs' circuits onto the meshes: on day one, after a repair, and when a simulator comes up."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
    require_agreed,
    unrecorded,
    with_powers,
)
from lumctl.change.plan import Cut, Plan, PlannedChange, from_document
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.errors import DeviceError
from lumctl.devices.types import PucState
from lumctl.errors import LumctlError, RefusedError, RunError, UsageError
from lumctl.fabric import circuit_losses
from lumctl.inventory.model import DeviceKind, Evidence, Inventory
from lumctl.inventory.wiring import (
    FREE,
    Assignment,
    Circuit,
    Direction,
    circuits_of,
    in_the_way,
    initial_assignment,
    is_order,
    join_of,
    own_cells,
)
from lumctl.swap.adoption import Shown, shown_by
from lumctl.swap.light_paths import LightPaths, States, light_paths, planned_circuits, with_rewritten
from lumctl.swap.planning import start_of, with_timer
from lumctl.swap.steps import StepList


@dataclass(frozen=True)
class DeviceStates:
    """By device: what it holds (``states``), by its own word where it can be read, else by the record."""

    states: Mapping[str, States]
    """Empty where nothing is known of a device."""
    whole: frozenset[str] = frozenset()
    """The devices of which every cell is written: their record is uncertain, or is to be ignored."""
    afresh: frozenset[str] = frozenset()
    """Those of them whose circuits are all routed again, and not only those that are not there."""
    others: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    """By switch the joins of ingress ports that no lane of the inventory meets: they are no part of any record."""
    own: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By device the numbers of its cells."""
    readable: frozenset[str] = frozenset()
    """The devices that report their own states."""

    def cleared_for(self, inventory: Inventory, wanted: Iterable[Circuit]) -> dict[str, dict[int, str]]:
        """The states of each device after the joins that block these circuits are removed."""
        cleared = {device: dict(held) for device, held in self.states.items()}
        for circuit in wanted:
            device = inventory.devices[circuit.device]
            if device.kind is not DeviceKind.SWITCH or device.id not in self.whole:
                continue
            ports = join_of(device, circuit.ports, reciprocal=circuit.direction is Direction.DUPLEX)
            while (other := in_the_way(cleared[device.id], *ports)) is not None:
                cleared[device.id][other[0]] = FREE
        return cleared

    def whole_write(self, device: str, after: States) -> tuple[PlannedChange, ...]:
        """Every own cell of a device with its present and its new state, and the foreign joins that block it."""
        rest = FREE if device in self.others else str(PucState.BAR)
        held = self.states[device]
        own = [PlannedChange(device, cell, held.get(cell), after.get(cell, rest)) for cell in self.own[device]]
        taken = {port for at, to in after.items() if to != FREE for port in (str(at), to)}
        foreign = [
            PlannedChange(device, port, to, FREE)
            for port, to in self.others.get(device, {}).items()
            if to in taken or str(port) in taken
        ]
        return (*own, *foreign)


def cells_to_plan_on(
    context: Context, rack: str, *, rewrite: bool, forget: bool, only: Collection[str] | None = None
) -> DeviceStates:
    """What the devices of a rack hold, or only those named.

    Raises:
        DeviceError: one that can be read does not answer.
    """
    inventory = context.inventory
    named = inventory.devices if only is None else only
    here = [d for d in inventory.devices.values() if d.rack == rack and d.id in named and own_cells(inventory, d)]
    own = {device.id: own_cells(inventory, device) for device in here}
    states: dict[str, States] = {device: {} if forget else context.known_cells(device) for device in own}
    others: dict[str, Mapping[int, str]] = {}
    whole, afresh, readable = set[str](), set[str](), set[str]()
    for device in here:
        recorded, driver = states[device.id], context.devices.changing(device.id)
        if transaction.readable(driver):
            readable.add(device.id)
            states[device.id] = read = transaction.read_cells(driver, own[device.id])
            if transaction.is_switch(driver):
                every = transaction.read_cells(driver, range(device.port_count))
                others[device.id] = {
                    port: to for port, to in every.items() if to != FREE and port not in own[device.id]
                }
            known = read.keys() == set(own[device.id])
        else:
            known = bool(recorded)
        if not recorded or states[device.id] != recorded or rewrite:
            whole.add(device.id)
        if rewrite or forget or not known:
            afresh.add(device.id)
    return DeviceStates(states, frozenset(whole), frozenset(afresh), others, own, frozenset(readable))


Failed = Callable[[str, str], object]
"""Called with a device that could not be programmed, the reason, and the plug-in of its driver."""


@dataclass(frozen=True)
class _Light:
    """The light of a rack before planning: which transmitters receivers hear, and the circuits that follow."""

    heard: Mapping[str, str]
    dark: tuple[str, ...] = ()
    """Transmitters that are off, and that a circuit needs."""
    idle: tuple[str, ...] = ()
    """Transmitters that are on, and whose accelerator was replaced."""


def plan_fabric(
    context: Context,
    rack: str,
    *,
    rewrite: bool = False,
    placement: Assignment | None = None,
    forget: bool = False,
    cut: Collection[str] = (),
    only: Collection[str] | None = None,
) -> Plan:
    """Plan to program a rack as recorded: the circuits that its jobs need, and their transmitters.

    If the record has a circuit that the light does not show, all cells of its mesh are written again as recorded: a
    controller may have restarted, or another user may have changed them. A circuit of which only a transmitter is off
    needs no cell: the transmitter is switched on. Those of replaced accelerators are switched off.

    A device that can be read is planned from its own states, if they differ from the record. A mesh that cannot be
    read and is uncertain, and every device with ``rewrite``, is routed from scratch and written as a whole: its
    circuits are dark meanwhile. ``placement`` becomes active with the plan; by default jobs stay where they are.
    ``forget`` ignores the record and the light, for a simulator that has just started. ``only`` names the meshes and
    switches to plan for; the default is all of the rack.

    The plan lists the light paths that it cuts; ``cut`` names ports of paths without a job that may be cut.

    Raises:
        RefusedError: the light shows that jobs run elsewhere than recorded.
        DeviceError: a device that can be read does not answer.
    """
    inventory = context.inventory
    jobs = [job.name for job in inventory.jobs.values() if job.rack == rack]
    before = context.assignment(sound=placement is None)
    after = {**before, **(placement or {})}
    # Jobs placed as written use the lanes as written, even if the store has other lanes that no longer exist.
    stored = context.store(rack).fabric.assignment()
    after |= {name: () for name in stored if is_order(name) and placement is not None}
    cells = cells_to_plan_on(context, rack, rewrite=rewrite, forget=forget, only=only)
    wanted = [c for c in circuits_of(inventory, after) if c.owner in jobs and (only is None or c.device in only)]
    carried = _carried(context, cells, wanted)
    light = _Light({}) if forget else _light(context, rack, cells, wanted, carried, after)
    unsound = [] if forget else _unsound(inventory, carried, light)
    relit = [c for c in carried if c not in unsound and _needs(c, light.dark)]
    missing = [c for c in wanted if c.device not in cells.whole and c not in carried]
    if (unsound or relit or missing) and placement is None and not cut:
        _require_here(context, rack, light.heard, before)
    paths, written = _light_paths(context, cells, wanted, carried, unsound)
    standing = _standing(cells, wanted, light)
    cuts = () if forget else _cuts(context, rack, cells, written, light.heard, cut)
    steps, moved = StepList(inventory), _moved(jobs, stored, after)
    kept = [c.id for c in carried if paths.writes.get(c.device) and c not in unsound and c not in relit]
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
    pinned = start_of({job: before[job] for job in jobs}, cells.states, paths)
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
            f"{device} is written whole: all it carries goes dark meanwhile" for device in sorted(cells.afresh)
        ),
        cuts=cuts,
    ).sealed()


def require_cuts_agreed(context: Context, plan: Plan, command: str) -> None:
    """Refuse a plan that cuts light paths which no operator has named, or jobs that the light shows elsewhere.

    ``command`` made it: with ``--cut`` it is what an operator types who means that.

    Raises:
        RefusedError: it does; the hint is the command that adopts where the jobs run, or the one that names the ports.
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
    """Bring a simulator that has just come up to where a running rack is: jobs placed and their circuits proved.

    A fresh simulator holds nothing of what an earlier one held, so its store's record is overwritten, by a run like
    any other. The devices in ``without`` are left as they came up.

    A device whose driver does not come with lumctl has a run of its own, so that undoing it costs no other device its
    circuits. One that cannot be programmed is reported to ``failed`` with the reason and left as it came up.

    Raises:
        LumctlError: a device cannot be programmed, and there is no ``failed``; or lumctl's own drivers fail.
    """
    results: list[RunResult] = []
    for rack in context.inventory.racks:
        jobs = {job.name for job in context.inventory.jobs.values() if job.rack == rack}
        placement = {job: ranks for job, ranks in initial_assignment(context.inventory).items() if job in jobs}
        plan_of = partial(plan_fabric, context, rack, placement=placement, forget=True)
        before, groups = len(results), _groups(context, rack, without) or [()]
        while groups:
            group = groups.pop(0)
            try:
                plan = plan_of(only=group)
            except DeviceError as error:
                if len(group) == 1:
                    _report(context, group[0], error, failed)
                else:  # nothing was sent yet: find out which of them it is
                    groups[:0] = [(device,) for device in group]
                continue
            try:
                results.append(apply(context, plan, progress=progress) if progress else apply(context, plan))
            except (DeviceError, RunError, RefusedError) as error:
                if all(_is_ours(context, device) for device in group):
                    raise  # nothing is faulty in a new simulator
                _report(context, group[0], error, failed)
        if jobs and len(results) == before:
            results.append(apply(context, plan_of(only=())))
    return results


def _groups(context: Context, rack: str, without: Collection[str]) -> list[tuple[str, ...]]:
    """The devices that one run programs: those with lumctl's own drivers together, each other one alone."""
    here = [device.id for device in context.inventory.light_devices if device.rack == rack and device.id not in without]
    ours = tuple(device for device in here if _is_ours(context, device))
    return [*([ours] if ours else []), *((device,) for device in here if device not in ours)]


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
    """The recorded circuits of which a receiver hears another transmitter, or none although both ends are on.

    A lane whose transmitter is off may hear nothing either: its host has switched the whole interface off.
    """
    lanes = inventory.transponders
    telling = [c for c in carried if all(lanes[r].verify[0] is Evidence.LLDP for r, _ in c.receivers)]
    return [c for c in telling if any(_is_astray(light, r, t) for r, t in c.receivers)]


def _is_astray(light: _Light, receiver: str, transmitter: str) -> bool:
    hears = light.heard.get(receiver)
    return hears != transmitter and (hears is not None or not {receiver, transmitter} & set(light.dark))


def _require_here(context: Context, rack: str, heard: Mapping[str, str], placed: Assignment) -> None:
    """Refuse to write over jobs whose light shows that they run, whole, elsewhere than is recorded.

    Raises:
        RefusedError: one does.
    """
    found: Shown = shown_by(context.inventory, rack, heard, placed)
    stored = context.store(rack).fabric.assignment()
    for job, ranks in found.elsewhere.items():
        said = "the record" if job in stored else "the inventory (there is no record)"
        moved = [(rank, was, now) for rank, (was, now) in enumerate(zip(placed[job], ranks, strict=True)) if was != now]
        rank, was, now = moved[0]
        more = f"; and {len(moved) - 1} more of its ranks elsewhere" if len(moved) > 1 else ""
        raise RefusedError(
            f"the light shows rank {rank} of {job} on {now}, and {said} has it on {was}{more}",
            hint=f"record where it runs: lumctl store adopt {rack} --target {context.target}",
        )


def _light_paths(
    context: Context,
    cells: DeviceStates,
    wanted: list[Circuit],
    carried: list[Circuit],
    unsound: Iterable[Circuit],
) -> tuple[LightPaths, dict[str, dict[int, str]]]:
    """The changes to write, and the states of each written device afterwards."""
    cleared = cells.cleared_for(context.inventory, wanted)
    paths = light_paths(context.inventory, carried, wanted, cleared, rewrite=cells.afresh)
    paths = with_rewritten(paths, {c.device: cells.states[c.device] for c in unsound if c.device not in cells.whole})
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
    """The wanted circuits whose light arrives through a device that is written afresh: they go dark meanwhile."""
    here = [c for c in wanted if c.device in cells.afresh]
    return [c for c in here if all(light.heard.get(r) == t for r, t in c.receivers)]


def _cuts(
    context: Context,
    rack: str,
    cells: DeviceStates,
    written: Mapping[str, Mapping[int, str]],
    heard: Mapping[str, str],
    named: Collection[str],
) -> tuple[Cut, ...]:
    """The live paths that are cut, at the devices that can be read or of which there is no record.

    By a record a path to a receiver of a job's circuit is that job's, even if a fault leads it from elsewhere.
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
    """The jobs that have light paths by the record: where they run, and where runs that were cut were leading them."""
    store = context.store(rack)
    plans = [from_document(store.runs.get(run).plan) for run in store.runs.unfinished(now=context.now())]
    led = [circuit for plan in plans for circuit in (*plan.add, *plan.remove)]
    owners = {(c.device, frozenset(int(end["port"]) for end in c.ends)): c.owner for c in led}
    placed = circuits_of(context.inventory, context.assignment(sound=False))
    return owners | {(circuit.device, frozenset(circuit.ports)): circuit.owner for circuit in placed}


def _is_named(cut: Cut, named: Collection[str]) -> bool:
    ports = (str(cut.ingress), str(cut.egress))
    return any(word in named for port in ports for word in (port, f"{cut.device}/port/{port}"))


def _moved(jobs: Iterable[str], stored: Assignment, after: Assignment) -> dict[str, tuple[str, ...]]:
    """The placements that the store does not hold yet."""
    moved = {job: after[job] for job in jobs if stored.get(job) != after[job]}
    return moved | {name: after[name] for name, lanes in stored.items() if is_order(name) and after[name] != lanes}


def _needs(circuit: Circuit, lanes: Collection[str]) -> bool:
    return any(end.transponder in lanes for end in (circuit.a, circuit.b))


def _title(rack: str, paths: LightPaths, unsound: int, light: _Light) -> str:
    said = [f"program {len(paths.add)} circuits of {rack}"] if paths.add or any(paths.writes.values()) else []
    said += [f"{unsound} again"] if unsound else []
    said += [f"light {len(light.dark)} transmitters"] if light.dark else []
    said += [f"darken {len(light.idle)}"] if light.idle else []
    return ", and ".join(said) or f"record where the jobs of {rack} run"


def _carried(context: Context, cells: DeviceStates, wanted: Iterable[Circuit]) -> list[Circuit]:
    """The wanted circuits that the known states of the devices already make."""
    carried: list[Circuit] = []
    for device, held in cells.states.items():
        if held and device not in cells.afresh:
            here = [c for c in wanted if c.device == device]
            made = circuit_losses(context.inventory.devices[device], held, here)
            carried += [c for c in here if c.id in made]
    return carried
