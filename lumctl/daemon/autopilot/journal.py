"""The journal of a rack's autopilot, read at each observation and written before each action; and the status."""

from collections.abc import Sequence
from typing import Any

from lumctl.change.guard_action import NAME as GUARD
from lumctl.daemon.autopilot import stop_switch
from lumctl.daemon.autopilot.attempt import how_it_ended
from lumctl.daemon.autopilot.decision import Decision, Response, decision_document
from lumctl.daemon.autopilot.memory import (
    DAY_S,
    DECISION,
    HOUR_S,
    REMARK,
    WEEK_S,
    Ask,
    AskState,
    Attempt,
    AutopilotMemory,
    Event,
)
from lumctl.health.states import is_fault
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import How, Policy
from lumctl.store import ACTION_KINDS, ASKED, JournalEntry, Store

WHO = "autopilot"
GONE = ("gone",)
"""The signature of a decision whose fault has ended."""


def stopped_by_anybody(rack: str, store: Store) -> str | None:
    """Why a stop file or the journal forbids automatic actions in a rack now; ``None`` if they are allowed.

    Raises:
        StoreError: the journal cannot be read.
    """
    # Files first: a stop by file counts even if the journal cannot be read.
    if (why := stop_switch.thrown(stop_switch.places([rack], [store.files]))) is not None:
        return why
    memory = AutopilotMemory()
    memory.take(store.journal.remarks(REMARK))
    return memory.stopped


