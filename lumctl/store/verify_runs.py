"""What the runs of a rack must be by its journal: rollbacks and runbooks are made from them.

The journal says who began which plan, and how each run ended. From that follows how every run stands now, also those
that a later one took back: this goes through the entries as :meth:`lumctl.store.Store.end_run` did.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.store import raw
from lumctl.store.journal import Break, Entry
from lumctl.store.records import OPEN

Document = Mapping[str, Any]
Digest = Callable[[Document], str]
"""The digest of a plan's document, by its content."""

_SAID = {
    "who": "who",
    "title": "title",
    "target": "target",
    "inventory_digest": "inventory digest",
    "kind": "kind",
    "rack": "rack",
}
"""What a run's first entry says of it, and how it is called; the last two since version 3 of the schema."""


@dataclass(slots=True)
class _Story:
    """One run by its entries; ``last`` is the one from which its state follows."""

    begin: Entry
    last: Entry
    fence: int = 0
    state: str = "not begun"
    ended_at: float | None = None
    undone_by: str | None = None


@dataclass(slots=True)
class History:
    """The entries of a whole journal, in their order."""

    _stories: dict[str, _Story] = field(default_factory=dict)
    _in_order: list[Entry] = field(default_factory=list)
    _odd: list[Break] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """The next entry."""
        if not entry.run:
            return
        if entry.kind == "begin" and entry.run in self._stories:
            self._odd.append(Break(entry.seq, f"{entry.run} begins a second time"))
        elif entry.kind == "begin":
            self._stories[entry.run] = _Story(entry, entry)
        elif entry.run not in self._stories:
            self._odd.append(Break(entry.seq, f"{entry.run} goes on without having begun"))
            return
        self._stories[entry.run].fence = entry.fence
        self._in_order.append(entry)

    def complaints(self, rows: Iterator[Any], digest: Digest) -> Iterator[Break]:
        """What is wrong with the runs as they are kept."""
        yield from self._odd
        kept = {row.id: (row, raw.document(row.plan) or {}) for row in rows}
        self._tell({run: plan.get("undoes") for run, (_, plan) in kept.items()})
        for run, (row, plan) in kept.items():
            if run not in self._stories:
                yield Break(0, f"{run} is kept, and the journal does not know it")
                continue
            story = self._stories[run]
            if (wrong := _begun_otherwise(row, plan, story.begin, digest)) is not None:
                yield Break(story.begin.seq, f"the {wrong} of {run} is not what the journal has")
            elif (wrong := _ended_otherwise(row, story)) is not None:
                yield Break(story.last.seq, f"the {wrong} of {run} is not what follows from the journal")
        for run, story in self._stories.items():
            if run not in kept:
                yield Break(story.begin.seq, f"{run} began here, and is not kept any more")

    def _tell(self, undoes: Mapping[str, str | None]) -> None:
        for entry in self._in_order:
            story = self._stories[entry.run]
            if entry.kind == "end":
                story.state, story.ended_at, story.last = str(entry.data.get("state")), entry.at, entry
                # Before version 3 of the schema an end did not name the run that it took back.
                before = undoes.get(entry.run) if story.state == "done" else None
                self._settle(entry, entry.data.get("undid", before), undoes)
            elif story.state in {"not begun", "half-done"}:
                story.state, story.ended_at, story.last = "running", None, entry

    def _settle(self, end: Entry, undid: str | None, undoes: Mapping[str, str | None]) -> None:
        if undid is None:
            return
        for run, story in self._stories.items():
            attempt = run != end.run and story.state in OPEN and undoes.get(run) == undid
            if run == undid or attempt:
                story.state, story.undone_by, story.last = "undone", end.run, end
            elif story.undone_by == undid:
                story.state, story.undone_by, story.last = "done", None, end


def _begun_otherwise(row: Any, plan: Document, begin: Entry, digest: Digest) -> str | None:
    """The name of the first thing that is not as the run began."""
    if not begin.data.get("plan") == row.plan_digest == plan.get("digest") == digest(plan):
        return "plan"
    own_id = f"plan-{row.plan_digest[:8]}"  # the digest does not cover it
    if plan.get("id", own_id) != own_id:
        return "plan"
    for name, called in _SAID.items():
        kept = getattr(row, name)
        if begin.data.get(name, kept) != kept or plan.get(name, kept) != kept:
            return called
    if row.id.rpartition("-")[0] != row.kind:
        return "kind"
    if row.version != begin.version:
        return "version"
    return None if row.started_at == begin.at else "start"


def _ended_otherwise(row: Any, story: _Story) -> str | None:
    """The name of the first thing that is not as the run stands by its entries."""
    if row.state != story.state:
        return "state"
    if row.ended_at != story.ended_at:
        return "end"
    if row.undone_by != story.undone_by:
        return "undoing"
    # Whoever takes a run over has a newer number before it writes its first entry.
    ahead = story.ended_at is None and row.fence > story.fence
    return None if row.fence == story.fence or ahead else "lease number"
