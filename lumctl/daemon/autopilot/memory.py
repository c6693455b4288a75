"""The autopilot's memory of its own past in one rack, computed from its remarks in the journal.

A restart loses nothing: attempts, notifications, plans, stops and breakers are written to the journal before they have
any effect. This module reads neither a clock nor a store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from lumctl.daemon.autopilot.policy import BreakerState

REMARK, DECISION = "autopilot", "decision"
"""The kinds of the autopilot's remarks."""
WEEK_S, DAY_S, HOUR_S = 7 * 86_400.0, 86_400.0, 3600.0


class Event(StrEnum):
    """What a remark of kind ``autopilot`` reports."""

    STOP = "stop"
    START = "start"
    HALT = "halt"
    """The outcome of a run is unknown: the autopilot does nothing in this rack until an operator starts it again."""
    BREAKER_OPENED = "breaker-opened"
    BREAKER_CLOSED = "breaker-closed"
    ATTEMPT = "attempt"
    OUTCOME = "outcome"
    TOLD = "told"
    PLANNED = "planned"
    ASKED = "asked"
    ESCALATED = "escalated"


class RemarkEntry(Protocol):
    """A remark in the journal."""

    @property
    def at(self) -> float:
        """The time of the remark (seconds since the epoch)."""

    @property
    def kind(self) -> str:
        """The kind of the remark."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The content of the remark."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempted swap. ``outcome`` is ``None`` while the outcome is unknown."""

    at: float
    policy: str
    key: str
    accelerators: tuple[str, ...]
    plan: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Handled:
    """The last action about a fault; it is not repeated unless the fault began later than the action."""

    at: float
    event: Event
    policy: str
    plan: str | None = None


class AskState(StrEnum):
    """The state of a request for approval."""

    ASKED = "asked"
    APPROVED = "approved"
    REJECTED = "rejected"
    SPENT = "spent"
    """The plan was applied, or was stale."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to approve a plan. ``by`` names the operator who answered."""

    plan: str
    at: float
    expires_at: float
    state: AskState
    by: str = ""
    comment: str = ""


@dataclass(slots=True)
class AutopilotMemory:
    """The memory of one rack. ``asks``, ``last_change`` and ``queued`` come from the store, not from remarks."""

    stopped: str | None = None
    halted: str | None = None
    breakers: dict[str, BreakerState] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    handled: dict[str, Handled] = field(default_factory=dict)
    decided: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    """The requests for approval, by plan."""
    last_change: float | None = None
    """When the last change of the rack by any user ended; now if one is in progress (seconds since the epoch)."""
    queued: frozenset[str] = frozenset()
    """The accelerators that wait in the queue for a spare."""

    def take(self, remarks: Iterable[RemarkEntry]) -> None:
        """Apply remarks in order; ignore remarks that this version does not understand."""
        for remark in remarks:
            try:
                if remark.kind == REMARK:
                    self._take(remark.at, Event(remark.data["event"]), remark.data)
                elif remark.kind == DECISION:
                    for told in remark.data["decisions"]:
                        self.decided[str(told["key"])] = tuple(map(str, told["signature"]))
            except (KeyError, ValueError, TypeError):
                continue

    def _take(self, at: float, event: Event, data: Mapping[str, Any]) -> None:
        match event:
            case Event.STOP:
                self.stopped = f"by {data['who']}" + (f": {data['comment']}" if data.get("comment") else "")
            case Event.START:
                # Who starts the autopilot again has looked at the run whose outcome was unknown.
                self.stopped = self.halted = None
            case Event.HALT:
                self.halted = str(data["why"])
            case Event.BREAKER_OPENED:
                self.breakers[str(data["policy"])] = BreakerState(at, str(data["why"]))
            case Event.BREAKER_CLOSED:
                self.breakers[str(data["policy"])] = BreakerState(closed_at=at)
            case Event.ATTEMPT:
                accelerators = tuple(map(str, data["accelerators"]))
                self.attempts.append(
                    Attempt(at, str(data["policy"]), str(data["key"]), accelerators, str(data["plan"]))
                )
            case Event.OUTCOME:
                self.attempts = [
                    replace(each, outcome=str(data["outcome"])) if each.plan == data["plan"] else each
                    for each in self.attempts
                ]
            case Event.TOLD | Event.PLANNED | Event.ASKED | Event.ESCALATED:
                self.handled[str(data["key"])] = Handled(at, event, str(data["policy"]), data.get("plan"))

    def tried(self, *, since: float, accelerators: Iterable[str] | None = None) -> list[Attempt]:
        """The attempts since a time, for some accelerators or all, except attempts that were refused at once."""
        meant = None if accelerators is None else set(accelerators)
        begun = [a for a in self.attempts if a.at > since and a.outcome != "refused"]
        return [attempt for attempt in begun if meant is None or meant & set(attempt.accelerators)]

    @property
    def open_attempts(self) -> list[Attempt]:
        """The attempts whose outcome is not in the journal."""
        return [attempt for attempt in self.attempts if attempt.outcome is None]
