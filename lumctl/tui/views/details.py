"""The details of one component of any kind, as sections of labels and texts; pure."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import HostSnapshot, ProbeStatus
from lumctl.health.observation import Observation, host_states
from lumctl.health.states import CircuitHealth, ComponentHealth, State, worst
from lumctl.inventory.model import Accelerator, Transponder
from lumctl.printable import counted
from lumctl.tui.look.marks import age, duration, power
from lumctl.tui.views.gpu_details import gpu_sections
from lumctl.tui.views.readings import optics_of, readings_of
from lumctl.tui.views.sections import Detail, Fact, Section


def acknowledgement_lines(observation: Observation, components: Collection[str]) -> tuple[str, ...]:
    """A line for each acknowledgement of these components: by whom, why, and which findings it covers."""
    given = (a for a in observation.acknowledgements if a.concerns(components))
    return tuple(f"{a.told}; covers {a.covers_text}" for a in given)


def describe(observation: Observation, component: str, now: float) -> Detail:
    """The details of a component by its id, with the acknowledgements that cover it."""
    detail = _described(observation, component, now)
    return replace(detail, acknowledgements=acknowledgement_lines(observation, {component}))


def _described(observation: Observation, component: str, now: float) -> Detail:
    """The details without acknowledgements; for a component not in the inventory, the findings that name it."""
    inventory, report = observation.inventory, observation.report
    if (accelerator := inventory.accelerators.get(component)) is not None:
        detail = _detail(
            "accelerator", component, report.accelerators.get(component), _accelerator(observation, accelerator)
        )
        # A fault of a transponder cuts off the accelerator, which itself may be ok.
        links = [report.links.get(lane.id) for lane in inventory.transponders_of(component)]
        return replace(detail, findings=(*detail.findings, *(f for link in links if link for f in link.findings)))
    if (transponder := inventory.transponders.get(component)) is not None:
        return _detail(
            "transponder", component, report.links.get(component), _transponder(observation, transponder, now)
        )
    if (circuit := report.circuits.get(component)) is not None:
        return _detail("circuit", component, circuit, _circuit(observation, circuit, now))
    if component in inventory.hosts:
        # Its findings are its own, but its state counts its accelerators too, as in the table of racks.
        detail = _detail("host", component, report.hosts.get(component), _host(observation, component, now))
        return replace(detail, state=host_states(observation)[component])
    if (device := inventory.devices.get(component)) is not None:
        return _detail(device.kind, component, report.devices.get(component), _device(observation, component, now))
    findings = tuple(finding for finding in report.findings() if finding.component == component)
    return Detail(component, "component", worst(tuple(f.state for f in findings)), findings, ())


def _detail(
    kind: str, component: str, health: ComponentHealth | CircuitHealth | None, sections: Iterator[Section]
) -> Detail:
    if health is None:
        return Detail(component, kind, State.UNKNOWN, (), tuple(sections))
    return Detail(component, kind, health.state, health.findings, tuple(sections), health.maintenance)


def _section(heading: str, *facts: tuple[str, object]) -> Section:
    return Section(heading, tuple((label, str(value)) for label, value in facts if value is not None))


def _accelerator(observation: Observation, accelerator: Accelerator) -> Iterator[Section]:
    yield from gpu_sections(observation, accelerator)
    place = observation.place_of(accelerator.id)
    yield _section(
        "place",
        ("host", accelerator.host),
        ("rack", accelerator.rack),
        ("model", f"{accelerator.model}, {accelerator.memory_gib:g} GiB"),
        ("role", observation.role_of(accelerator.id)),
        ("job", f"{place[0]}, rank {place[1]}" if place else "none"),
        ("PCI address", accelerator.pci),
    )
    lanes = observation.inventory.transponders_of(accelerator.id)
    yield _section("light", *((lane.id, _optics_line(optics_of(observation, lane))) for lane in lanes))
    names = {lane.id for lane in lanes}
    yield _section(
        "circuits",
        *(
            (circuit.id, circuit.state)
            for circuit in observation.report.circuits.values()
            if any(end.transponder in names for end in circuit.ends)
        ),
    )


def _readings(observation: Observation, component: str) -> Section:
    stale_after_s = observation.inventory.thresholds.stale_after_s
    return Section("readings, and the last 15 minutes", (), readings_of(observation, component), stale_after_s)


def _transponder(observation: Observation, transponder: Transponder, now: float) -> Iterator[Section]:
    lane = transponder.lane
    ports = f"port {lane.tx}" if lane.duplex else f"sends to port {lane.tx}, hears from port {lane.rx}"
    yield _section(
        "place",
        ("accelerator", transponder.accelerator),
        ("host", transponder.host),
        ("interface", transponder.interface),
        ("fabric", f"{lane.device}, {ports}"),
        ("can be verified by", ", ".join(transponder.verify)),
    )
    optics = optics_of(observation, transponder)
    if optics is None:
        yield _section("readings", ("optics", "no reading"))
        return
    yield _readings(observation, transponder.id)
    yield _section(
        f"module, read {age(optics.taken_at, now)} ago",
        *((f"limit {name.replace('_', ' ')}", f"{value:g}") for name, value in optics.thresholds.items()),
    )


def _circuit(observation: Observation, circuit: CircuitHealth, now: float) -> Iterator[Section]:
    path = observation.paths.get(circuit.id)
    yield _section(
        "path",
        ("job", circuit.owner),
        ("devices", ", ".join(circuit.devices)),
        *((("fibres", ", ".join(path.fibres)),) if path and path.fibres else ()),
        ("direction", circuit.direction),
        ("expected loss", _unit(circuit.loss_db, "dB")),
        ("read", f"{age(circuit.read_at, now)} ago" if circuit.read_at is not None else "never"),
    )
    for end in circuit.ends:
        yield _section(
            f"end {end.transponder}",
            ("port", f"{end.port} of {end.device}"),
            ("receives", power(end.rx_power_dbm, " dBm")),
            ("is to hear", end.expected),
            ("hears", (end.hears or "not shown") if end.expected else None),
        )


def _host(observation: Observation, host: str, now: float) -> Iterator[Section]:
    written = observation.inventory.hosts[host]
    read = observation.snapshot.hosts.get(host)
    yield _section(
        "place", ("rack", written.rack), ("address", written.address), *(_session(read, now) if read else ())
    )
    if read is not None:
        yield _section(
            "probes",
            *(
                (name, f"{probe.status}, {probe.seconds:.2f} s" + (f": {probe.detail}" if probe.detail else ""))
                for name, probe in read.probes.items()
                if probe.status != ProbeStatus.ABSENT
            ),
        )
    accelerators = observation.inventory.accelerators_of(host)
    health = observation.report.accelerators
    yield _section("accelerators", *((a.id, health[a.id].state if a.id in health else "unknown") for a in accelerators))


def _session(read: HostSnapshot, now: float) -> Iterator[Fact]:
    yield "read", f"{age(read.taken_at, now)} ago"
    yield "session", "open" if read.reachable else f"none: {read.error or 'not reachable'}"
    if read.connect_seconds is not None:
        yield "connected in", f"{read.connect_seconds:.2f} s"


def _device(observation: Observation, device: str, now: float) -> Iterator[Section]:
    written = observation.inventory.devices[device]
    health = observation.report.devices.get(device)
    shape = f"{written.geometry.described}, " if written.geometry else ""
    yield _section(
        "place",
        ("rack", written.rack),
        ("shape", f"{shape}{counted(written.port_count, 'ports')}"),
        ("driver", written.driver),
        ("answered", f"{duration(now - health.read_at)} ago" if health and health.read_at is not None else "never"),
    )
    said = observation.devices.get(device)
    if said is not None and said.read_at is not None:
        yield _section(
            f"readings, {age(said.read_at, now)} old",
            ("temperature", None if said.temperature_c is None else f"{said.temperature_c:.1f} C"),
            ("alarms", None if said.alarms is None else len(said.alarms) or "none"),
        )
    here = [circuit.id for circuit in observation.circuits if observation.passing(circuit, device)]
    yield _section("circuits", *((name, observation.report.circuits[name].state) for name in here))


def _optics_line(optics: OpticsReading | None) -> str:
    if optics is None:
        return "no reading"
    return f"receives {power(optics.rx_power_dbm, ' dBm')}, sends {power(optics.tx_power_dbm, ' dBm')}"


def _unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}"
