"""The memory of health between observations and processes: one memory for the stores of all racks of a context."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow
from lumctl.health.evaluation import each
from lumctl.health.events import HostEvents
from lumctl.health.lateness import NOBODY_LATE, Lateness
from lumctl.health.look import NO_EVIDENCE, LightEvidence
from lumctl.health.memory import Memory, merged
from lumctl.health.observation import rack_of
from lumctl.health.states import HealthReport, Judged, State, judged, kind_and_id
from lumctl.health.transitions import Transition, transitions
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit
from lumctl.store import Store, StoredRun, StoreError
from lumctl.store.records import OPEN

if TYPE_CHECKING:
    from lumctl.health.look import Place


class LastRead:
    """Fills in the time of the last reading if a report lacks it."""

    def __init__(self) -> None:
        self._read_at: dict[Place, float] = {}

    def recall(self, report: HealthReport) -> HealthReport:
        """The report with the times at which components were last read. Times in the report are remembered."""
        return each(report, self._one)

    def _one(self, health: Judged, /) -> Judged:
        place = kind_and_id(health)
        if health.read_at is not None:
            self._read_at[place] = health.read_at
            return health
        known = self._read_at.get(place)
        return health if known is None else replace(health, read_at=known)


def moving(runs: Iterable[StoredRun]) -> frozenset[str]:
    """The components, such as transponders and circuits, whose light paths these runs change."""
    return frozenset(component for run in runs for component in _named(run.plan))


CLOCKS_AGREE_S = 10.0
"""The clocks of machines that work on one rack differ by less than this, in seconds.

A time further ahead comes from a clock that was set back since.
"""


class Moved:
    """When runs last changed the light path of each component, as far as one process has seen them."""

    def __init__(self, keep_s: float) -> None:
        """``keep_s`` is the maximum age of readings, in seconds."""
        self._keep_s = keep_s
        self._ended: dict[str, float] = {}
        self._at: dict[str, float] = {}

    def taking(self, runs: Iterable[StoredRun], now: float) -> Mapping[str, float]:
        """Add these runs; return the time (seconds since the epoch) of each component's last change.

        A run that has not ended changes its components now.
        """
        self._ended = {run: at for run, at in self._ended.items() if 0 <= now - at < self._keep_s}
        self._at = {component: at for component, at in self._at.items() if 0 <= now - at < self._keep_s}
        for run in runs:
            at = now
            if run.ended_at is not None and run.ended_at > now + CLOCKS_AGREE_S:
                continue  # It is unknown whether the reading is older.
            if run.ended_at is not None:
                # The end is by the run's own clock. If that is ahead, use the time at which the end was first seen.
                at = self._ended.setdefault(run.id, min(run.ended_at, now))
            for component in moving([run]):
                self._at[component] = max(at, self._at.get(component, at))
        return dict(self._at)


def _named(plan: Mapping[str, Any]) -> Iterator[str]:
    """The circuits that a plan adds and removes, their ends, the components it switches, and those it disturbs."""
    circuits = plan.get("circuits", {})
    for circuit in (*circuits.get("add", ()), *circuits.get("remove", ())):
        yield str(circuit["id"])
        for end in circuit["ends"]:
            yield str(end["lane"])
    for step in plan.get("steps", ()):
        if "transponder" in step["data"]:
            yield str(step["data"]["transponder"])
        if "component" in step["data"] and step.get("do") != "record":
            yield str(step["data"]["component"]).removesuffix("/power")
            yield from map(str, step["data"].get("disturbs", ()))


AFTERMATH_S = 600.0
"""How long a run excuses the flapping of its links, in seconds, if observations are not stored.

