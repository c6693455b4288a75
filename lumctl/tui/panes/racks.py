"""The table of racks with their devices and hosts, and the states of their accelerators and circuits."""

from collections import defaultdict
from dataclasses import replace

from lumctl.health.observation import Observation, host_states, rolled_up
from lumctl.health.states import SEVERITY, ComponentHealth, State
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import (
    AGE_OF_READING,
    STATE,
    Cell,
    Column,
    Pane,
    Row,
    counts_cell,
    not_well,
    state_cell,
    worst_first,
)
from lumctl.tui.views.records import RecordedLook


def rack_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Each rack, worst first, with its devices and hosts below it; each with its accelerators and circuits by state."""
    observation = seen.observation
    inventory, report = observation.inventory, observation.report
    accelerators, circuits = _accelerators_by_place(observation), _circuits_by_place(observation)
    hosts = host_states(observation)

    def line(kind: str, name: str, health: ComponentHealth | None) -> Row:
        shown = name if kind == _RACK else f"  {name}"
        state = hosts[name] if kind == _HOST else health.state if health else State.UNKNOWN
        counts = (counts_cell(accelerators[kind, name]), counts_cell(circuits[kind, name]))
        cells = (state_cell(state, marks), Cell(shown), Cell(kind), *counts)
        return Row(f"{kind}:{name}", name, state, cells, health.read_at if health else None)

    within: dict[str, list[Row]] = {rack: [] for rack in inventory.racks}
    for device in inventory.light_devices:
        within[device.rack].append(line(device.kind, device.id, report.devices.get(device.id)))
    for host in inventory.hosts.values():
        within[host.rack].append(line(_HOST, host.name, report.hosts.get(host.name)))
    racks: list[list[Row]] = []
    for rack, lines in within.items():
        beneath = worst_first(lines)
        states = (*(row.state for row in beneath), *accelerators[_RACK, rack], *circuits[_RACK, rack])
        state = rolled_up(states)
        # As old as its oldest part: newer readings of the others do not make up for a host that is silent.
        oldest = min((row.at for row in beneath if row.at is not None), default=None)
        head = line(_RACK, rack, ComponentHealth(rack, _RACK, state, read_at=oldest))
        racks.append([head, *(replace(row, beneath=head.key) for row in beneath)])
    racks.sort(key=lambda rows: -SEVERITY.index(rows[0].state))
    return [row for rows in racks for row in rows]


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
    """The states of the circuits in each rack and device, and of those that end at each host."""
    inventory = observation.inventory
    found: _ByPlace = defaultdict(list)
    for circuit in observation.report.circuits.values():
        devices = [inventory.devices[name] for name in circuit.devices]
        # Sets, so that a circuit with both ends in one place counts there once.
        hosts = {(_HOST, inventory.transponders[end.transponder].host) for end in circuit.ends}
        racks = {(_RACK, device.rack) for device in devices}
        for place in {*racks, *((str(device.kind), device.id) for device in devices), *hosts}:
            found[place].append(circuit.state)
    return found


RACKS = Pane(
    "racks",
    "Racks",
    "racks, meshes and hosts",
    "Racks with their meshes and hosts, and how many components of each are healthy.",
    (
        STATE,
        Column("name", "NAME", 12, is_name=True),
        Column("kind", "KIND", 6),
        AGE_OF_READING,
        Column("accelerators", "ACCELERATORS", 16),
        Column("circuits", "CIRCUITS", 16),
    ),
    rack_rows,
    lambda seen: not_well(
        (
            *host_states(seen.observation).values(),
            *(health.state for health in seen.observation.report.devices.values()),
        )
    ),
    lists_components=True,
    can_act=True,
    folds_at=1,
    one="rack, mesh or host",
)
