"""The light at the receivers of a change: power before and now, and the transmitter that each receiver hears."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from lumctl.change.plan import read_circuits, receivers
from lumctl.health.states import State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, age, power
from lumctl.tui.views.readings import optics_of
from lumctl.tui.views.records import RecordedLook

Proved = Mapping[str, str]
"""The evidence that a receiver hears its transmitter, in words, by receiver."""
Heard = Mapping[str, str | None]
"""The transmitter that a receiver hears, by receiver; ``None`` if unknown."""
Powers = Mapping[str, float | None]
"""The received power in dBm, by receiver; minus infinity means no light, ``None`` no reading."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver of a circuit, and the transponder that it should hear."""

    circuit: str
    transponder: str
    meant: str


def planned_receivers(plan: Mapping[str, Any]) -> tuple[Receiver, ...]:
    """The receivers of the circuits that a plan's document adds; empty for a plan that moves no light."""
    added = read_circuits(plan.get("circuits", {}).get("add", ()))
    return tuple(Receiver(circuit.id, *pair) for circuit in added for pair in receivers(circuit))


def powers_of(seen: RecordedLook | None, which: Iterable[Receiver]) -> dict[str, float | None]:
    """The power (dBm) at these receivers in one observation."""
    return {receiver.transponder: _power(seen, receiver.transponder) for receiver in which}


def heard_by(seen: RecordedLook | None, which: Iterable[Receiver]) -> dict[str, str | None]:
    """The transmitter that each of these receivers hears in one observation; ``None`` if unknown."""
    ends = [end for circuit in seen.observation.report.circuits.values() for end in circuit.ends] if seen else []
    hears = {end.transponder: end.hears for end in ends}
    return {receiver.transponder: hears.get(receiver.transponder) for receiver in which}


def _power(seen: RecordedLook | None, name: str) -> float | None:
    lane = seen.observation.inventory.transponders.get(name) if seen else None
    if seen is None or lane is None:
        return None
    optics = optics_of(seen.observation, lane)
    return optics.rx_power_dbm if optics else None


def proof_words(evidence: str, seconds: float) -> str:
    """The evidence of a proof as text."""
    return f"proved by {evidence} in {seconds:.2f} s"


def light_text(
    which: Iterable[Receiver],
    before: Powers,
    seen: RecordedLook | None,
    marks: Marks,
    now: float,
    *,
    settled_at: float | None,
    proved: Proved | None = None,
    unchanged: Heard | None = None,
) -> Text:
    """A line for each receiver: power before and now, and the transmitter that it hears.

    ``settled_at`` is the end of the change (``None``: in progress). Earlier readings do not show its result, so the
    evidence of the proof (``proved``) is shown until there are newer ones. If nothing of the change is in force,
    ``unchanged`` has what each receiver heard before it, and should hear again.
    """
    text, which = Text(), tuple(which)
    if not which:
        return text
    at = seen.observation.at if seen else None
    text.append("light: power before -> now", style=HEADING_STYLE)
    is_settled = at is not None and settled_at is not None and at >= settled_at
    is_old = settled_at is not None and not is_settled
    read = "as proved; not read since" if is_old and proved else "not read yet" if at is None else ""
    text.append(f", {read or f'read {age(at, now)} ago'}\n", style=QUIET_STYLE)
    powers, wide = powers_of(seen, which), max(len(receiver.transponder) for receiver in which)
    for receiver in which:
        text.append(f"  {receiver.transponder:<{wide}}")
        text.append(f"  {power(before.get(receiver.transponder)):>6}", style=QUIET_STYLE)
        how = (proved or {}).get(receiver.transponder)
        is_proved_only = how is not None and is_old
        text.append(f" -> {'-' if is_proved_only else power(powers[receiver.transponder], ' dBm'):<10}")
        heard = None if is_proved_only else _heard(seen, receiver)
        if unchanged is not None:
            state, said = _said_unchanged(heard, unchanged.get(receiver.transponder), is_settled=is_settled)
        elif is_proved_only:
            state, said = State.OK, f"hears {receiver.meant} ({how})"
        elif how is not None and heard is None:
            state, said = State.UNKNOWN, f"heard {receiver.meant} ({how}); not shown since"
        else:
            state, said = _said(heard, receiver.meant, is_settled=is_settled, is_over=settled_at is not None)
        text.append(f"  {marks.glyphs.get(state, ' ')} {said}\n", style=STATE_STYLES[state])
    return text


def _said(heard: str | None, meant: str, *, is_settled: bool, is_over: bool) -> tuple[State, str]:
    if heard is None:
        return State.UNKNOWN, f"does not show that it hears {meant}" if is_over else "not proved yet"
    if heard == meant:
        return State.OK, f"hears {heard}"
    # While light is being moved, a receiver that still hears its old transmitter is no fault.
    return (State.FAILED, f"hears {heard}, not {meant}") if is_settled else (State.DISABLED, f"hears {heard} so far")


def _said_unchanged(heard: str | None, before: str | None, *, is_settled: bool) -> tuple[State, str]:
    if is_settled and heard is not None and before is not None and heard != before:
        return State.FAILED, f"hears {heard}, but heard {before} before"
    return State.DISABLED, f"unchanged: hears {before}" if before is not None else "unchanged"


def _heard(seen: RecordedLook | None, receiver: Receiver) -> str | None:
    """The transmitter that a receiver hears in the newest observation; ``None`` if unknown."""
    circuit = seen.observation.report.circuits.get(receiver.circuit) if seen else None
    ends = circuit.ends if circuit else ()
    return next((end.hears for end in ends if end.transponder == receiver.transponder), None)
