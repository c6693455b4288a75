"""The data of the dashboard: one observation of the racks, and the records of their stores."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.errors import LumctlError
from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.jobs.stopped_jobs import StoppedJob
from lumctl.spares.forecast import PoolForecast
from lumctl.store import QueuedDemand, StoredRun
from lumctl.tui.look.marks import duration

STAND_STILL = "notifications, policies and history do not work"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log: time (seconds since the epoch), rack, source, and text.

    ``state`` is the state that the line reports, ``run`` its run, and ``component`` its component, if there is one.
    """

    at: float
    rack: str
    who: str
    text: str
    state: State | None = None
    run: str | None = None
    component: str | None = None


@dataclass(frozen=True, slots=True)
class Working:
    """A job that lumctl runs, with its coordinator's report.

    ``document`` is the output of ``job status -o json``; ``None`` if there is no report.
    """

    job: str
    document: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Records:
    """The content of the racks' stores, each newest first.

    ``waiting`` are the demands for spares that wait, oldest first. ``forecasts`` are those of the pools, by rack and
    class. ``autopilots`` are the documents of ``autopilot status``, one for each rack. ``trouble`` is why a store could
    not be read; the rest is then from the last successful read. ``stores`` are the places of the racks' stores, without
    passwords. ``watched``: a daemon answers here; ``None`` if that was not checked. ``daemon_left``: no daemon answers,
    but one ran here and did not end properly.
    """

    runs: tuple[StoredRun, ...] = ()
    waiting: tuple[QueuedDemand, ...] = ()
    forecasts: Mapping[tuple[str, str], PoolForecast] = field(default_factory=dict)
    autopilots: tuple[Mapping[str, Any], ...] = ()
    working: tuple[Working, ...] = ()
    log: tuple[Line, ...] = ()
    trouble: str | None = None
    stores: Mapping[str, str] = field(default_factory=dict)
    watched: bool | None = None
    daemon_left: bool = False


@dataclass(frozen=True, slots=True)
class RecordedLook:
    """One observation and the records of that moment.

    ``forbidden`` is the reason for read-only mode; empty if changes are allowed. ``daemon_trouble`` says how the daemon
    died and what stopped with it; empty if it did not die. ``forgotten_target`` says that no host answers because the
    target was not named. ``stopped_jobs`` were stopped for a run and do not run again yet. ``swap_checks`` has, for
    accelerators whose replacement was planned, why no swap of them together can be applied now; ``None`` if one can.
    ``return_checks`` has the same of the return of a job's ranks, by job. ``avoid_checks`` has, by the key of a remedy
    that routes light around something, the command that was planned, or why there is none; ``freed_by``, by the key of
    a remedy that lacks spares, the return that frees them. ``aimed`` completes the commands in a text: it adds the
    inventory and the target that were given as options.
    """

    observation: Observation
    records: Records = Records()
    forbidden: str = ""
    daemon_trouble: str = ""
    forgotten_target: str = ""
    stopped_jobs: tuple[StoppedJob, ...] = ()
    swap_checks: Mapping[frozenset[str], LumctlError | None] = field(default_factory=dict)
    return_checks: Mapping[str, LumctlError | None] = field(default_factory=dict)
    avoid_checks: Mapping[str, str | LumctlError] = field(default_factory=dict)
    freed_by: Mapping[str, str] = field(default_factory=dict)
    aimed: Callable[[str], str] = str

    @property
    def under_way(self) -> tuple[StoredRun, ...]:
        """The runs whose engine works on them, newest first."""
        unfinished = self.observation.unfinished
        return tuple(run for run in self.records.runs if run.state == "running" and run.id not in unfinished)

    @property
    def moving(self) -> Mapping[str, str]:
        """The accelerators that runs in progress replace, with the spare for each."""
        return {failed: spare for failed, spare, _ in self._replacements()}

    @property
    def taken(self) -> Mapping[str, str]:
        """The spares that runs in progress take, with the run for each."""
        return {spare: run for _, spare, run in self._replacements()}

    def run_of(self, accelerator: str) -> str:
        """What the run in progress that replaces an accelerator does with it; empty if none does."""
        found = ((run, spare) for failed, spare, run in self._replacements() if failed == accelerator)
        return next((f"{run} replaces it by {spare} now" for run, spare in found), "")

    def _replacements(self) -> Iterator[tuple[str, str, str]]:
        """The failed accelerator, the spare and the run of each replacement in progress."""
        for run in self.under_way:
            for each in run.plan.get("replacements", ()):
                if "failed" in each and "spare" in each:
                    yield str(each["failed"]), str(each["spare"]), run.id


class DaemonWatch:
    """Remembers when a daemon last answered, to report that it has died until one answers again."""

    def __init__(self) -> None:
        self._answered_at: float | None = None

    def trouble(self, records: Records, now: float) -> str:
        """How long a daemon that ran has not answered, and what stopped with it; empty if no daemon is missing."""
        if records.watched:
            self._answered_at = now
        # ``None`` means that no daemon was asked, not that it has ended.
        if records.watched is not False:
            return ""
        if self._answered_at is not None:
            ago = duration(now - self._answered_at)
            return f"the daemon (lumctl watch) no longer answers, last {ago} ago: {STAND_STILL}"
        return f"the daemon (lumctl watch) died: {STAND_STILL}" if records.daemon_left else ""
