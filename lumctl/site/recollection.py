"""What health remembers of a site, between its looks and between processes: one memory over the stores of its racks."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import Snapshot
from lumctl.health.attention import Acknowledgement, MaintenanceWindow
from lumctl.health.event_record import EventRecord
from lumctl.health.events import HostEvents
from lumctl.health.judging import Judged
from lumctl.health.look import NO_EVIDENCE, LightEvidence
from lumctl.health.memory import Memory, merged
from lumctl.health.states import HealthReport, State
from lumctl.health.transitions import Transition, transitions
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit
from lumctl.site.last_read import LastRead
from lumctl.site.moving import Moved, moving
from lumctl.site.racks import rack_of
from lumctl.store import Run, Store, StoreError

AFTERMATH_S = 600.0
"""How long what a run did excuses what is read, where looks are not kept: else they would see it as news for ever."""


@dataclass(frozen=True)
class Look:
    """What one look is judged by; see :func:`lumctl.health.evaluate.evaluate` for the meaning of each."""

    at: float
    snapshot: Snapshot
    circuits: tuple[Circuit, ...]
    losses: Mapping[str, float]
    devices: Mapping[str, DeviceReading]
    disabled: Collection[str]
    light: LightEvidence = NO_EVIDENCE


@dataclass(frozen=True)
class Verdicts:
    """A report with what operators had said by then."""

    report: HealthReport
    acknowledgements: tuple[Acknowledgement, ...]
    windows: tuple[MaintenanceWindow, ...]


class Recollection:
    """Judges looks in the light of earlier ones, which the racks' stores hold when a process begins."""

    def __init__(self, inventory: Inventory, store: Callable[[str], Store]) -> None:
        self._inventory = inventory
        self._store = store
        self._memory: Memory | None = None
        self._last_read = LastRead()
        self._moved = Moved(AFTERMATH_S)
        self._last_look: float | None = None
        self._remembers = False
        """Whether a look was kept before this process: its history then tells of all that was not well."""
        self._recorded: HealthReport | None = None
        """The last report whose changes of state are in the stores."""

    def judge(self, look: Look, *, to_be_kept: bool) -> Verdicts:
        """Judge a look and go on remembering in this process; nothing is written."""
        memory = self._memory = self._memory or self._load()
        since = look.at if self._last_look is None else self._last_look
        if not to_be_kept:
            since = max(since, look.at - AFTERMATH_S)
        said = self._of_all(lambda store: store.health.acknowledgements(now=look.at))
        windows = self._of_all(lambda store: store.health.windows(now=look.at))
        cleared = self._of_all(lambda store: store.health.cleared_events())
        at_work = self._moves(since, look.at)
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
            moving=moving(at_work),
            moved=self._moved.taking(at_work, look.at),
            light=look.light,
        )
        self._last_look = look.at
        report = self._last_read.recall(report)
        return Verdicts(report, tuple(a for a in said if a not in memory.spent), windows)

    def events(self, snapshot: Snapshot, now: float) -> dict[str, HostEvents]:
        """The XIDs and SXids that count at a collection outside of looks; nothing is remembered of it."""
        memory = self._memory or self._load()
        cleared = self._of_all(lambda store: store.health.cleared_events())
        return EventRecord(memory.document()["events"]).take(self._inventory, snapshot, cleared, now)

    def keep(self, look: Look, report: HealthReport) -> str | None:
        """Write what is remembered, and what changed, into the stores; why it could not be written, if so."""
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
            # Whoever looks at a rack must not be blinded by a full disk; the next look tries again.
            return error.message
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

    def _moves(self, since: float, now: float) -> tuple[Run, ...]:
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
            return Memory()  # what cannot be read is as good as a first look

    def _of_all(self, ask: Callable[[Store], tuple[Any, ...]]) -> tuple[Any, ...]:
        """What the stores of all racks say, each thing once: racks may share a store."""
        return tuple(dict.fromkeys(said for rack in self._inventory.racks for said in ask(self._store(rack))))


def _as_recorded(
    report: HealthReport, known: Mapping[tuple[str, str], State], *, otherwise: State | None
) -> HealthReport:
    """A report of the same components in the states that the history leaves them in.

    Those that it does not tell of are in the state ``otherwise``, or left out where that is not known either.
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
