"""The light paths of a rack as measured: the states that devices report, and which transmitters receivers hear.

In a mesh every port is always paired with another port. Two kinds of pairs therefore do not count as light paths: a
pair that an unprogrammed mesh forms (every PUC on its path is bar), and a lane that hears its own accelerator.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from lumctl.change.concurrency import MOST_AT_A_HOST, all_of
from lumctl.change.foreign_circuits import circuits_before_and_after
from lumctl.change.light_proof import LightProof
from lumctl.change.plan import Cut, Do, Plan
from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.devices.errors import DeviceError
from lumctl.devices.protocols import MeshDriver, SwitchDriver
from lumctl.devices.types import Capability, PucState
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates, exits, mesh_of, trace
from lumctl.health.observation import current_role
from lumctl.inventory.model import Device, Role
from lumctl.inventory.wiring import FREE, Assignment, Circuit, circuits_of, own_cells, own_ports

Heard = Mapping[str, str]
"""By receiver, the transmitter that it hears."""
Ports = tuple[int, int]
"""The port where light enters a device, and the port where it leaves."""
Lanes = tuple[str, str]
"""The transmitter and the receiver of a light path."""
Written = Mapping[int, str]
"""States of a device, by cell."""

Ends = tuple[str, frozenset[int]]
"""A device and the two ports that a light path connects."""

NOBODY: Mapping[Ends, str] = {}
DARK_DBM = -40.0
"""Less power than this is stray light: no receiver works with it."""


def lanes_at(context: Context, devices: Collection[str]) -> list[str]:
    """The transponders connected to these devices."""
    return [lane.id for lane in context.inventory.transponders.values() if lane.lane.device in devices]


def hear(context: Context, devices: Collection[str], expected: Iterable[Circuit] = ()) -> dict[str, str]:
    """Which transmitters the receivers at these devices hear now; see :meth:`LightProof.heard`."""
    proof = LightProof(context.inventory, context.fleet, context.devices, now=context.now)
    return proof.heard(lanes_at(context, devices), expected)


def unrecorded(context: Context, rack: str) -> list[str]:
    """The meshes and switches of a rack without a record in its store: the store is new, or the record was lost."""
    store, inventory = context.store(rack), context.inventory
    here = [d for d in inventory.light_devices if d.rack == rack and own_cells(inventory, d)]
    return [device.id for device in here if store.fabric.last_written_by(device.id) is None]


def live_paths(context: Context, device: Device, heard: Heard) -> list[Cut]:
    """The configured light paths of a device, with the light on each.

    Raises:
        DeviceError: the device can be read, but does not answer.
    """
    driver = context.devices.changing(device.id)
    pairs = _pairs(context, device, heard)
    if transaction.is_switch(driver):
        return _joins(context, device, driver, pairs)
    mesh = mesh_of(device)
    states = driver.read_states() if transaction.readable(driver) else {}
    # A pair that only bar states join is what an unprogrammed mesh makes: no light path.
    found = [
        Cut(device.id, tx, rx, None, *names)
        for (tx, rx), names in _once(pairs).items()
        if (made := trace(mesh, states, tx)).exit != rx or any(state is PucState.CROSS for _, state in made.passes)
    ]
    if not states or Capability.READ_POWERS not in driver.capabilities:
        return found
    return [*found, *_of_strangers(context, device, driver, states)]


def cut_by(
    context: Context, paths: Iterable[Cut], written: Mapping[str, Written], owners: Mapping[Ends, str] = NOBODY
) -> list[Cut]:
    """The light paths that end when each device is set to these cells.

    ``owners`` are the jobs that own them according to the record.
    """
    lost = [path for path in paths if path.device in written and not _stands(context, path, written[path.device])]
    return [replace(path, owner=owners.get((path.device, frozenset((path.ingress, path.egress))))) for path in lost]


def require_agreed(cuts: Iterable[Cut], command: str) -> None:
    """Refuse to cut a light path that belongs to no job of the inventory, unless an operator listed its port.

    Raises:
        RefusedError: there is such a path; the hint is the command that names all of them.
    """
    every = list(cuts)
    open_ = [cut for cut in every if cut.needs_word]
    if not open_:
        return
    named = [f"{c.device} port {c.ingress} to port {c.egress} ({c.light})" for c in open_]
    shown = "; ".join(named[:3]) + (f"; and {len(named) - 3} more" if len(named) > 3 else "")  # noqa: PLR2004
    what = "a light path" if len(open_) == 1 else f"{len(open_)} light paths"
    raise RefusedError(
        f"this cuts {what} that belong to no job in the inventory: {shown}",
        hint=f"to do it anyway: {command} --cut {port_list(every)}",
    )


def port_list(cuts: Iterable[Cut]) -> str:
    """The ports to list after ``--cut``; with their device if there are several devices."""
    meant = [cut for cut in cuts if cut.owner is None]
    several = len({cut.device for cut in meant}) > 1
    return ",".join(f"{cut.device}/port/{cut.ingress}" if several else str(cut.ingress) for cut in meant)


def require_light_agrees(context: Context, plan: Plan) -> None:
    """If the store has no record of a device, refuse a plan that contradicts the light found there.

    Raises:
        RefusedError: receivers hear other transmitters than the plan assumes, or the operator did not list a light path
            that is cut.
        DeviceError: a readable device does not answer.
    """
    written = plan.writes
    single = any(step.do is Do.SET and step.data["setting"] != "label" for step in plan.steps)
    if not (written or single or any(step.do is Do.TRANSMIT for step in plan.steps)):
        return
    # With a record, the preconditions compare the devices with that.
    if not unrecorded(context, plan.rack):
        return
    # A device that is not written loses no light, so it need not answer.
    strange = strange_light(context, plan.rack, circuits_before_and_after(context, plan), devices=written or None)
    if written:
        strange = cut_by(context, strange, written)
    agreed = {(cut.device, cut.ingress, cut.egress) for cut in plan.cuts if cut.agreed}
    if strange := [path for path in strange if (path.device, path.ingress, path.egress) not in agreed]:
        raise contradiction(context, plan.rack, strange)


def strange_light(
    context: Context,
    rack: str,
    placements: Iterable[Mapping[str, Circuit]] = (),
    *,
    devices: Collection[str] | None = None,
) -> list[Cut]:
    """Light paths that belong to no job, at devices without a record in the store; found by LLDP and read-back.

    ``placements`` are the circuits of the jobs by id; by default those of the record and the inventory. Only
    ``devices`` are examined, by default all of the rack.
    """
    unknown = [device for device in unrecorded(context, rack) if devices is None or device in devices]
    if not unknown:
        return []
    circuits = [circuit for placed in placements for circuit in placed.values()]
    circuits = circuits or list(circuits_of(context.inventory, context.assignment(sound=False)))
    states = FabricStates(context.inventory, context.known_fabric(rack))
    wanted = {ends for circuit in circuits for ends in path_ends(circuit, states)}
    heard = hear(context, unknown)
    paths = [path for name in unknown for path in live_paths(context, context.inventory.devices[name], heard)]
    return [
        path for path in paths if path.receiver and (path.device, frozenset((path.ingress, path.egress))) not in wanted
    ]


def contradiction(context: Context, rack: str, paths: Iterable[Cut]) -> RefusedError:
    """The refusal to change a rack whose store has no record and whose light paths differ from the inventory."""
    strange = list(paths)
    first = strange[0]
    more = f", and {len(strange) - 1} more light paths" if len(strange) > 1 else ""
    return RefusedError(
        f"the store has no record of {first.device}, and its light paths contradict the placement in "
        f"{context.inventory.path}: port {first.ingress} leads to port {first.egress} ({first.light}){more}",
        hint=f"adopt the placement that the light shows: lumctl store adopt {rack} --target {context.target}",
    )


def with_powers(context: Context, cuts: Iterable[Cut]) -> tuple[Cut, ...]:
    """The same cuts with the power at the port where the light leaves, if the device reads powers."""
    found = list(cuts)
    powers: dict[tuple[str, int], float] = {}
    for name in dict.fromkeys(cut.device for cut in found if cut.power_dbm is None):
        driver = context.devices.changing(name)
        if Capability.READ_POWERS in driver.capabilities:
            ports = tuple(cut.egress for cut in found if cut.device == name)
            with suppress(DeviceError):
                powers |= {(name, port): dbm for port, dbm in driver.read_powers(ports).items()}
    told = []
    for cut in found:
        dbm = powers.get((cut.device, cut.egress))
        lit = dbm is not None and math.isfinite(dbm)
        told.append(cut if dbm is None else replace(cut, power_dbm=round(dbm, 2) if lit else None, dark=not lit))
    return tuple(told)


def _pairs(context: Context, device: Device, heard: Heard) -> dict[Ports, Lanes]:
    """By pair of ports of a device, the transmitting lane and the lane of another accelerator that hears it."""
    lanes = context.inventory.transponders
    heard_here = [(lanes[sender], lanes[to]) for to, sender in heard.items()]
    return {
        (sender.lane.tx, to.lane.rx): (sender.id, to.id)
        for sender, to in heard_here
        if sender.accelerator != to.accelerator and {to.lane.device, sender.lane.device} == {device.id}
    }


def _once(pairs: Mapping[Ports, Lanes]) -> dict[Ports, Lanes]:
    """The pairs, with a single entry for a path that carries light in both directions."""
    found: dict[Ports, Lanes] = {}
    for (tx, rx), names in pairs.items():
        if (rx, tx) not in found:
            found[tx, rx] = names
    return found


def _joins(context: Context, device: Device, switch: SwitchDriver, pairs: Mapping[Ports, Lanes]) -> list[Cut]:
    """The connections of a switch with a lane of the inventory at either port."""
    ours = own_ports(context.inventory, device.id)
    joins = {(min(join), max(join)) for join in switch.read_circuits().items() if ours & set(join)}
    heard = {frozenset(ports): names for ports, names in pairs.items()}
    return [
        Cut(device.id, ingress, egress, None, *heard.get(frozenset((ingress, egress)), (None, None)))
        for ingress, egress in sorted(joins)
    ]


def _of_strangers(context: Context, device: Device, driver: MeshDriver, states: Mapping[int, PucState]) -> list[Cut]:
    """The lit paths that enter a mesh at a port without a lane of the inventory."""
    ours = own_ports(context.inventory, device.id)
    leads = {port: to for port, to in exits(mesh_of(device), states).items() if port not in ours}
    powers = driver.read_powers(tuple(leads.values())) if leads else {}
    lit = {(port, to): round(powers[to], 2) for port, to in leads.items() if powers[to] > DARK_DBM}
    # A path that is lit in both directions is listed once.
    return [
        Cut(device.id, port, to, power_dbm=dbm) for (port, to), dbm in lit.items() if (to, port) not in lit or port < to
    ]


def path_ends(circuit: Circuit, states: FabricStates) -> list[Ends]:
    """The parts of a circuit's path inside devices; without a path, its two ports if they are on one device."""
    if (path := states.path_of(circuit)) is not None:
        return [(segment.device, frozenset(segment.ports)) for segment in path.segments]
    return [] if circuit.spans_devices else [(circuit.a.device, frozenset(circuit.ports))]


