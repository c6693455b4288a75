"""The four tables: racks, accelerators, circuits, findings."""

from collections import Counter, defaultdict

from lumctl.fleet.readings import GpuReading
from lumctl.health.matching import gpu_readings
from lumctl.health.states import CircuitEndHealth, CircuitHealth, ComponentHealth, State, worst
from lumctl.inventory.wiring import Direction
from lumctl.site.observation import Observation
from lumctl.tui.marks import Marks, power
from lumctl.tui.rows import AGE, Cell, Column, Pane, Row, counts_cell, not_well, number_cell, state_cell, worst_first


def rack_rows(observation: Observation, marks: Marks) -> list[Row]:
    """Each rack with its meshes and hosts beneath it: what is there, and how much of it is well."""
    inventory, report = observation.inventory, observation.report
    accelerators, circuits = _accelerators_by_place(observation), _circuits_by_place(observation)

    def line(kind: str, name: str, health: ComponentHealth | None) -> Row:
        shown = name if kind == _RACK else f"  {name}"
        state = health.state if health else State.UNKNOWN
        counts = (counts_cell(accelerators[kind, name]), counts_cell(circuits[kind, name]))
        cells = (state_cell(state, marks), Cell(shown), Cell(kind), *counts)
        return Row(f"{kind}:{name}", name, state, cells, health.read_at if health else None)

    rows: list[Row] = []
    for rack in inventory.racks:
        devices = [line(d.kind, d.id, report.devices.get(d.id)) for d in inventory.light_devices if d.rack == rack]
        hosts = [line(_HOST, h.name, report.hosts.get(h.name)) for h in inventory.hosts.values() if h.rack == rack]
        beneath = worst_first([*devices, *hosts])
        state = worst((*(row.state for row in beneath), *accelerators[_RACK, rack], *circuits[_RACK, rack]))
        oldest = min((row.at for row in beneath if row.at is not None), default=None)
        rows += [line(_RACK, rack, ComponentHealth(rack, _RACK, state, read_at=oldest)), *beneath]
    return rows


_RACK, _HOST = "rack", "host"
_ByPlace = defaultdict[tuple[str, str], list[State]]


def _accelerators_by_place(observation: Observation) -> _ByPlace:
    """The states of the accelerators of each rack and host."""
    found: _ByPlace = defaultdict(list)
    for accelerator in observation.inventory.accelerators.values():
        health = observation.report.accelerators.get(accelerator.id)
        for place in ((_RACK, accelerator.rack), (_HOST, accelerator.host)):
            found[place].append(health.state if health else State.UNKNOWN)
    return found


def _circuits_by_place(observation: Observation) -> _ByPlace:
    """The states of the circuits of each rack, device, and host at which one ends."""
    inventory = observation.inventory
    found: _ByPlace = defaultdict(list)
    for circuit in observation.report.circuits.values():
        device = inventory.devices[circuit.device]
        hosts = {(_HOST, inventory.transponders[end.transponder].host) for end in circuit.ends}
        for place in {(_RACK, device.rack), (str(device.kind), device.id), *hosts}:
            found[place].append(circuit.state)
    return found


def accelerator_rows(observation: Observation, marks: Marks) -> list[Row]:
    """Every accelerator with what it is for and what was read of it, worst first."""
    rows = []
    readings = gpu_readings(observation.inventory, observation.snapshot)
    for accelerator in observation.inventory.accelerators.values():
        health = observation.report.accelerators.get(accelerator.id)
        state = health.state if health else State.UNKNOWN
        place = observation.place_of(accelerator.id)
        gpu = readings.get(accelerator.id)
        cells = (
            state_cell(state, marks),
            Cell(accelerator.id),
            Cell(accelerator.host),
            Cell(f"{place[0]}/{place[1]}" if place else observation.role_of(accelerator.id)),
            number_cell(gpu.temperature_c if gpu else None, "C"),
            number_cell(gpu.utilization_percent if gpu else None, "%"),
            _memory_cell(gpu),
            number_cell(gpu.ecc_volatile_uncorrectable if gpu else None),
        )
        rows.append(Row(accelerator.id, accelerator.id, state, cells, health.read_at if health else None))
    return worst_first(rows)


def _memory_cell(gpu: GpuReading | None) -> Cell:
    if gpu is None or gpu.memory_used_mib is None or gpu.memory_total_mib is None:
        return Cell("-")
    return Cell(f"{gpu.memory_used_mib / 1024:.0f}/{gpu.memory_total_mib / 1024:.0f}G")


