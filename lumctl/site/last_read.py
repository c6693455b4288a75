"""When each component was last read, as far as one process remembers: what is silent now was heard earlier."""

from dataclasses import replace
from typing import TYPE_CHECKING

from lumctl.health.evaluate import each
from lumctl.health.judging import Judged
from lumctl.health.states import HealthReport, place_of

if TYPE_CHECKING:
    from lumctl.health.look import Place


class LastRead:
    """Fills in the last reading's time where a report has none."""

    def __init__(self) -> None:
        self._read_at: dict[Place, float] = {}

    def recall(self, report: HealthReport) -> HealthReport:
        """The report with the times that it does not say itself; its own are remembered in turn."""
        return each(report, self._one)

    def _one(self, health: Judged, /) -> Judged:
        place = place_of(health)
        if health.read_at is not None:
            self._read_at[place] = health.read_at
            return health
        known = self._read_at.get(place)
        return health if known is None else replace(health, read_at=known)
