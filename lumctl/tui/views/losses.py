"""Loss budgets: a histogram of the receivers' margins (dB), and the receivers with the least margin; pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from lumctl.health.observation import Observation
from lumctl.health.states import CircuitEndHealth, CircuitHealth, State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks
from lumctl.tui.views.readings import optics_of

_MOST_BINS = 20
_LABEL, _COUNT = 14, 6
_WORST = 10


@dataclass(frozen=True, slots=True)
class Loss:
    """The light path to a receiver: measured loss, expected loss and budget, in dB.

    The budget is the sent power above the receiver's need; the margin is the budget minus the measured loss. The
    measured loss is infinite if no light arrives.
    """

    circuit: str
    receiver: str
    measured_db: float
    expected_db: float | None
    budget_db: float

    @property
    def margin_db(self) -> float:
        """The remaining budget."""
        return self.budget_db - self.measured_db


def losses_of(observation: Observation, device: str | None = None) -> tuple[Loss, ...]:
    """The losses of all circuits, or of those through a device, without receivers whose power was not read."""
    found = []
    for needed in observation.circuits:
        circuit = observation.report.circuits.get(needed.id)
        if circuit is not None and (device is None or device in observation.devices_of(needed)):
            found += [loss for end in circuit.ends if (loss := _loss(observation, circuit, end)) is not None]
    return tuple(found)


def _loss(observation: Observation, circuit: CircuitHealth, end: CircuitEndHealth) -> Loss | None:
    if end.expected is None or end.rx_power_dbm is None:
        return None
    receiver = observation.inventory.transponders[end.transponder]
    sender = observation.inventory.transponders.get(end.expected)
    if sender is None:
        return None
    optics = optics_of(observation, sender)
    sent = optics.tx_power_dbm if optics is not None else None
    if sent is None or not math.isfinite(sent):  # not read, or dark: use the nominal power
        sent = sender.tx_power_dbm
    budget = sent - receiver.rx_sensitivity_dbm
    return Loss(circuit.id, end.transponder, sent - end.rx_power_dbm, circuit.loss_db, budget)


def loss_lines(observation: Observation, device: str | None, marks: Marks, width: int) -> Iterator[Text]:
    """The histogram and the least margins, at most ``width`` characters wide."""
    losses, wanted = losses_of(observation, device), observation.inventory.thresholds.rx_margin_db
    if not losses:
        yield Text("no receiver of a circuit has been read", style=QUIET_STYLE)
        return
    budgets = sorted({round(loss.budget_db, 1) for loss in losses})
    span = f"{budgets[0]:g}" if len(budgets) == 1 else f"{budgets[0]:g} to {budgets[-1]:g}"
    yield Text(f"{len(losses)} receivers; budget {span} dB, of which {wanted:g} dB should remain")
    yield Text()
    yield Text(f"{'LEFT OF IT, dB':>{_LABEL}} {'COUNT':>{_COUNT}}", style=HEADING_STYLE)
    yield from _histogram(losses, wanted, marks, width)
    yield Text()
    yield from _least(losses, wanted)


def _state(margin_db: float, wanted_db: float) -> State:
    return State.FAILED if margin_db < 0 else State.DEGRADED if margin_db < wanted_db else State.OK


def _histogram(losses: Sequence[Loss], wanted: float, marks: Marks, width: int) -> Iterator[Text]:
    """A bar for each range of margins, the least first; receivers without light have a bar of their own."""
    finite = [loss.margin_db for loss in losses if math.isfinite(loss.margin_db)]
    dark = len(losses) - len(finite)
    if dark:
        yield _bar("dark", dark, len(losses), State.FAILED, marks, width)
    if not finite:
        return
    low, high = math.floor(min(finite)), math.floor(max(finite)) + 1
    step = next(size for size in (0.5, 1, 2, 5, 10, 20, 50, 100, 1000) if (high - low) / size <= _MOST_BINS)
    # Ranges begin at multiples of the step, so that 0 dB, where a circuit fails, is always the border of two.
    first, last = math.floor(min(finite) / step), math.floor(max(finite) / step)
    counts = dict.fromkeys(range(first, last + 1), 0)
    for margin in finite:
        counts[math.floor(margin / step)] += 1
    most = max(counts.values())
    for number, count in counts.items():
        begin = number * step
        yield _bar(f"{begin:g} to {begin + step:g}", count, most, _state(begin, wanted), marks, width)


def _bar(label: str, count: int, most: int, state: State, marks: Marks, width: int) -> Text:
    room = max(width - _LABEL - _COUNT - 3, 1)
    # One receiver among a thousand is seen as well.
    length = max(round(room * count / most), 1) if count else 0
    text = Text(f"{label:>{_LABEL}} {count:>{_COUNT}} ", no_wrap=True)
    return text.append(("#" if marks.ascii_only else "█") * length, style=STATE_STYLES[state])


def _least(losses: Sequence[Loss], wanted: float) -> Iterator[Text]:
    """A table of the receivers with the least margin."""
    worst = sorted(losses, key=lambda loss: loss.margin_db)[:_WORST]
    name = max(len(loss.receiver) for loss in worst)
    circuit = max(len(loss.circuit) for loss in worst)
    titles = f"{'LEAST LEFT':<{name}}  {'CIRCUIT':<{circuit}} {'LOSS':>7} {'EXPECTED':>9} {'BUDGET':>7} {'LEFT':>7}"
    yield Text(titles, style=HEADING_STYLE, no_wrap=True)
    for loss in worst:
        expected = "-" if loss.expected_db is None else f"{loss.expected_db:.1f}"
        measured, left = (f"{v:.1f}" if math.isfinite(v) else "dark" for v in (loss.measured_db, loss.margin_db))
        line = f"{loss.receiver:<{name}}  {loss.circuit:<{circuit}} {measured:>7} {expected:>9} {loss.budget_db:>7.1f}"
        text = Text(line, no_wrap=True)
        state = _state(loss.margin_db, wanted)
        yield text.append(f" {left:>7}", style=STATE_STYLES[state] if state is not State.OK else "")