def _stands(context: Context, path: Cut, cells: Written) -> bool:
    device = context.inventory.devices[path.device]
    if device.geometry is None:
        stays = cells.get(path.ingress, str(path.egress)) == str(path.egress)
        # The path also ends if another ingress port takes its egress port.
        taken = any(to == str(path.egress) and at != path.ingress for at, to in cells.items() if to != FREE)
        return stays and not taken
    states = {puc: PucState(state) for puc, state in cells.items()}
    return trace(mesh_of(device), states, path.ingress).exit == path.egress


@dataclass(frozen=True, slots=True)
class TransmitterChanges:
    """Transmitters to switch on or off so that they match the record."""

    light: tuple[str, ...] = ()
    darken: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The changes in words, one per line."""
        words = [f"turn on the transmitter of {lane}: a placed rank needs it" for lane in self.light]
        return words + [f"turn off the transmitter of {lane}: its accelerator was replaced" for lane in self.darken]

    def without(self, lanes: Collection[str]) -> "TransmitterChanges":
        """A copy without some transponders."""
        return TransmitterChanges(
            *(tuple(lane for lane in some if lane not in lanes) for some in (self.light, self.darken))
        )


NOTHING_TO_SWITCH = TransmitterChanges()


def switching_for(context: Context, rack: str, placed: Assignment) -> TransmitterChanges:
    """The transmitters to switch in a rack whose jobs run as ``placed``; hosts that do not answer are omitted."""
    devices = {device.id for device in context.inventory.light_devices if device.rack == rack}
    circuits = [c for c in circuits_of(context.inventory, placed) if not devices.isdisjoint(c.devices)]
    heard = hear(context, sorted(devices), circuits)
    dark = dark_transmitters(context, circuits, heard)
    return TransmitterChanges(tuple(dark), tuple(idle_transmitters(context, rack, placed, circuits)))


def transmitting(context: Context, lanes: Iterable[str]) -> dict[str, bool]:
    """Whether transmitters are on, by transponder; unreadable ones are omitted."""
    found: dict[str, bool] = {}

    def ask(lane: str) -> None:
        with suppress(DeviceError):
            found[lane] = context.devices.transponder(lane).transmitting()

    all_of([partial(ask, lane) for lane in dict.fromkeys(lanes)], most=MOST_AT_A_HOST)
    return found


def dark_transmitters(context: Context, circuits: Iterable[Circuit], heard: Mapping[str, str]) -> list[str]:
    """The transmitters of some circuits that are off; a transmitter that is heard is on and need not be read."""
    needed = dict.fromkeys(transmitter for circuit in circuits for _, transmitter in circuit.receivers)
    shines = transmitting(context, needed.keys() - set(heard.values()))
    return [lane for lane in needed if shines.get(lane) is False]


def idle_transmitters(context: Context, rack: str, placed: Assignment, circuits: Iterable[Circuit] = ()) -> list[str]:
    """Transmitters that are still on although their accelerator was replaced in its job, and that no circuit needs."""
    needed = {transmitter for circuit in circuits for _, transmitter in circuit.receivers}
    replaced = _replaced(context, rack, placed)
    lanes = [t.id for t in context.inventory.transponders.values() if t.accelerator in replaced and t.id not in needed]
    shines = transmitting(context, lanes)
    return [lane for lane in lanes if shines.get(lane)]


def _replaced(context: Context, rack: str, placed: Assignment) -> Collection[str]:
    here = [a for a in context.inventory.accelerators.values() if a.rack == rack]
    return {a.id for a in here if current_role(context.inventory, placed, a.id) is Role.DISABLED}
