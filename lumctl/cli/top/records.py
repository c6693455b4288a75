"""The data that the dashboard shows from the racks' stores, read again when something was written."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from lumctl.errors import LumctlError
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.health.states import State
    from lumctl.health.transitions import Transition
    from lumctl.inventory.model import Inventory
    from lumctl.spares.forecast import PoolForecast
    from lumctl.store import Head, JournalEntry, QueuedDemand, Store, StoredRun
    from lumctl.tui.views.records import Line, Records, Working

HEALTH = "health"
"""The source of a state change."""


def log_of(
    rack: str, entries: "Iterable[JournalEntry]", runs: "Iterable[StoredRun]", changes: "Iterable[Transition]" = ()
) -> "list[Line]":
    """Journal and state changes of a rack as lines for people, newest first."""
    from lumctl.tui.views.records import Line

    by_id = {run.id: run for run in runs}
    lines, entries = [], tuple(entries)
    # The start of a step is worth a line only if its outcome is unknown.
    known = {(entry.run, entry.step) for entry in entries if entry.kind in {"outcome", "undo-outcome"}}
    for entry in entries:
        if entry.kind in {"intent", "undo-intent"} and (entry.run, entry.step) in known:
            continue
        run = by_id.get(entry.run)
        who = str(entry.data.get("who") or entry.data.get("by") or (run.who if run else ""))
        lines.append(Line(entry.at, rack, who, _told(entry, run), _state(entry, run), run=run.id if run else None))
    lines += (
        Line(change.at, rack, HEALTH, _changed(change), change.after, component=change.component) for change in changes
    )
    # Reversed, because of entries with the same time the one written last comes first.
    return sorted(lines, key=lambda line: line.at)[::-1]


def _changed(change: "Transition") -> str:
    was = f", was {change.before}" if change.before else ""
    rules = f" ({', '.join(change.rules)})" if change.rules else ""
    seen = f": {change.evidence}" if change.evidence else ""
    return f"{change.component} is {change.after}{was}{rules}{seen}"


def _state(entry: "JournalEntry", run: "StoredRun | None") -> "State | None":
    """The state that an entry reports: how a run ended, that something failed, that the autopilot stopped."""
    from lumctl.health.states import State
    from lumctl.tui.panes.swaps import STATES

    data = entry.data
    if entry.kind == "end":
        return STATES.get(str(data.get("state")), State.UNKNOWN)
    if entry.kind == "phase-failed":
        return State.FAILED
    if "failed" in data:
        steps = run.plan.get("steps", ()) if run else ()
        required = next((step.get("required", True) for step in steps if str(step["id"]) == entry.step), True)
        return State.FAILED if required else State.DEGRADED
    return State.DEGRADED if data.get("event") in {"halt", "breaker-opened"} else None


def _told(entry: "JournalEntry", run: "StoredRun | None") -> str:
    data = entry.data
    match entry.kind:
        case "begin":
            told = f"{entry.run} begins: {data.get('title') or (run.title if run else '')}"
        case "end":
            took = f" in {data['seconds']:.2f} s" if "seconds" in data else ""
            failed = f": {data['failed']}" if "failed" in data else ""
            told = f"{entry.run} ends: {data.get('state', '')}{took}{failed}"
        case "intent" | "outcome" | "undo-intent" | "undo-outcome":
            told = f"{entry.run} {_step(entry, run)}"
        case "resume" | "abort":
            told = f"an operator took over {entry.run}: swap {entry.kind}"
        case "vouched":
            told = f"{entry.run} {data.get('stopped', 'the job')} was reported as stopped"
        case _:
            told = _remarked(entry)
    return told


def _remarked(entry: "JournalEntry") -> str:
    """An entry that belongs to no run."""
    data = entry.data
    match entry.kind:
        case "decision":
            told = "; ".join(map(_decided, data.get("decisions", ()))) or "no decision is pending any more"
        case "autopilot":
            told = f"autopilot: {_plain(data, first='event')}"
        case "approval":
            told = f"approval of {data.get('id') or data.get('plan', 'a plan')}: {_plain(data, first='state')}"
        case "phase-failed":
            devices = ", ".join(map(str, data.get("devices", ())))
            told = f"{data.get('job')}: phase {data.get('phase')} on {devices} has no right light: {data.get('why')}"
        case "demand":
            whose = f"{data.get('job')} for {', '.join(map(str, data.get('accelerators', ())))}"
            told = f"{data.get('demand')} of {whose} is {data.get('state')}"
        case _:
            told = f"{entry.kind}: {_plain(data)}"
    return told


def _step(entry: "JournalEntry", run: "StoredRun | None") -> str:
    """Which step, and its result."""
    titles = {str(step["id"]): str(step["title"]) for step in run.plan.get("steps", ())} if run else {}
    title, data = titles.get(entry.step, f"step {entry.step}"), entry.data
    match entry.kind:
        case "intent":
            return f"begins to {title}"
        case "undo-intent":
            return f"starts to undo: {title}"
        case "undo-outcome":
            return f"undone: {title}" if data.get("undone") else f"not undone: {title}: {data.get('failed', '')}"
        case _ if "failed" in data:
            return f"failed: {title}: {data['failed']}"
        case _:
            proved = f", {counted(len(data['proofs']), 'receivers')} proved" if data.get("proofs") else ""
            return f"done: {title}{proved}"


def _decided(decision: Mapping[str, Any]) -> str:
    policy = f" by {decision['policy']}" if decision.get("policy") else ""
    return f"{decision.get('key')}: {decision.get('act')}{policy}, {decision.get('because')}"


def _plain(data: Mapping[str, Any], first: str = "") -> str:
    """The content of an entry as plain values, that of ``first`` before the others; digests are omitted."""
    shown = {
        key: value for key, value in data.items() if isinstance(value, str | int | float) and value not in {"", None}
    }
    rest = [f"{key} {value}" for key, value in shown.items() if key not in {first, "who", "digest", "id"}]
    return ", ".join([str(shown[first]), *rest] if first in shown else rest)


MOST_LINES = 500
"""How many lines of the log are shown."""
RENEWED_S = 10.0
"""How often data that changes with time alone is read again: a request expires, or a limit allows another swap."""
ASK_WITHIN_S = 0.5
"""How long a job's coordinator may take to report its state."""


