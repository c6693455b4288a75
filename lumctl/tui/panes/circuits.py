"""Every circuit of the jobs: the transmitters that its receivers hear, and their power."""

from lumctl.health.states import CircuitEndHealth, CircuitHealth
from lumctl.inventory.wiring import Direction
from lumctl.tui.look.marks import Marks, power
from lumctl.tui.panes.rows import AGE_OF_READING, STATE, Cell, Column, Pane, Row, not_well, state_cell, worst_first
from lumctl.tui.views.records import RecordedLook


def circuit_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Every circuit of the jobs: the transmitters that its receivers hear and their power, worst first."""
    return worst_first(
        Row(
            circuit.id,
            circuit.id,
            circuit.state,
            (
                state_cell(circuit.state, marks),
                Cell(circuit.id),
                Cell(" / ".join(f"{power(end.rx_power_dbm):>5}" for end in receivers(circuit))),
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
        for circuit in seen.observation.report.circuits.values()
    )


def receivers(circuit: CircuitHealth) -> tuple[CircuitEndHealth, ...]:
    """The receiving ends: both of a duplex circuit, the second of a directed one."""
    return tuple(end for end in circuit.ends if end.expected is not None)


def _hears(ends: tuple[CircuitEndHealth, ...]) -> str:
    if ends and all(end.hears == end.expected for end in ends):
        return "as intended"
    # A receiver whose transmitter is not known is not wrong, only not shown.
    wrong = [f"{end.hears}, not {end.expected}" for end in ends if end.hears not in {None, end.expected}]
    return "; ".join(wrong) or "not shown"


CIRCUITS = Pane(
    "circuits",
    "Circuits",
    "circuits",
    "Circuits: what each receiver hears, and with how much light.",
    (
        STATE,
        Column("id", "CIRCUIT", 10, is_name=True),
        Column("power", "RX dBm", 13, has_numbers=True),
        Column("loss", "LOSS dB", 7, right=True),
        AGE_OF_READING,
        Column("hears", "HEARS", 11),
        Column("ends", "TX -> RX", 16),
    ),
    circuit_rows,
    lambda seen: not_well(c.state for c in seen.observation.report.circuits.values()),
    lists_components=True,
    can_act=True,
    short="Circ",
)
