"""The part of a rack's store that is about its health; see :mod:`lumctl.store.health_rows` for what each row means."""

from collections.abc import Iterable, Mapping
from typing import Any

from lumctl.health.acknowledgements import Acknowledgement, EventClear, MaintenanceWindow
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import health_rows, journal
from lumctl.store.database import writing
from lumctl.store.rack_rows import RackRows

KEEP_TRANSITIONS = 10_000
KEEP_TRANSITIONS_S = 90 * 86_400.0


class HealthRecord:
    """What health remembers of one rack, acknowledgements, ended events, maintenance windows and transitions."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def memory(self) -> dict[str, Any] | None:
        """What health last remembered; ``None`` if nothing."""
        kept = self.last_look()
        return None if kept is None else kept[1]

    def last_look(self) -> tuple[float, dict[str, Any]] | None:
        """When health last remembered something (seconds since the epoch), and what."""
        with self._rows.engine.connect() as connection:
            return health_rows.memory(connection, self._rows.rack)

    def remember(self, document: Mapping[str, Any], *, now: float) -> bool:
        """Keep what health remembers at ``now``; ``False`` if something newer is kept.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            return health_rows.remember(connection, self._rows.rack, document, now=now)

    def acknowledge(self, said: Acknowledgement) -> None:
        """Keep an acknowledgement in place of an earlier one of the same findings."""
        with writing(self._rows.engine) as connection:
            health_rows.acknowledge(connection, self._rows.rack, said)

    def acknowledgements(self, *, now: float) -> tuple[Acknowledgement, ...]:
        """The acknowledgements in force, oldest first."""
        with self._rows.engine.connect() as connection:
            return health_rows.acknowledged(connection, self._rows.rack, now=now)

    def unacknowledge(self, component: str, rule: str | None = None) -> int:
        """Take back what was acknowledged of a component: one rule, or everything; returns how many that were."""
        with writing(self._rows.engine) as connection:
            return health_rows.unacknowledge(connection, self._rows.rack, component, rule)

    def forget_spent(self, spent: Iterable[Acknowledgement]) -> None:
        """Drop acknowledgements that are over; one that was given again in the meantime stays."""
        with writing(self._rows.engine) as connection:
            health_rows.forget_spent(connection, self._rows.rack, spent)

    def clear_events(self, clear: EventClear) -> None:
        """Keep that an operator ended events of kernel logs, and journal it.

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
        with self._rows.engine.connect() as connection:
            return health_rows.cleared_events(connection, self._rows.rack)

    def add_window(self, window: MaintenanceWindow) -> str:
        """Keep a maintenance window and return its id; one without an id is given one."""
        with writing(self._rows.engine) as connection:
            return health_rows.add_window(connection, self._rows.rack, window)

    def windows(self, *, now: float) -> tuple[MaintenanceWindow, ...]:
        """Windows that have not ended, the earliest first; some may yet begin."""
        with self._rows.engine.connect() as connection:
            return health_rows.open_windows(connection, self._rows.rack, now=now)

    def end_window(self, window_id: str, *, now: float) -> bool:
        """End a window now; ``False`` if there is none of that id that has not ended."""
        with writing(self._rows.engine) as connection:
            return health_rows.end_window(connection, self._rows.rack, window_id, now=now)

    def add_transitions(
        self, rows: Iterable[Transition], *, keep: int = KEEP_TRANSITIONS, keep_s: float = KEEP_TRANSITIONS_S
    ) -> tuple[Transition, ...]:
        """Add to the history what it does not end with already; returns what was new.

        ``keep`` rows are kept, none more than ``keep_s`` seconds older than the newest; beyond that only the last one
        of each component that is not well.
        """
        with writing(self._rows.engine) as connection:
            return health_rows.add_transitions(connection, self._rows.rack, rows, keep=keep, keep_s=keep_s)

    def last_states(self) -> dict[tuple[str, str], State]:
        """The state in which the history leaves each component that it tells of, by its id and its kind."""
        with self._rows.engine.connect() as connection:
            known = health_rows.last_states(connection, self._rows.rack)
        return {component: last.state for component, last in known.items()}

    def transitions(
        self, component: str | None = None, since: float | None = None, limit: int = 1000
    ) -> tuple[Transition, ...]:
        """The newest transitions, oldest first: all, or those of one component, or those since a time."""
        with self._rows.engine.connect() as connection:
            return health_rows.history(connection, self._rows.rack, component=component, since=since, limit=limit)
