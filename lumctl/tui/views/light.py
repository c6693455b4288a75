"""The light at the receivers of a change: power before, power now, and the transmitter that each one hears."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from lumctl.change.plan import read_circuits, receivers
from lumctl.health.states import State
from lumctl.tui.look.marks import HEADING_STYLE, QUIET_STYLE, STATE_STYLES, Marks, age, power
from lumctl.tui.views.records import RecordedLook

Powers = Mapping[str, float | None]
"""By receiver, its power in dBm; minus infinity is darkness, ``None`` means no reading."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver of a circuit, and the transponder that it is meant to hear."""

    circuit: str
    transponder: str
    meant: str


def planned_receivers(plan: Mapping[str, Any]) -> tuple[Receiver, ...]:
    """The receivers of the circuits that a plan's document puts there; empty for a plan that moves no light."""
    added = read_circuits(plan.get("circuits", {}).get("add", ()))
    return tuple(Receiver(circuit.id, *pair) for circuit in added for pair in receivers(circuit))


def powers_of(seen: RecordedLook | None, which: Iterable[Receiver]) -> dict[str, float | None]:
    """What arrives at some receivers at one look."""
    return {receiver.transponder: _power(seen, receiver.transponder) for receiver in which}


def _power(seen: RecordedLook | None, name: str) -> float | None:
    lane = seen.observation.inventory.transponders.get(name) if seen else None
    if seen is None or lane is None:
        return None
    host = seen.observation.snapshot.hosts.get(lane.host)
    optics = host.optics.get(lane.interface) if host else None
    return optics.rx_power_dbm if optics else None


def light_text(
    which: Iterable[Receiver],
    before: Powers,
    seen: RecordedLook | None,
    marks: Marks,
    now: float,
    settled_at: float | None,
) -> Text:
    """A line for each receiver: power before and now, and the transmitter that it hears.

    Readings from before ``settled_at`` (``None``: still in progress) do not show the result of the change.
    """
    text, which = Text(), tuple(which)
    if not which:
        return text
    at = seen.observation.at if seen else None
    text.append("light", style=HEADING_STYLE)
    text.append(f", read {age(at, now)} ago\n" if at is not None else ", not read yet\n", style=QUIET_STYLE)
    is_settled = at is not None and settled_at is not None and at >= settled_at
    powers, wide = powers_of(seen, which), max(len(receiver.transponder) for receiver in which)
    for receiver in which:
        text.append(f"  {receiver.transponder:<{wide}}")
        text.append(f"  {power(before.get(receiver.transponder)):>6}", style=QUIET_STYLE)
        text.append(f" -> {power(powers[receiver.transponder], ' dBm'):<10}")
        state, said = _said(_heard(seen, receiver), receiver.meant, is_settled=is_settled)
        text.append(f"  {marks.glyphs.get(state, ' ')} {said}\n", style=STATE_STYLES[state])
    return text


def _said(heard: str | None, meant: str, *, is_settled: bool) -> tuple[State, str]:
    if heard is None:
        return State.UNKNOWN, f"does not show that it hears {meant}"
    if heard == meant:
        return State.OK, f"hears {heard}"
    return (State.FAILED, f"hears {heard}, not {meant}") if is_settled else (State.DISABLED, f"hears {heard} so far")


def _heard(seen: RecordedLook | None, receiver: Receiver) -> str | None:
    """The transmitter that a receiver was shown to hear at the last observation."""
    circuit = seen.observation.report.circuits.get(receiver.circuit) if seen else None
    ends = circuit.ends if circuit else ()
    return next((end.hears for end in ends if end.transponder == receiver.transponder), None)
