"""What a mesh or a switch, one of its ports or one of its PUCs shows, beside what the record says of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lumctl.devices import transaction
from lumctl.devices.protocols import Driver
from lumctl.devices.types import Capability, PortReading, PucState
from lumctl.fabric import trace
from lumctl.fabric.condition import mesh_of
from lumctl.health.devices import judge_device
from lumctl.inventory.components import Part, lanes_at
from lumctl.inventory.model import Device, DeviceKind
from lumctl.inventory.wiring import FREE, Circuit, circuits_of, own_cells
from lumctl.site.device_readings import read_device
from lumctl.site.report_parts import Difference, Port, Reading, Report, driver_if_well
from lumctl.site.site import Site


def report_light(site: Site, made: Report) -> None:
    """Add what a mesh, a switch or a part of one shows."""
    component, device = made.component, site.inventory.devices[str(made.component.device)]
    driver = driver_if_well(site, made)
    circuits = [c for c in circuits_of(site.inventory, site.assignment(sound=False)) if c.device == device.id]
    held = _recorded(site, made, device, driver)
    if driver is not None:
        _device_readings(site, made, driver)
    if component.part is not Part.PUC:
        _ports(site, made, device, driver, held)
    if component.part is Part.PORT:
        made.circuits = [c for c in circuits if component.number in c.ports]
    if component.part is Part.PUC and held:
        made.circuits = [c for c in circuits if component.number in _passed(device, held, c)]


def _device_readings(site: Site, made: Report, driver: Any) -> None:
    """Its alarms and its temperature, and what health finds in them: the state is that of a look of this moment."""
    reading = read_device(driver, (), at := site.now())
    made.notes += [f"{name}: {why}" for name, why in reading.unread.items()]
    if reading.temperature_c is not None and made.component.part is Part.DEVICE:
        made.readings.append(Reading("temperature", reading.temperature_c, "C"))
    made.alarms = list(reading.alarms or ())
    if made.component.part is Part.DEVICE:
        health = judge_device(made.component.id, reading, at)
        made.findings = list(health.findings)
        made.answer = replace(made.answer, state=health.state)


def _recorded(site: Site, made: Report, device: Device, driver: Driver | None) -> Mapping[int, str]:
    """Hold the record against the device, where it can be read; gives what it holds, by the better knowledge."""
    store, own = site.store(device.rack), own_cells(site.inventory, device)
    held = site.known_cells(device.id)
    wanted = own if made.component.part is Part.DEVICE else tuple(n for n in own if n == made.component.number)
    cut, run = store.fabric.uncertain_since(device.id), store.fabric.last_written_by(device.id)
    if held:
        what = _words(device, {n: held[n] for n in wanted}, own)
        made.record, made.certain = (f"{what}, certain since {run}", True) if wanted else (None, False)
    else:
        made.record = f"not certain since {cut} was cut" if cut else "never programmed from this store"
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
        Difference(f"{device.id}/{noun}/{n}", _word(held[n]), _word(read.get(n)))
        for n in wanted
        if held and held[n] != read.get(n)
    ]
    if wanted and not held:
        made.notes.append(f"the device shows {_words(device, {n: read[n] for n in wanted if n in read}, own)}")
    return read


def _ports(site: Site, made: Report, device: Device, driver: Any, held: Mapping[int, str]) -> None:
    """The ports in use of a mesh; every port of a switch. Of one port that alone."""
    lanes = lanes_at(site.inventory, device.id)
    able = driver.capabilities if driver is not None else frozenset()
    switch = device.kind is DeviceKind.SWITCH
    shown = list(range(device.port_count)) if switch else list(lanes)
    if made.component.part is Part.PORT:
        shown = [made.component.number]
    joins = {n: int(to) for n, to in held.items() if to != FREE} if switch else {}
    if switch and driver is not None:
        joins = made.read("joins", driver.read_circuits) or joins
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
    """What cells hold, in words."""
    if len(cells) == 1:
        return _word(next(iter(cells.values())))
    if device.kind is DeviceKind.SWITCH:
        joined = sum(state != FREE for state in cells.values())
        return f"{joined} of our {len(own)} ingress ports are joined"
    crossed = sum(state == PucState.CROSS for state in cells.values())
    return f"{crossed} of {len(own)} PUCs are in cross"


def _word(state: str | None) -> str:
    if state is None:
        return "neither bar nor cross"
    if state in {str(each) for each in PucState}:
        return PucState(state).word
    return "joined to nothing" if state == FREE else f"joined to port {state}"


def _passed(device: Device, held: Mapping[int, str], circuit: Circuit) -> tuple[int, ...]:
    """The PUCs that a circuit runs through, where the cells make it."""
    found = trace(mesh_of(device), {puc: PucState(mark) for puc, mark in held.items()}, circuit.ports[0])
    return tuple(found.pucs) if found.exit == circuit.ports[1] else ()
