"""Decides for a job with ``straggler_schedule: on`` whether it uses a schedule for a late rank, in one thread."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from lumctl.errors import UsageError
from lumctl.training.collective_record import WORLD, RecordedCollectives
from lumctl.training.coordinator import late_rank
from lumctl.training.coordinator.state import JobState, Post
from lumctl.training.stragglers import GroupLateness, lateness_of

EVERY_S = 15.0
NEWEST = 512
"""Steps that are judged."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the coordinator knows: its group, the late rank for which it has ordered a schedule, and the record."""

    generation: int
    ordered: int | None
    recorded: RecordedCollectives | None


class ScheduleAdviser:
    """Judges the record of a job's collectives every ``EVERY_S``, and posts what the group should use."""

    def __init__(self, post: Post, every_s: float = EVERY_S) -> None:
        self._post, self._every_s = post, every_s
        self._over = threading.Event()
        self._reports: SimpleQueue[Report | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="lumctl-schedule", daemon=True)
        self._break_even_s = 0.0
        """The gap from which on the schedule in use is faster than ring."""

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._over.set()
        self._reports.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(self._every_s):
            self._post(_report, self._reports.put)
            report = self._reports.get()
            if report is None:
                return
            if (group := all_ranks(report)) is not None:
                self._post(late_rank.use, self._wanted(group, report.ordered), report.generation)

    def _wanted(self, group: GroupLateness, ordered: int | None) -> int | None:
        """The rank for which a schedule is faster.

        While one is in use its times are not those of ring, so that only the gap is judged: by the break-even gap known
        from before.
        """
        if ordered is not None and group.named == ordered and group.late is not None:
            return ordered if group.late.gap_median_s >= self._break_even_s else None
        if ordered is not None or group.schedule is None:
            return None  # ring is measured before another rank is scheduled
        if not group.schedule.recommended or group.schedule.break_even_s is None:
            return None
        self._break_even_s = group.schedule.break_even_s
        return group.named


def all_ranks(report: Report) -> GroupLateness | None:
    """The lateness of the present group of all ranks; ``None`` if too little is recorded."""
    recorded = report.recorded
    if recorded is None:
        return None
    steps = [each for each in recorded.steps if each.group == WORLD and each.generation == report.generation]
    try:
        return next(iter(lateness_of(steps[-NEWEST:], recorded.clocks)), None)
    except UsageError:  # a clock was set while the ranks were in a collective
        return None


def _report(state: JobState, put: Callable[[Report], None]) -> None:
    recorded = RecordedCollectives.read(state.collectives.document())
    put(Report(state.group.generation, late_rank.ordered(state), recorded))
