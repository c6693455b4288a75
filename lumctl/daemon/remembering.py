"""When health's memory is written down: when something is found or is over, and else rarely."""

from collections.abc import Callable

from lumctl.health.states import HealthReport

REMEMBER_S = 10.0
"""How long it may be unwritten while nothing new is found: it is large, and disks wear out."""
PAUSE_S = 5.0
"""Before a store that refused is asked again."""


class Remembering:
    """Knows what was found when the memory was last written."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: frozenset[tuple[str, ...]] | None = None
        self._by = self._not_before = monotonic()

    def is_due(self, newest: HealthReport | None) -> bool:
        """Whether the next look is to be remembered; ``newest`` is the report of the last one."""
        now = self._monotonic()
        news = newest is not None and _found(newest) != self._found
        return now >= self._not_before and (news or now >= self._by)

    def wrote(self, report: HealthReport) -> None:
        """The look of this report was remembered."""
        self._found = _found(report)
        self._by = self._monotonic() + REMEMBER_S

    def refused(self) -> None:
        """The store had no room for it."""
        self._not_before = self._monotonic() + PAUSE_S


def _found(report: HealthReport) -> frozenset[tuple[str, ...]]:
    """All that is found, but for what changes from look to look without being news."""
    return frozenset((f.component, f.rule, f.case, f.about, f.state) for f in report.findings())