Without this limit, such observations would treat the same run as new forever.
"""


@dataclass(frozen=True)
class LookResult:
    """The input for the verdicts of one observation; :func:`lumctl.health.evaluation.evaluate` explains each field."""

    at: float
    snapshot: Snapshot
    circuits: tuple[Circuit, ...]
    losses: Mapping[str, float]
    devices: Mapping[str, DeviceReading]
    disabled: Collection[str]
    light: LightEvidence = NO_EVIDENCE
    lateness: Lateness = NOBODY_LATE
    changing: Mapping[str, bool] = field(default_factory=dict)
    """The circuits of jobs that may change their phase now, so that another may have the light.

    And whether the job has shown lately that the light is right whenever it is theirs.
    """


@dataclass(frozen=True)
class Verdicts:
    """A report with the acknowledgements and windows of that time applied."""

    report: HealthReport
    acknowledgements: tuple[Acknowledgement, ...]
    windows: tuple[MaintenanceWindow, ...]


_OF_LIGHT = frozenset({"link.down", "link.rx-power", "link.unsteady"})
"""The rules of links that find what a change of light brings: darkness, and no carrier."""


def _with_changing(report: HealthReport, changing: Mapping[str, bool]) -> HealthReport:
    """The report in which these circuits and their links are ok if their job has shown it, else the circuits unknown.

    What a receiver heard last may be of another phase, and it may have been read while it was dark for a change.
    """
    circuits, links = dict(report.circuits), dict(report.links)
    for name in changing.keys() & circuits.keys():
        found = circuits[name].findings
        if not changing[name]:
            circuits[name] = judged(replace(circuits[name], otherwise=State.UNKNOWN), found)
            continue
        known = tuple(finding for finding in found if finding.state is not State.UNKNOWN)
        circuits[name] = judged(replace(circuits[name], otherwise=State.OK), known)
        for link in {end.transponder for end in circuits[name].ends} & links.keys():
            left = tuple(f for f in links[link].findings if f.rule not in _OF_LIGHT or f.state is not State.UNKNOWN)
            links[link] = judged(links[link], left)
    return replace(report, circuits=circuits, links=links) if changing else report


class Recollection:
    """Judges observations with the memory of earlier ones, which it loads from the racks' stores at first use."""

    def __init__(self, inventory: Inventory, store: Callable[[str], Store]) -> None:
        self._inventory = inventory
        self._store = store
        self._memory: Memory | None = None
        self._last_read = LastRead()
        self._moved = Moved(AFTERMATH_S)
        self._last_look: float | None = None
        self._remembers = False
        """Whether an earlier process stored an observation; then the history has all earlier faults."""
        self._recorded: HealthReport | None = None
        """The last report whose state changes are in the stores."""

    def judge(self, look: LookResult, *, to_be_kept: bool) -> Verdicts:
        """Judge an observation and update the memory in this process; nothing is written."""
        # First: loading also sets the time of the last look, from which moves of light are counted.
        memory = self._memory = self._memory or self._load()
        since = look.at if self._last_look is None else self._last_look
        if not to_be_kept:
            since = max(since, look.at - AFTERMATH_S)
        said = self._of_all(lambda store: store.health.acknowledgements(now=look.at))
        windows = self._of_all(lambda store: store.health.windows(now=look.at))
        cleared = self._of_all(lambda store: store.health.cleared_events())
        runs = self._moves(since, look.at)
        report = memory.judge(
            self._inventory,
            look.snapshot,
            look.circuits,
            losses=look.losses,
            devices=look.devices,
            now=look.at,
            disabled=look.disabled,
            acknowledged=said,
            windows=windows,
            cleared=cleared,
            moving=moving(run for run in runs if run.state in OPEN).union(look.changing),
            moved=self._moved.taking(runs, look.at),
            light=look.light,
            lateness=look.lateness,
        )
        self._last_look = look.at
        report = _with_changing(self._last_read.recall(report), look.changing)
        # Spent acknowledgements leave the store with keep(), which does not follow every observation.
        return Verdicts(report, tuple(a for a in said if a not in memory.spent), windows)

    def events(self, snapshot: Snapshot, now: float) -> dict[str, HostEvents]:
        """The XIDs and SXids that count in a collection that is not an observation; the memory does not change."""
        memory = self._memory or self._load()
        cleared = self._of_all(lambda store: store.health.cleared_events())
        return memory.events(self._inventory, snapshot, cleared, now)

    def keep(self, look: LookResult, report: HealthReport) -> str | None:
        """Write the memory and the state changes into the stores; return the reason if that fails."""
        memory = self._memory = self._memory or self._load()
        try:
            changed = self._changes(report)
            document = memory.document()
            for rack in self._inventory.racks:
                store = self._store(rack)
                store.health.remember(document, now=look.at)
                if memory.spent:
                    store.health.forget_spent(memory.spent)
                mine = [row for row in changed if rack_of(self._inventory, row.component, look.circuits) == rack]
                if mine:
                    store.health.add_transitions(mine)
        except StoreError as error:
            # A full disk must not stop the observation of a rack; the next observation tries again.
            return error.message
        # Only now that every store has it: after a failure, the next observation offers the same changes again, and a
        # store that has them adds none.
        self._recorded = report
        return None

    def _changes(self, report: HealthReport) -> tuple[Transition, ...]:
        before = self._recorded
        if before is None:
            known: dict[tuple[str, str], State] = {}
            for rack in self._inventory.racks:
                known |= self._store(rack).health.last_states()
            before = _as_recorded(report, known, otherwise=State.OK if self._remembers else None)
        return transitions(before, report)

    def _moves(self, since: float, now: float) -> tuple[StoredRun, ...]:
        stores = [self._store(rack) for rack in self._inventory.racks]
        return tuple(run for store in stores for run in store.runs.moves(since=since, now=now))

    def _load(self) -> Memory:
        kept = [look for rack in self._inventory.racks if (look := self._store(rack).health.last_look()) is not None]
        if kept:
            self._remembers = True
            self._last_look = max(at for at, _ in kept)
        try:
            return Memory(merged(document for _, document in kept))
        except (TypeError, ValueError, KeyError, AttributeError):
            return Memory()  # without a readable memory, this is like the first observation

    def _of_all(self, ask: Callable[[Store], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The content of all racks' stores, without repetition: racks may share a store."""
        return tuple(dict.fromkeys(said for rack in self._inventory.racks for said in ask(self._store(rack))))


def _as_recorded(
    report: HealthReport, known: Mapping[tuple[str, str], State], *, otherwise: State | None
) -> HealthReport:
    """A report of the same components in the states of the history.

    Components without history have the state ``otherwise``, or are omitted if that is ``None``.
    """

    def group(kind: str, components: Mapping[str, Judged]) -> dict[str, Judged]:
        states = {name: known.get((name, kind), otherwise) for name in components}
        return {name: replace(h, state=state) for name, h in components.items() if (state := states[name]) is not None}

    return replace(
        report,
        hosts=group("host", report.hosts),
        accelerators=group("accelerator", report.accelerators),
        links=group("link", report.links),
        devices=group("device", report.devices),
        circuits=group("circuit", report.circuits),
    )