class Recorder:
    """Reads the stores of all racks of an inventory, and the coordinators of jobs on this machine."""

    def __init__(
        self,
        inventory: "Inventory",
        target: str,
        *,
        watched: Callable[[], bool] = lambda: False,
        died: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.time,
        opened: "Callable[[str], Store] | None" = None,
    ) -> None:
        from lumctl.spares.forecast import ForecastReader
        from lumctl.store import open_store

        self._inventory = inventory
        self._target = target
        self._opened = opened or (lambda rack: open_store(inventory, rack, target))
        self._watched = watched
        self._died = died
        self._now = now
        self._stores: dict[str, Store] = {}
        self._marks: dict[str, int | None] = {}
        self._heads: dict[str, Head] = {}
        self._changed: dict[str, tuple[Transition, ...]] = {}
        self._read: dict[str, _OfRack] = {}
        self._forecasts = ForecastReader()
        self._is_watched: bool | None = None
        self._is_left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def __call__(self) -> "Records":
        """Read what is new."""
        from lumctl.store.database import shown
        from lumctl.tui.views.records import Records

        # One daemon watches all racks, so it is asked once for all of them.
        trouble, watched = None, cache(self._watched)
        for rack in self._inventory.racks:
            try:
                self._renew(rack, watched)
            except LumctlError as error:
                # Otherwise an unchanged mark would keep the next call from trying again.
                self._marks.pop(rack, None)
                trouble = error.message
        read = [self._read[rack] for rack in self._inventory.racks if rack in self._read]
        runs = sorted((run for each in read for run in each.runs), key=lambda run: -run.started_at)
        log = sorted((line for each in read for line in each.log), key=lambda line: -line.at)
        return Records(
            runs=tuple(runs),
            waiting=tuple(demand for each in read for demand in each.waiting),
            forecasts={key: forecast for each in read for key, forecast in each.forecasts.items()},
            autopilots=tuple(each.autopilot for each in read),
            working=tuple(self._working()),
            log=tuple(log[:MOST_LINES]),
            trouble=trouble,
            stores={rack: shown(store.place) for rack, store in self._stores.items()},
            watched=self._is_watched,
            daemon_left=self._is_left,
        )

    def _renew(self, rack: str, watched: Callable[[], bool]) -> None:
        from lumctl.daemon.autopilot.journal import rack_status

        store = self._stores.get(rack)
        if store is None:
            store = self._stores[rack] = self._opened(rack)
        known, now, mark = self._read.get(rack), self._now(), store.mark()
        is_old = known is None or now - known.told_at >= RENEWED_S
        if mark is not None and mark == self._marks.get(rack) and not is_old:
            return
        head, changes = store.journal.head(), self._changes(rack, store)
        self._marks[rack] = mark  # The state before anything was read: later changes are read next time.
        news = self._heads.get(rack) != head or self._changed.get(rack) != changes
        if not news and not is_old:
            return
        self._is_watched = watched()
        self._is_left = not self._is_watched and self._died()
        autopilot = rack_status(self._inventory, rack, store, now=now, watched=self._is_watched)
        # Only time has passed: runs and log are still right.
        if not news and known is not None:
            known.autopilot, known.told_at = autopilot, now
            return
        runs = store.runs.all()
        log = log_of(rack, store.journal.latest(MOST_LINES), runs, changes)
        forecasts = self._forecasts.read(self._inventory, rack, store, now)
        self._read[rack] = _OfRack(runs, store.demands.waiting(), forecasts, autopilot, log, now)
        self._heads[rack], self._changed[rack] = head, changes

    def _changes(self, rack: str, store: "Store") -> "tuple[Transition, ...]":
        """The newest state changes; after the first call only those that are not older than the last one are read."""
        known = self._changed.get(rack, ())
        newest = store.health.transitions(since=known[-1].at if known else None, limit=MOST_LINES)
        return (*known, *(change for change in newest if change not in known[-len(newest) :]))[-MOST_LINES:]

    def _working(self) -> "list[Working]":
        from lumctl.context.job_files import coordinator_socket
        from lumctl.training.job_control import ask
        from lumctl.tui.views.records import Working

        found = []
        for name, job in self._inventory.jobs.items():
            if job.run is None:
                continue
            place = coordinator_socket(self._inventory.path, self._target, name)
            try:
                told = ask(place, "status", timeout_s=ASK_WITHIN_S)
            except LumctlError:
                told = None
            found.append(Working(name, told))
        return found


class _OfRack:
    def __init__(
        self,
        runs: "tuple[StoredRun, ...]",
        waiting: "tuple[QueuedDemand, ...]",
        forecasts: "Mapping[tuple[str, str], PoolForecast]",
        autopilot: Mapping[str, Any],
        log: "list[Line]",
        told_at: float,
    ) -> None:
        self.runs, self.waiting, self.forecasts = runs, waiting, forecasts
        self.autopilot, self.log, self.told_at = autopilot, log, told_at
