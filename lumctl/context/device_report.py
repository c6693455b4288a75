"""The report of one component: its readings next to its record. It is the answer to ``lumctl device show``."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from lumctl.context.context import Context
from lumctl.context.device_answers import read_device
from lumctl.context.roll_call import PATIENCE_S, ComponentAnswer, ask, open_driver
from lumctl.devices import transaction
from lumctl.devices.protocols import Driver
from lumctl.devices.types import Alarm, Capability, Neighbour, PortReading, PucState
from lumctl.errors import LumctlError
from lumctl.fabric import FabricStates, Segment
from lumctl.health.identity import heard_transponder
from lumctl.health.states import Finding, State
from lumctl.health.verdicts import judge_device
from lumctl.inventory.components import Component, Part, find_component, lanes_at, parts_of
from lumctl.inventory.model import Device, DeviceKind
from lumctl.inventory.wiring import FREE, Circuit, circuits_of, jobs_in, own_cells

OPTICS = (
    ("rx_power_dbm", "dBm", "rx_power"),
    ("tx_power_dbm", "dBm", "tx_power"),
    ("bias_ma", "mA", "bias"),
    ("temperature_c", "C", "temperature"),
    ("voltage_v", "V", "voltage"),
    ("pre_fec_ber", "", None),
    ("post_fec_ber", "", None),
    ("fec_uncorrectable", "blocks", None),
    ("frequency_mhz", "MHz", None),
    ("target_power_dbm", "dBm", None),
    ("rx_los", "", None),
    ("tx_fault", "", None),
    ("module_state", "", None),
    ("module_fault", "", None),
)
"""Readings of a module as displayed: the field, its unit, and the name of its thresholds."""
T = TypeVar("T")
__all__ = ["Report", "report"]


@dataclass(frozen=True, slots=True)
class ReportReading:
    """One present value of a component in its unit; ``limits`` are the component's own, in the same unit."""

    name: str
    value: float | str | bool | None
    unit: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def dark(self) -> bool:
        """Whether the value is the power of no light at all."""
        return self.value == -math.inf


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a mesh or a switch: its peer, its lane, and the device's readings of it."""

    port: int
    side: str
    lanes: tuple[str, ...] = ()
    joined: int | None = None
    enabled: bool | None = None
    failed: bool | None = None
    label: str | None = None
    power_dbm: float | None = None


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """A difference between the record and what was read back."""

    component: str
    record: str
    device: str


