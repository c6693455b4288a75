"""What the autopilot of one rack knows, as its store keeps it: read at each look, written before anything is done."""

from collections.abc import Sequence
from typing import Any

from lumctl.daemon.autopilot import switch
from lumctl.daemon.autopilot.decide import Act, Decision
from lumctl.daemon.autopilot.memory import DAY_S, DECISION, REMARK, WEEK_S, Ask, AskState, Event, Memory
from lumctl.daemon.autopilot.telling import decision_document
from lumctl.health.states import is_fault
from lumctl.inventory.policies import How, Policy
from lumctl.store import ACTION_KINDS, Store

WHO = "autopilot"
GONE = ("gone",)
"""The signature of a decision whose trouble is over."""


def stopped_by_anybody(rack: str, store: Store) -> str | None:
    """Why the stop files or the journal forbid automatic actions in a rack now; ``None`` if they are allowed.

    Raises:
        StoreError: the journal cannot be read.
    """
    if (why := switch.thrown(switch.places([rack], [store.files]))) is not None:
        return why
    memory = Memory()
    memory.take(store.remarks(REMARK))
    return memory.stopped


class Notebook:
    """Reads and writes the remarks of one rack. Every method may raise a ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.memory = Memory()
        self._read_until: int | None = None

    def recall(self, policies: Sequence[Policy], now: float, *, whole: bool = True) -> Memory:
        """What is known now. Without ``whole`` only what was remarked: nothing is at fault."""
        self._catch_up(now)
        if not whole:
            return self.memory
        if any(policy.how is How.APPROVE for policy in policies):
            self.memory.asks = {
                a.plan: Ask(a.plan, a.asked_at, a.expires_at, AskState(a.state), a.by, a.comment)
                for a in self.store.approvals(since=now - 2 * WEEK_S)
            }
        longest_s = max((policy.cool_down_s for policy in policies), default=0.0)
        changes = [run for run in self.store.moves(since=now - longest_s, now=now) if run.kind not in ACTION_KINDS]
        self.memory.last_change = max((run.ended_at or now for run in changes), default=None)
        return self.memory

    def onsets(self, *, since: float) -> dict[tuple[str, str], float]:
        """When accelerators and hosts began to be at fault, as the history has it."""
        rows = self.store.transitions(since=since)
        return {
            (row.kind, row.component): row.at
            for row in rows
            if row.kind in {"accelerator", "host"} and is_fault(row.after)
        }

    def remark(self, event: Event, at: float, *, who: str = WHO, **data: Any) -> None:
        """Write down what happened; on disk when this returns."""
        self.store.remark(REMARK, {"event": event.value, **data}, at=at, who=who)
        self._catch_up(at)

    def write_down(self, decisions: Sequence[Decision], at: float) -> list[Decision]:
        """Every decision once: those that are new, or others than before, in one entry; gives these."""
        decided = self.memory.decided
        news = [decision for decision in decisions if decided.get(decision.trouble.key) != decision.signature]
        known = {decision.trouble.key for decision in decisions}
        gone = [key for key, signature in decided.items() if key not in known and signature != GONE]
        if news or gone:
            documents = [decision_document(decision, briefly=True) for decision in news]
            over = [{"key": key, "act": Act.NOTHING.value, "because": "it is over", "signature": GONE} for key in gone]
            self.store.remark(DECISION, {"decisions": [*documents, *over]}, at=at, who=WHO)
            self._catch_up(at)
        return news

    def _catch_up(self, now: float) -> None:
        """Take in what anybody has remarked since the last time: others write here too, such as whoever stops it."""
        if self._read_until is None:
            remarks = [*self.store.remarks(REMARK), *self.store.remarks(DECISION, since=now - DAY_S)]
            remarks.sort(key=lambda remark: remark.seq)
        else:
            remarks = list(self.store.remarks(after=self._read_until))
        self.memory.take(remarks)
        self._read_until = max((r.seq for r in remarks), default=self._read_until or 0)
