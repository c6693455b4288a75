"""The health of one rack in its store; see :mod:`lumctl.store.health_rows` for what each row means."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.health.acknowledgements import Acknowledgement, EventClear, MaintenanceWindow
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import health_rows, journal
from lumctl.store.database import writing
from lumctl.store.rack_rows import SHARED_S, RackRows

KEEP_TRANSITIONS = 10_000
KEEP_TRANSITIONS_S = 90 * 86_400.0


class HealthRecord:
    """The memory of health, acknowledgements, cleared events, maintenance windows and transitions of one rack."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def memory(self) -> dict[str, Any] | None:
        """The stored memory of health; ``None`` if there is none."""
        kept = self.last_look()
        return None if kept is None else kept[1]

    def last_look(self) -> tuple[float, dict[str, Any]] | None:
        """The time of the stored memory (seconds since the epoch), and the memory; ``None`` if there is none."""
        with self._rows.engine.connect() as connection:
            return health_rows.memory(connection, self._rows.rack)

    def remember(self, document: Mapping[str, Any], *, now: float) -> bool:
        """Store the memory of health at ``now``; ``False`` if a newer one is stored.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            return health_rows.remember(connection, self._rows.rack, document, now=now)

    def acknowledge(self, said: Acknowledgement) -> None:
        """Store an acknowledgement in place of an earlier one of the same findings."""
        with writing(self._rows.engine) as connection:
            health_rows.acknowledge(connection, self._rows.rack, said)

    def acknowledgements(self, *, now: float) -> tuple[Acknowledgement, ...]:
        """The acknowledgements in force, oldest first.

        One with an end that was given by a clock far ahead would keep alarms quiet for longer than it was meant to.
        """
        kept = self._rows.known.get("acknowledgements", lambda c: health_rows.acknowledged(c, self._rows.rack))
        latest = now + health_rows.CLOCK_MAY_ERR_S
        return tuple(said for said in kept if said.until is None or (said.until > now and said.at <= latest))

    def unacknowledge(self, component: str, rule: str | None = None) -> int:
        """Delete the acknowledgements of a component, of one rule or of all; return how many there were."""
        with writing(self._rows.engine) as connection:
            return health_rows.unacknowledge(connection, self._rows.rack, component, rule)

    def forget_spent(self, spent: Iterable[Acknowledgement]) -> None:
        """Delete acknowledgements whose findings have cleared; one that was given again in the meantime stays."""
        with writing(self._rows.engine) as connection:
            health_rows.forget_spent(connection, self._rows.rack, spent)

    def clear_events(self, clear: EventClear) -> None:
        """Store that an operator cleared events of kernel logs, and journal it.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            health_rows.clear_events(connection, self._rows.rack, clear)
            said = {"component": clear.component, "rule": clear.rule, "reason": clear.reason, "who": clear.by}
            journal.append(
                connection,
                rack=self._rows.rack,
                run="",
                at=clear.at,
                kind="events-cleared",
                step="",
                data=said,
                fence=journal.NO_FENCE,
            )

    def cleared_events(self) -> tuple[EventClear, ...]:
        """The last time at which operators ended events, by component and rule, oldest first."""
        return self._rows.known.get("cleared", lambda c: health_rows.cleared_events(c, self._rows.rack))

    def add_window(self, window: MaintenanceWindow) -> str:
        """Store a maintenance window and return its id; a window without an id gets a new one."""
        with writing(self._rows.engine) as connection:
            return health_rows.add_window(connection, self._rows.rack, window)

    def windows(self, *, now: float) -> tuple[MaintenanceWindow, ...]:
        """Windows that have not ended, the earliest first; some may yet begin."""
        # The cache keeps one answer for each start of ten minutes; windows that ended since are left out below.
        since = now - now % SHARED_S
        kept = self._rows.known.get(
            "windows", lambda c: health_rows.open_windows(c, self._rows.rack, now=since), of=since
        )
        return tuple(window for window in kept if window.ends > now)

    def end_window(self, window_id: str, *, now: float) -> bool:
        """End a window now; ``False`` if there is no window with that id, or it has ended."""
        with writing(self._rows.engine) as connection:
            return health_rows.end_window(connection, self._rows.rack, window_id, now=now)

    def add_transitions(
        self, rows: Iterable[Transition], *, keep: int = KEEP_TRANSITIONS, keep_s: float = KEEP_TRANSITIONS_S
    ) -> tuple[Transition, ...]:
        """Add the state changes that the history does not yet have; return them.

        The history keeps the newest ``keep`` rows that are at most ``keep_s`` seconds older than the newest one. It
        also keeps the last row of each component that is not ok.
        """
        with writing(self._rows.engine) as connection:
            return health_rows.add_transitions(connection, self._rows.rack, rows, keep=keep, keep_s=keep_s)

    def last_states(self) -> dict[tuple[str, str], State]:
        """The last state of each component in the history, by its id and its kind."""
        with self._rows.engine.connect() as connection:
            known = health_rows.last_states(connection, self._rows.rack)
        return {component: last.state for component, last in known.items()}

    def transitions(
        self, component: str | None = None, since: float | None = None, limit: int = 1000
    ) -> tuple[Transition, ...]:
        """The newest transitions, oldest first: all, or those of one component, or those since a time."""
        with self._rows.engine.connect() as connection:
            return health_rows.history(connection, self._rows.rack, component=component, since=since, limit=limit)
