"""Open cases and what receivers know about each, so that no receiver is notified twice of the same change."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lumctl.daemon.notifications.message import Case, CaseOccasion, Notification, cases_of, states_of
from lumctl.files import write_whole
from lumctl.health.observation import Observation, rack_of
from lumctl.health.states import HARMLESS, SEVERITY, State

NOTES_SCHEMA = "lumctl/daemon-notes/v1"
FILE = "watch.json"


class NotificationFile:
    """A small file next to the store that tells the next daemon what receivers know. Any thread may use it."""

    def __init__(self, path: Path) -> None:
        """Read the file of an earlier daemon; ignore invalid content."""
        self._path = path
        self._lock = threading.Lock()
        self._unsaved = False
        self._told: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict) and found.get("schema") == NOTES_SCHEMA and isinstance(found.get("told"), dict):
                self._told = found["told"]

    @property
    def told(self) -> Mapping[str, Any]:
        """The knowledge of receivers, by case."""
        return self._told

    def note(self, told: Mapping[str, Any]) -> None:
        """Replace the content; :meth:`save` writes it."""
        with self._lock:
            self._told = dict(told)
            self._unsaved = True

    def save(self) -> bool:
        """Write the content if it changed; return whether it had changed.

        Raises:
            OSError: the file cannot be written; the next call tries again.
        """
        with self._lock:
            if not self._unsaved:
                return False
            write_whole(self._path, json.dumps({"schema": NOTES_SCHEMA, "told": self._told}))
            self._unsaved = False
            return True


AGAIN_AFTER_S = 600.0
"""The time after which an undelivered notification is sent again, if the case is still open."""


@dataclass(frozen=True, slots=True)
class _Open:
    """An open case as receivers know it, or will know it once their notification has arrived."""

    key: str
    component: str
    rule: str
    state: State
    since: float
    opened_at: float
    told_at: float
    rack: str
    summary: str


class NotificationLedger:
    """Turns reports into notifications.

    ``delivered`` and ``undelivered`` may be called from a thread other than the caller of ``review``.
    """

    def __init__(self, notes: NotificationFile, *, settle_s: float = 0.0, remind_after_s: float = 0.0) -> None:
        """``settle_s`` is how long a case must last before it is reported: in that time its cause may be found."""
        self._notes = notes
        self._settle_s = settle_s
        self._remind_after_s = remind_after_s
        self._lock = threading.Lock()
        self._told = _read(notes.told)
        self._open = dict(self._told)
        self._seen_at: dict[str, float] = {}
        self._cases: Mapping[str, Case] = {}
        """The cases of the newest observation."""
        self._lost: dict[str, float | None] = {}
        """Cases whose notification could not be delivered, and when they are notified again."""

    def review(self, look: Observation) -> list[Notification]:
        """The notifications that are due: for cases that are new, worse or due for a reminder, then for ended cases."""
        cases = cases_of(look.report)
        states = states_of(look.report)
        now = look.at
        # If the clock was set back, a known case counts from now.
        self._seen_at = {key: min(self._seen_at.get(key, now), now) for key in cases}
        with self._lock:
            self._cases = cases
            self._reset_lost(now)
            news = [self._news(case, look) for case in cases.values() if not case.silent]
            gone = [entry for key, entry in self._open.items() if key not in cases and _is_over(entry, states)]
            for entry in gone:
                del self._open[entry.key]
        resolved = [_resolved(entry, now, look.target) for entry in gone]
        return [*(each for each in news if each is not None), *resolved]

    def delivered(self, notification: Notification) -> None:
        """Note that a receiver accepted a notification, so that the next daemon does not send it again."""
        key = notification.case.key
        with self._lock:
            if notification.occasion is CaseOccasion.RESOLVED:
                self._told.pop(key, None)
            else:
                self._told[key] = _entry(notification)
            self._lost.pop(key, None)
            self._notes.note({key: _document(entry) for key, entry in self._told.items()})

    def still_open(self, target: str) -> list[Notification]:
        """The open cases, each as last sent, for receivers that lose their state at a restart."""
        with self._lock:
            return [
                Notification(
                    CaseOccasion.OPENED,
                    self._cases.get(entry.key) or _case_of(entry),
                    State.OK,
                    entry.state,
                    entry.told_at,
                    entry.opened_at,
                    target,
                    entry.rack,
                )
                for entry in self._open.values()
            ]

    def undelivered(self, notification: Notification) -> None:
        """Note that no receiver accepted a notification before it was dropped."""
        with self._lock:
            self._lost[notification.case.key] = None

    def _reset_lost(self, now: float) -> None:
        """Reset cases whose notification was dropped some time ago to the state that receivers know."""
        latest = now + AGAIN_AFTER_S
        # If the clock was set back, a case waits no longer than AGAIN_AFTER_S.
        self._lost = {key: min(latest if at is None else at, latest) for key, at in self._lost.items()}
        for key in [key for key, at in self._lost.items() if at is not None and at <= now]:
            del self._lost[key]
            self._open.pop(key, None)
            if key in self._told:
                self._open[key] = self._told[key]

    def _news(self, case: Case, look: Observation) -> Notification | None:
        now = look.at
        known = self._open.get(case.key)
        if known is None:
            if now - self._seen_at[case.key] < self._settle_s:
                return None
            occasion, before, opened_at = CaseOccasion.OPENED, State.OK, now
        elif SEVERITY.index(case.state) > SEVERITY.index(known.state):
            occasion, before, opened_at = CaseOccasion.WORSENED, known.state, known.opened_at
        elif self._remind_after_s and now - known.told_at >= self._remind_after_s:
            occasion, before, opened_at = CaseOccasion.REMINDER, known.state, known.opened_at
        else:
            return None
        rack = rack_of(look.inventory, case.component, look.circuits) or ""
        made = Notification(occasion, case, before, case.state, now, opened_at, look.target, rack)
        # Before it is delivered: the next observation must not make it again.
        self._open[case.key] = _entry(made)
        return made


def _resolved(entry: _Open, now: float, target: str) -> Notification:
    return Notification(
        CaseOccasion.RESOLVED, _case_of(entry), entry.state, State.OK, now, entry.opened_at, target, entry.rack
    )


def _case_of(entry: _Open) -> Case:
    """The case of an entry that the newest report does not contain."""
    return Case(entry.key, entry.component, entry.rule, State.OK, entry.since, (), entry.summary, (), silent=False)


def _is_over(entry: _Open, states: Mapping[str, State]) -> bool:
    """Whether a case that the newest report does not contain has ended.

    It has not ended if its component is only unreadable now or became part of another case.
    """
    return states.get(entry.component, State.OK) in HARMLESS


def _entry(notification: Notification) -> _Open:
    case = notification.case
    return _Open(
        key=case.key,
        component=case.component,
        rule=case.rule,
        state=notification.after,
        since=case.since,
        opened_at=notification.opened_at,
        told_at=notification.at,
        rack=notification.rack,
        summary=case.summary,
    )


def _document(entry: _Open) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in _Open.__slots__}


def _read(told: Mapping[str, Any]) -> dict[str, _Open]:
    return {entry.key: entry for entry in _entries(told)}


def _entries(told: Mapping[str, Any]) -> Iterator[_Open]:
    for document in told.values():
        try:
            entry = _Open(**document)
            yield replace(entry, state=State(entry.state), told_at=float(entry.told_at))
        except (TypeError, ValueError):  # another version wrote it: the case is reported again
            continue