@dataclass
class Report:
    """The report of one component. ``notes`` are failed readings, and hints for an operator."""

    component: Component
    answer: ComponentAnswer
    readings: list[ReportReading] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """The findings of health in this one reading of a mesh or a switch."""
    ports: list[Port] = field(default_factory=list)
    parts: list[ComponentAnswer] = field(default_factory=list)
    circuits: list[Circuit] = field(default_factory=list)
    record: str | None = None
    """The states of the component according to the store, in words."""
    certain: bool = False
    """Whether the record is certain."""
    read_back: bool | None = None
    """Whether the states were read back from the device itself; ``None`` if that was not tried."""
    differences: list[RecordDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def read(self, what: str, ask_it: Callable[[], T]) -> T | None:
        """Do one more reading; if it fails, add a note."""
        try:
            return ask_it()
        except LumctlError as error:
            self.notes.append(f"{what}: {error.message}")
            return None


def report_transponder(context: Context, made: Report) -> None:
    """Add the readings of a transponder: its optics with their limits, and the transmitter that it hears."""
    lane, driver = context.inventory.transponders[made.component.id], driver_if_well(context, made)
    every = circuits_of(context.inventory, context.assignment(sound=False))
    made.circuits = [c for c in every if lane.id in {c.a.transponder, c.b.transponder}]
    if driver is None:
        return
    if Capability.SET_TRANSMIT in driver.capabilities:
        on = made.read("transmitter", driver.transmitting)
        made.readings += [ReportReading("transmit", on)] if on is not None else []
    optics = made.read("optics", driver.read_optics) if Capability.READ_OPTICS in driver.capabilities else None
    if optics is not None and not optics.optical:
        made.notes.append("the module is copper: it has no optics")
    for name, unit, limited in OPTICS if optics is not None else ():
        value = getattr(optics, name)
        if value is not None:
            made.readings.append(
                ReportReading(name, value, unit, _limits(optics.thresholds, limited) if optics else {})
            )
    if Capability.READ_NEIGHBOURS in driver.capabilities:
        _hears(context, made, made.read("neighbours", driver.neighbours))


def _hears(context: Context, made: Report, heard: tuple[Neighbour, ...] | None) -> None:
    """Add the transmitter that the receiver hears and the age of that reading; add a note if it is the wrong one."""
    if heard is None:
        return
    meant = {t for c in made.circuits for r, t in c.receivers if r == made.component.id}
    name = None
    # Freshest first: older ones may be from before the light moved.
    for neighbour in heard[:1]:
        name = heard_transponder(context.inventory, neighbour) or f"{neighbour.system} {neighbour.port}"
        made.readings += [ReportReading("hears", name), ReportReading("heard_before", round(neighbour.age_s), "s")]
    if meant and name not in meant:
        made.notes.append(f"it hears {name or 'no transmitter'}, but should hear {', '.join(sorted(meant))}")


def _limits(thresholds: Mapping[str, float], name: str | None) -> dict[str, float]:
    if name is None:
        return {}
    return {key.removeprefix(f"{name}_"): value for key, value in thresholds.items() if key.startswith(f"{name}_")}


def report_power(context: Context, made: Report) -> None:
    """Add the controller's readings of a host's power, and the jobs that run there."""
    driver = driver_if_well(context, made)
    placed = context.assignment(sound=False)
    here = [a.id for a in context.inventory.accelerators_of(str(made.component.host))]
    runs = [
        f"rank {rank} of {job} runs on {accelerator}"
        for job, ranks in jobs_in(placed).items()
        for rank, accelerator in enumerate(ranks)
        if accelerator in here
    ]
    made.notes += runs or ([f"no job runs on {', '.join(here)}"] if here else [])
    reading = made.read("power", driver.read_power) if driver is not None else None
    if reading is None:
        return
    on = {True: "on", False: "off", None: "between on and off"}[reading.on]
    made.readings.append(ReportReading("power", on))
    for name, value, unit in (("draw", reading.watts, "W"), ("health", reading.health or None, "")):
        made.readings += [ReportReading(name, value, unit)] if value is not None else []
    made.readings += [ReportReading("model", reading.model)] if reading.model else []


def report_light(context: Context, made: Report) -> None:
    """Add the record, readings, ports and circuits of a mesh, a switch or a part of one."""
    component, device = made.component, context.inventory.devices[str(made.component.device)]
    driver = driver_if_well(context, made)
    circuits = circuits_of(context.inventory, context.assignment(sound=False))
    held = _recorded(context, made, device, driver)
    if driver is not None:
        _device_readings(context, made, driver)
    if component.part is not Part.PUC:
        _ports(context, made, device, driver, held)
    # What was read replaces the record of this device: the circuits are those that it makes now.
    states = FabricStates(context.inventory, {**context.known_fabric(device.rack), device.id: held})
    parts = {circuit: _segments(states, circuit, device.id) for circuit in circuits}
    if component.part is Part.PORT:
        number = component.number
        made.circuits = [
            circuit
            for circuit, found in parts.items()
            if number in circuit.ports_at(device.id) or any(number in part.ports for part in found)
        ]
    if component.part is Part.PUC:
        made.circuits = [c for c, found in parts.items() if any(component.number in part.pucs for part in found)]


def _device_readings(context: Context, made: Report, driver: Any) -> None:
    """Add the alarms and the temperature of a device, and the findings and the state of this one reading."""
    reading = read_device(driver, (), at := context.now())
    made.notes += [f"{name}: {why}" for name, why in reading.unread.items()]
    if reading.temperature_c is not None and made.component.part is Part.DEVICE:
        made.readings.append(ReportReading("temperature", reading.temperature_c, "C"))
    made.alarms = list(reading.alarms or ())
    if made.component.part is Part.DEVICE:
        health = judge_device(made.component.id, reading, at)
        made.findings = list(health.findings)
        made.answer = replace(made.answer, state=health.state)


def _recorded(context: Context, made: Report, device: Device, driver: Driver | None) -> Mapping[int, str]:
    """Compare the record with the device if it can be read; return the device's states, else those of the record."""
    store, own = context.store(device.rack), own_cells(context.inventory, device)
    held = context.known_cells(device.id)
    wanted = own if made.component.part is Part.DEVICE else tuple(n for n in own if n == made.component.number)
    cut, run = store.fabric.uncertain_since(device.id), store.fabric.last_written_by(device.id)
    if held:
        what = _words(device, {n: held[n] for n in wanted}, own)
        made.record, made.certain = (f"{what}, certain since {run}", True) if wanted else (None, False)
    else:
        made.record = f"uncertain since {cut} was interrupted" if cut else "never programmed from this store"
    # Only a switch has a state for each port; the states of a mesh belong to its PUCs.
    if made.component.part is Part.PORT and device.kind is not DeviceKind.SWITCH:
        made.record = None
        return held
    if driver is None:
        return held
    made.read_back = transaction.readable(driver)  # type: ignore[arg-type]  # of a mesh or a switch
    if not made.read_back:
        return held
    read = made.read("read-back", lambda: transaction.read_cells(driver, own))  # type: ignore[arg-type]
    if read is None:
        made.read_back = False
        return held
    noun = "port" if device.kind is DeviceKind.SWITCH else "puc"
    made.differences = [
        RecordDifference(f"{device.id}/{noun}/{n}", _word(held[n]), _word(read.get(n)))
        for n in wanted
        if held and held[n] != read.get(n)
    ]
    if wanted and not held:
        made.notes.append(f"the device reports {_words(device, {n: read[n] for n in wanted if n in read}, own)}")
    return read


def _ports(context: Context, made: Report, device: Device, driver: Any, held: Mapping[int, str]) -> None:
    """Add the ports in use of a mesh, or every port of a switch; in the report of a port, only that port."""
    lanes = lanes_at(context.inventory, device.id)
    able = driver.capabilities if driver is not None else frozenset()
    switch = device.kind is DeviceKind.SWITCH
    shown = list(range(device.port_count)) if switch else list(lanes)
    if made.component.part is Part.PORT:
        shown = [made.component.number]
    joins = {n: int(to) for n, to in held.items() if to != FREE} if switch else {}
    if switch and driver is not None:
        joins = made.read("joins", driver.read_circuits) or joins
    # A join is recorded at its ingress port only; the report shows it at both ports.
    joins = {to: at for at, to in joins.items()} | joins
    told: Mapping[int, PortReading] = {}
    if Capability.READ_PORTS in able:
        told = made.read("ports", driver.read_ports) or {}
    powers: Mapping[int, float] = {}
    if Capability.READ_POWERS in able and shown:
        asked = tuple(n for n in shown if n in lanes or made.component.part is Part.PORT)
        powers = made.read("port powers", lambda: driver.read_powers(asked)) or {}
    made.ports = [
        Port(
            number,
            _side(device, number),
            tuple(f"{lane.id} {side}" for lane, side in lanes.get(number, ())),
            joins.get(number),
            told[number].enabled if number in told else None,
            told[number].failed if number in told else None,
            told[number].label if number in told else None,
            powers.get(number),
        )
        for number in shown
    ]


def _side(device: Device, number: int) -> str:
    if device.kind is not DeviceKind.SWITCH or device.input_count == device.port_count:
        return "both"
    return "in" if number < device.input_count else "out"


def _words(device: Device, cells: Mapping[int, str], own: tuple[int, ...]) -> str:
    """The states of cells, in words."""
    if len(cells) == 1:
        return _word(next(iter(cells.values())))
    if device.kind is DeviceKind.SWITCH:
        joined = sum(state != FREE for state in cells.values())
        return f"{joined} of our {len(own)} ingress ports are connected"
    crossed = sum(state == PucState.CROSS for state in cells.values())
    return f"{crossed} of {len(own)} PUCs are in cross"


def _word(state: str | None) -> str:
    if state is None:
        return "neither bar nor cross"
    if state in {str(each) for each in PucState}:
        return PucState(state).word
    return "connected to nothing" if state == FREE else f"connected to port {state}"


def _segments(states: FabricStates, circuit: Circuit, device: str) -> list[Segment]:
    """The parts of a circuit's path inside a device, if these states form the circuit."""
    path = states.path_of(circuit)
    return [part for part in path.segments if part.device == device] if path else []


def whole(component: Component) -> Component:
    """The component to read: for a port or a PUC its device."""
    if component.part in {Part.PORT, Part.PUC}:
        return Component(str(component.device), Part.DEVICE, component.rack, component.device)
    return component


def driver_if_well(context: Context, made: Report) -> Any:
    """The driver, if the component answers; otherwise nothing more is read."""
    return open_driver(context, whole(made.component)) if made.answer.state is State.OK else None


def report(context: Context, name: str, *, patience_s: float = PATIENCE_S) -> Report:
    """Read everything of one component. If it does not answer, the report has only its record.

    The roll call determines whether it answers: the parts of a chassis or a controller are read at the same time, and
    ``patience_s`` seconds limit the wait for all of them.

    Raises:
        UsageError: there is no such component.
        UnreachableError: the target does not exist: no simulator is running.
    """
    component = find_component(context.inventory, name)
    parts = parts_of(context.inventory, component.id) if component.part is Part.DEVICE else ()
    answer, *said = ask(context, (whole(component), *parts), patience_s=patience_s)
    kind = answer.kind if component.part is Part.DEVICE else component.part.value
    made = Report(component, replace(answer, id=component.id, kind=kind))
    if component.part is Part.TRANSPONDER:
        report_transponder(context, made)
    elif component.part is Part.POWER:
        report_power(context, made)
    elif context.inventory.devices[str(component.device)].kind.carries_light:
        report_light(context, made)
    else:
        made.parts = said
    return made
