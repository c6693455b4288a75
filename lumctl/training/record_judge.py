"""Judges the record of a job's collectives in one thread: who is late, for health, and whether a schedule is faster.

The coordinator only hands over the record: to judge it takes milliseconds, to estimate the gain of a schedule longer.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from lumctl.context.job_files import JUDGED_EVERY_S
from lumctl.errors import UsageError
from lumctl.training.collective_record import WORLD, RecordedCollectives
from lumctl.training.coordinator import late_rank, phase_light
from lumctl.training.coordinator.state import JobState, Post
from lumctl.training.stragglers import ADVISED_STEPS, GroupLateness, lateness_of, verdicts_of


@dataclass(frozen=True, slots=True)
class CollectiveReport:
    """What the coordinator knows: its group, the late rank for which it has ordered a schedule, and the record."""

    generation: int
    ordered: int | None
    recorded: RecordedCollectives
    light: Mapping[str, Any] | None = None
    """What changes of light have cost, for metrics; ``None`` for a job without phases."""


class RecordJudge:
    """Judges the record of a job's collectives every ``every_s``, and saves who is late with ``save``.

    With ``schedules`` it also posts which schedule the group should use. ``save_light`` saves what changes of light
    cost.
    """

    def __init__(
        self,
        post: Post,
        save: Callable[[Mapping[str, Any]], None],
        *,
        schedules: bool,
        every_s: float = JUDGED_EVERY_S,
        save_light: Callable[[Mapping[str, Any]], None] = lambda _light: None,
    ) -> None:
        self._save_light = save_light
        self._post, self._save, self._every_s = post, save, every_s
        self._adviser = ScheduleAdviser() if schedules else None
        self._since: dict[tuple[str, str], float] = {}
        """From when on each accelerator was late in each group."""
        self._over = threading.Event()
        self._reports: SimpleQueue[CollectiveReport | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="lumctl-late", daemon=True)

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
            with suppress(OSError):  # health and metrics then know nothing of the job
                if report.light is not None:
                    self._save_light(report.light)
                if (judged := self._judged(report)) is not None:
                    self._save(judged)
            if self._adviser is not None and (group := all_ranks(report)) is not None:
                self._post(late_rank.use, self._adviser.wanted(group, report.ordered), report.generation)

    def _judged(self, report: CollectiveReport) -> dict[str, Any] | None:
        """Who is late, as :func:`lumctl.context.job_files.save_late` saves it; ``None`` if too little is recorded."""
        steps = [each for each in report.recorded.steps if each.generation == report.generation]
        groups = verdicts_of(steps, report.recorded.clocks)
        if not groups:
            return None
        # The longest wait last, so that it is the one that remains of an accelerator late in several groups.
        late = sorted((each for each in groups if each.named is not None), key=lambda each: each.gap_s)
        names = {each: report.recorded.accelerators[each.named] for each in late if each.named is not None}
        known = self._since
        self._since = {(names[each], each.group): known.get((names[each], each.group), each.ended) for each in late}
        return {
            "at": max(each.ended for each in groups),
            "step_s": max(each.step_s for each in groups),
            "ranks": [
                {
                    "rank": each.named,
                    "accelerator": names[each],
                    "group": each.group,
                    "gap_s": each.gap_s,
                    "step_s": each.step_s,
                    "since": self._since[names[each], each.group],
                    "worked_around": each.group == WORLD and each.named == report.ordered,
                }
                for each in late
            ],
        }


class ScheduleAdviser:
    """Decides for a job with ``straggler_schedule: on`` whether it uses a schedule for a late rank."""

    def __init__(self) -> None:
        self._break_even_s = 0.0
        """The gap from which on the schedule in use is faster than ring."""

    def wanted(self, group: GroupLateness, ordered: int | None) -> int | None:
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


def all_ranks(report: CollectiveReport) -> GroupLateness | None:
    """The lateness of the present group of all ranks; ``None`` if too little is recorded."""
    steps = [each for each in report.recorded.steps if each.group == WORLD and each.generation == report.generation]
    try:
        return next(iter(lateness_of(steps[-ADVISED_STEPS:], report.recorded.clocks)), None)
    except UsageError:  # a clock was set while the ranks were in a collective
        return None


def _report(state: JobState, put: Callable[[CollectiveReport], None]) -> None:
    light = None if state.light is None else {"at": state.effects.now(), **phase_light.totals(state.light)}
    put(CollectiveReport(state.group.generation, late_rank.ordered(state), state.collectives.recorded(), light))