def circuit_rows(observation: Observation, marks: Marks) -> list[Row]:
    """Every circuit that a job needs: whom its receivers hear and with how much light, worst first."""
    return worst_first(
        Row(
            circuit.id,
            circuit.id,
            circuit.state,
            (
                state_cell(circuit.state, marks),
                Cell(circuit.id),
                Cell(" / ".join(power(end.rx_power_dbm) for end in receivers(circuit))),
                Cell("-" if circuit.loss_db is None else f"{circuit.loss_db:.1f}"),
                Cell(_hears(receivers(circuit))),
                Cell(
                    f" {marks.arrow(duplex=circuit.direction == Direction.DUPLEX)} ".join(
                        end.transponder for end in circuit.ends
                    )
                ),
            ),
            circuit.read_at,
        )
        for circuit in observation.report.circuits.values()
    )


def receivers(circuit: CircuitHealth) -> tuple[CircuitEndHealth, ...]:
    """The ends that are meant to hear somebody: both of a duplex circuit, the second of a directed one."""
    return tuple(end for end in circuit.ends if end.expected is not None)


def _hears(ends: tuple[CircuitEndHealth, ...]) -> str:
    if ends and all(end.hears == end.expected for end in ends):
        return "as intended"
    wrong = [f"{end.hears}, not {end.expected}" for end in ends if end.hears not in {None, end.expected}]
    return "; ".join(wrong) or "not shown"


def finding_rows(observation: Observation, marks: Marks) -> list[Row]:
    """Every finding, worst first: what is wrong, how it shows, and what to do or who knows of it."""
    rows = []
    seen: Counter[tuple[str, str]] = Counter()
    for finding in observation.report.findings():
        # A rule may speak of one component twice (two error numbers in one log), and a row's key must be its own.
        seen[finding.component, finding.rule] += 1
        key = f"{finding.component}|{finding.rule}|{seen[finding.component, finding.rule]}"
        said = f"acknowledged {finding.acknowledged}" if finding.acknowledged else finding.advice
        texts = (finding.component, finding.rule, f"{finding.evidence}\n{said}")
        cells = (state_cell(finding.state, marks), *map(Cell, texts))
        rows.append(Row(key, finding.component, finding.state, cells, finding.since))
    return rows


# Texts without a bound stand last: whatever their length, the age is in sight.
_STATE = Column("state", "STATE", 10)
_AGE = Column(AGE, "AGE", 5, right=True)

PANES: tuple[Pane, ...] = (
    Pane(
        "racks",
        "Racks",
        "racks, meshes and hosts",
        "Racks with their meshes and hosts, and how much in each is well.",
        (
            _STATE,
            Column("name", "NAME", 12),
            Column("kind", "KIND", 6),
            _AGE,
            Column("accelerators", "ACCELERATORS", 16),
            Column("circuits", "CIRCUITS", 16),
        ),
        rack_rows,
        lambda o: not_well(h.state for group in (o.report.hosts, o.report.devices) for h in group.values()),
    ),
    Pane(
        "accelerators",
        "Accelerators",
        "accelerators",
        "Accelerators: what runs on each, temperature, load, memory, errors.",
        (
            _STATE,
            Column("id", "ID", 8),
            Column("host", "HOST", 4),
            Column("place", "JOB/RANK", 8),
            Column("temperature", "TEMP", 4, right=True),
            Column("utilization", "UTIL", 4, right=True),
            Column("memory", "MEM", 6, right=True),
            Column("ecc", "ECC", 3, right=True),
            _AGE,
        ),
        accelerator_rows,
        lambda o: not_well(h.state for h in o.report.accelerators.values()),
    ),
    Pane(
        "circuits",
        "Circuits",
        "circuits",
        "Circuits: whom each receiver hears, and with how much light.",
        (
            _STATE,
            Column("id", "CIRCUIT", 10),
            Column("power", "RX dBm", 11),
            Column("loss", "LOSS dB", 7, right=True),
            _AGE,
            Column("hears", "HEARS", 11),
            Column("ends", "ENDS", 16),
        ),
        circuit_rows,
        lambda o: not_well(c.state for c in o.report.circuits.values()),
    ),
    Pane(
        "findings",
        "Findings",
        "findings",
        "Findings: what is wrong, how it shows, what to do.",
        (
            _STATE,
            Column("component", "COMPONENT", 12),
            Column("rule", "RULE", 12),
            Column(AGE, "FOR", 5, right=True),
            Column("evidence", "EVIDENCE, AND WHAT TO DO", 30),
        ),
        finding_rows,
        lambda o: tuple(finding.state for finding in o.report.findings() if finding.acknowledged is None),
        goes_stale=False,
        lines=2,
    ),
)