class AutopilotJournal:
    """Reads and writes the autopilot's remarks in one rack's journal. Every method may raise a ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.memory = AutopilotMemory()
        self._read_until: int | None = None

    def recall(self, policies: Sequence[Policy], now: float, *, whole: bool = True) -> AutopilotMemory:
        """The memory as of now. Without ``whole``, only remarks are read; that is enough while there is no fault."""
        self._catch_up(now)
        if not whole:
            return self.memory
        if any(policy.how is How.APPROVE for policy in policies):
            self.memory.asks = {
                a.plan: Ask(a.plan, a.asked_at, a.expires_at, AskState(a.state), a.by, a.comment)
                for a in self.store.approvals.all(since=now - 2 * WEEK_S)
            }
        longest_s = max((policy.cool_down_s for policy in policies), default=0.0)
        # Acknowledgements and other acts are runs, too, but change no device.
        changes = [run for run in self.store.runs.moves(since=now - longest_s, now=now) if run.kind not in ACTION_KINDS]
        self.memory.last_change = max((run.ended_at or now for run in changes), default=None)
        self.memory.queued = frozenset(name for each in self.store.demands.waiting() for name in each.accelerators)
        return self.memory

    def onsets(self, *, since: float) -> dict[tuple[str, str], float]:
        """When accelerators and hosts became faulty, from the history."""
        rows = self.store.health.transitions(since=since)
        return {
            (row.kind, row.component): row.at
            for row in rows
            if row.kind in {"accelerator", "host"} and is_fault(row.after)
        }

    def remark(self, event: Event, at: float, *, who: str = WHO, **data: Any) -> None:
        """Write a remark about an event; the remark is on disk when this returns."""
        self.store.journal.remark(REMARK, {"event": event.value, **data}, at=at, who=who)
        # The memory takes remarks only from the journal, so that a restart comes to the same state.
        self._catch_up(at)

    def write_down(self, decisions: Sequence[Decision], at: float) -> list[Decision]:
        """Write the decisions that are new or changed in one entry; return them."""
        decided = self.memory.decided
        news = [decision for decision in decisions if decided.get(decision.fault.key) != decision.signature]
        known = {decision.fault.key for decision in decisions}
        gone = [key for key, signature in decided.items() if key not in known and signature != GONE]
        if news or gone:
            documents = [decision_document(decision, briefly=True) for decision in news]
            over = [
                {"key": key, "act": Response.NOTHING.value, "because": "it is over", "signature": GONE} for key in gone
            ]
            self.store.journal.remark(DECISION, {"decisions": [*documents, *over]}, at=at, who=WHO)
            self._catch_up(at)
        return news

    def _catch_up(self, now: float) -> None:
        """Read the remarks since the last call; others write here too, such as an operator who stops the autopilot."""
        if self._read_until is None:
            # A fault that was decided more than a day ago is decided and written again after a restart.
            remarks = [*self.store.journal.remarks(REMARK), *self.store.journal.remarks(DECISION, since=now - DAY_S)]
            # By number, not by time: the clocks of those who write remarks may differ.
            remarks.sort(key=lambda remark: remark.seq)
        else:
            remarks = list(self.store.journal.remarks(REMARK, DECISION, after=self._read_until))
        self.memory.take(remarks)
        self._read_until = max((r.seq for r in remarks), default=self._read_until or 0)


MOST_DECISIONS = 10
ACTS = {True: "running", False: "ready"}
"""The state of an autopilot that is not stopped: ``True`` if a daemon answers."""


def rack_status(inventory: Inventory, rack: str, store: Store, *, now: float, watched: bool = False) -> dict[str, Any]:
    """The state of one rack's autopilot: ``off`` (no policies), ``stopped``, ``halted``, ``running`` or ``ready``.

    ``watched``: a daemon answers. If the autopilot is not stopped but no daemon answers, the state is ``ready``: a
    daemon on another machine would act.

    Raises:
        StoreError: the store cannot be read.
    """
    memory = AutopilotJournal(store).recall(inventory.policies, now)
    stopped = stop_switch.thrown(stop_switch.places([rack], [store.files])) or memory.stopped
    state = "off" if not inventory.policies else "stopped" if stopped else "halted" if memory.halted else ACTS[watched]
    policies = []
    for policy in inventory.policies:
        breaker = memory.breakers.get(policy.name)
        is_open = breaker is not None and breaker.open_since is not None
        policies.append(
            {
                "policy": policy.name,
                "how": policy.how.value,
                "breaker": None if policy.how is How.NOTIFY else "open" if is_open else "closed",
                "breaker_since": breaker.open_since if breaker and is_open else None,
                "breaker_why": breaker.why if breaker and is_open else None,
                "swaps_hour": len(memory.tried(since=now - HOUR_S)),
                "most_hour": policy.limits.rack_hour,
                "swaps_day": len(memory.tried(since=now - DAY_S)),
                "most_day": policy.limits.rack_day,
            }
        )
    waiting = [
        {
            "plan": a.plan,
            "title": (store.runs.plan(a.plan) or {}).get("title", ""),
            "policy": a.policy,
            "made_by": a.made_by,
            "asked_at": a.asked_at,
            "expires_at": a.expires_at,
        }
        for a in store.approvals.all()
        if a.state == ASKED and a.expires_at > now
    ]
    remarks = store.journal.remarks(REMARK, DECISION, since=now - WEEK_S)
    own = [r.at for r in remarks if str(r.data.get("who", "")).startswith(WHO)]
    decided = [
        {"at": remark.at, **told}
        for remark in remarks
        if remark.kind == DECISION
        for told in remark.data.get("decisions", ())
        if told.get("policy") is not None
    ]
    return {
        "rack": rack,
        "state": state,
        "why": stopped or memory.halted,
        "policies": policies,
        "last_decided_at": max(own, default=None),
        "waiting": waiting,
        "failed_attempts": _failed_attempts(store, memory, remarks, now),
        "decisions": decided[-MOST_DECISIONS:],
    }


def _failed_attempts(
    store: Store, memory: AutopilotMemory, remarks: Sequence[JournalEntry], now: float
) -> list[dict[str, Any]]:
    """The last attempt for each fault within a week, if it did not succeed, oldest first.

    Each outcome is read from the attempt's run: a revert guard may have ended the run without a daemon noticing.
    """
    newest = {attempt.key: attempt for attempt in memory.attempts if now - attempt.at < WEEK_S}
    found = [_described(store, each, remarks, now) for each in newest.values() if each.outcome != "done"]
    return sorted((each for each in found if each["outcome"] not in {"done", "running"}), key=lambda each: each["at"])


def _described(store: Store, attempt: Attempt, remarks: Sequence[JournalEntry], now: float) -> dict[str, Any]:
    kept = store.runs.plan(attempt.plan)
    ended = how_it_ended(store, str(kept["digest"]) if kept else "", since=attempt.at, now=now)
    end = next((e.data for e in reversed(store.journal.of_run(ended.run)) if e.kind == "end"), {}) if ended.run else {}
    after = [remark for remark in remarks if remark.at >= attempt.at]
    told = next((r.data.get("told") for r in after if _is_outcome_of(r, attempt)), None)
    decided = [
        decision
        for remark in after
        if remark.kind == DECISION
        for decision in remark.data.get("decisions", ())
        if decision.get("key") == attempt.key and decision.get("act") != "apply"
    ]
    return {
        "at": attempt.at,
        "policy": attempt.policy,
        "key": attempt.key,
        "accelerators": list(attempt.accelerators),
        "plan": attempt.plan,
        "run": ended.run,
        "outcome": ended.outcome or attempt.outcome or "unknown",
        "by_guard": str(end.get("by", "")).startswith(GUARD),
        "why": end.get("failed") or told,
        "not_tried_since": decided[-1].get("because") if decided else None,
    }


def _is_outcome_of(remark: JournalEntry, attempt: Attempt) -> bool:
    return (
        remark.kind == REMARK and remark.data.get("event") == Event.OUTCOME and remark.data.get("plan") == attempt.plan
    )
