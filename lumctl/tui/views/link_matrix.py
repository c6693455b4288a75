"""The link matrix of a rail: which receiver hears which transmitter, with how much power and margin; pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from lumctl.health.observation import Observation
from lumctl.health.states import CircuitEndHealth, CircuitHealth, State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, power

_NUMBER, _COLUMN = 4, 2
_VALUES = 17
"""The width of the values: power and margin."""


@dataclass(frozen=True, slots=True)
class MatrixReceiver:
    """A receiver of a circuit: its intended and its actual transmitter, its power and its margin (dB).

    The margin is the power above the receiver's need; ``None`` if no power was read. ``state`` is failed if it hears
    another transmitter or the margin is negative, degraded if the margin is less than required, unknown if not read.
    """

    transponder: str
    expected: str
    hears: str | None
    rx_power_dbm: float | None
    margin_db: float | None
    state: State
    circuit: str


def receivers_on(observation: Observation, device: str) -> tuple[MatrixReceiver, ...]:
    """The receivers of the circuits that end at a device, in the order of their ports."""
    ends = [
        (circuit, end)
        for circuit in observation.report.circuits.values()
        for end in circuit.ends
        if end.device == device and end.expected is not None
    ]
    return tuple(_receiver(observation, *each) for each in sorted(ends, key=lambda each: each[1].port))


def _receiver(observation: Observation, circuit: CircuitHealth, end: CircuitEndHealth) -> MatrixReceiver:
    needs = observation.inventory.transponders[end.transponder].rx_sensitivity_dbm
    margin = None if end.rx_power_dbm is None else end.rx_power_dbm - needs
    wanted = observation.inventory.thresholds.rx_margin_db
    if margin is None:
        state = State.UNKNOWN
    # No light is minus infinity, and so has a negative margin.
    elif margin < 0 or end.hears not in {None, end.expected}:
        state = State.FAILED
    else:
        state = State.DEGRADED if margin < wanted else State.OK
    return MatrixReceiver(end.transponder, str(end.expected), end.hears, end.rx_power_dbm, margin, state, circuit.id)


def matrix_lines(observation: Observation, device: str, marks: Marks, width: int) -> Iterator[Text]:
    """The matrix, at most ``width`` characters wide: a row for each receiver, a column for each transmitter.

    Rows and columns have the same order. If the columns do not fit, each row names the transmitter instead.
    """
    receivers = receivers_on(observation, device)
    if not receivers:
        yield Text(f"no circuit passes {device}", style=QUIET_STYLE)
        return
    names = [each.transponder for each in receivers]
    transmitters = list(dict.fromkeys([*names, *(each.expected for each in receivers)]))
    label = max(map(len, transmitters)) + 1
    drawn = _NUMBER + label + _COLUMN * len(transmitters) + _VALUES <= width
    yield from _summary(receivers)
    if drawn:
        yield from _heading(transmitters, label)
    else:
        titles = f"{'':{_NUMBER}}{'RECEIVER':<{label}} {'HEARS':<{label}} {'RX dBm':>8} {'MARGIN':>8}"
        yield Text(titles, style=HEADING_STYLE)
    for number, receiver in enumerate(receivers):
        row = Text(no_wrap=True).append(f"{number:>{_NUMBER - 1}} ", QUIET_STYLE)
        row.append(f"{receiver.transponder:<{label}}", style="" if _is_ok(receiver) else STATE_STYLES[receiver.state])
        if drawn:
            _append_cells(row, receiver, transmitters, marks)
        else:
            heard = receiver.hears or ("-" if receiver.rx_power_dbm is None else "not shown")
            row.append(f" {heard:<{label}}", style=STATE_STYLES[State.FAILED] if _hears_wrong(receiver) else "")
        _append_values(row, receiver)
        yield row
    if drawn:
        ok, failed, unknown = (marks.glyphs.get(state, "") for state in (State.OK, State.FAILED, State.UNKNOWN))
        said = (
            f"{ok} hears it as intended, {unknown} light arrives without proof of its source, {failed} should hear it"
        )
        yield Text(f"{said}, ! hears it but should not", style=QUIET_STYLE)


def _is_ok(receiver: MatrixReceiver) -> bool:
    return receiver.state is State.OK


def _hears_wrong(receiver: MatrixReceiver) -> bool:
    return receiver.hears not in {None, receiver.expected}


def _summary(receivers: Sequence[MatrixReceiver]) -> Iterator[Text]:
    wrong = [each for each in receivers if each.state is State.FAILED]
    thin = [each for each in receivers if each.state is State.DEGRADED]
    proved = sum(each.hears == each.expected for each in receivers)
    text = Text(f"{proved} of {len(receivers)} receivers are proved to hear their transmitter")
    if wrong:
        text.append(f"; {len(wrong)} hear no light, or the wrong one", style=STATE_STYLES[State.FAILED])
    if thin:
        text.append(f"; {len(thin)} with too little margin", style=STATE_STYLES[State.DEGRADED])
    yield text


def _heading(transmitters: Sequence[str], label: int) -> Iterator[Text]:
    """The lines above the matrix: the transmitters' numbers, written downwards, and the titles of the values."""
    digits = len(str(len(transmitters) - 1))
    left = "transmitter".rjust(_NUMBER + label)
    for digit in range(digits):
        numbers = "".join(f"{str(number).rjust(digits)[digit]:>{_COLUMN}}" for number in range(len(transmitters)))
        last = digit == digits - 1
        line = f"{left if last else '':{_NUMBER + label}}{numbers}"
        yield Text(line + (f" {'RX dBm':>7} {'MARGIN':>8}" if last else ""), style=HEADING_STYLE, no_wrap=True)


def _append_cells(row: Text, receiver: MatrixReceiver, transmitters: Sequence[str], marks: Marks) -> None:
    for transmitter in transmitters:
        glyph, style = ".", QUIET_STYLE
        if transmitter == receiver.expected:
            proved = receiver.hears == transmitter
            state = State.OK if proved else State.UNKNOWN
            if receiver.state is State.FAILED:
                state = State.FAILED
            glyph, style = marks.glyphs.get(state, "?"), STATE_STYLES[state]
        elif transmitter == receiver.hears:
            glyph, style = "!", STATE_STYLES[State.FAILED]
        row.append(f"{glyph:>{_COLUMN}}", style=style)


def _append_values(row: Text, receiver: MatrixReceiver) -> None:
    margin = receiver.margin_db
    dark = margin == float("-inf")
    said = "-" if margin is None or dark else f"{margin:+.1f} dB"
    row.append(
        f" {power(receiver.rx_power_dbm):>7} {said:>8}", style=STATE_STYLES[receiver.state] * (not _is_ok(receiver))
    )
