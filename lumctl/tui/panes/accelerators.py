"""Every accelerator with its use and its readings."""

from lumctl.fleet.readings import GpuReading
from lumctl.health.identity import gpu_readings
from lumctl.health.observation import places
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import initial_assignment
from lumctl.tui.look.marks import Marks
from lumctl.tui.panes.rows import (
    AGE_OF_READING,
    STATE,
    Cell,
    Column,
    Pane,
    Row,
    not_well,
    number_cell,
    state_cell,
    worst_first,
)
from lumctl.tui.views.records import RecordedLook


def accelerator_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Every accelerator with its use and its readings, worst first."""
    rows, observation = [], seen.observation
    readings = gpu_readings(observation.inventory, observation.snapshot)
    states = {state: state_cell(state, marks) for state in State}
    placed, first_placed = observation.places(), places(initial_assignment(observation.inventory))
    for accelerator in observation.inventory.accelerators.values():
        health = observation.report.accelerators.get(accelerator.id)
        state = health.state if health else State.UNKNOWN
        place = placed.get(accelerator.id)
        # One that a job had at first and has no longer was replaced: it is out of service, whatever its role was.
        role = Role.DISABLED if accelerator.id in first_placed else accelerator.role
        gpu = readings.get(accelerator.id)
        cells = (
            states[state],
            Cell(accelerator.id),
            Cell(accelerator.host),
            Cell(f"{place[0]}/{place[1]}" if place else role),
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


ACCELERATORS = Pane(
    "accelerators",
    "Accelerators",
    "accelerators",
    "Accelerators: what runs on each, temperature, load, memory, errors.",
    (
        STATE,
        Column("id", "ID", 8, is_name=True),
        Column("host", "HOST", 4, is_name=True),
        Column("place", "JOB/RANK", 8, is_name=True),
        Column("temperature", "TEMP", 4, right=True),
        Column("utilization", "UTIL", 4, right=True),
        Column("memory", "MEM", 6, right=True),
        Column("ecc", "ECC", 3, right=True),
        AGE_OF_READING,
    ),
    accelerator_rows,
    lambda seen: not_well(h.state for h in seen.observation.report.accelerators.values()),
    lists_components=True,
    can_act=True,
    short="Accel",
)
