"""Rehearsal of policies on a history: what they would have done, by the same decisions, without devices.

A history has one change of state on each line, as ``health explain -o json`` writes them.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any

from lumctl.daemon.autopilot.decision import Decision, Response, decide, decision_document
from lumctl.daemon.autopilot.memory import REMARK, Ask, AskState, AutopilotMemory, Event
from lumctl.daemon.autopilot.policy import BreakerState, breaker_changes, closes_at, kept_onsets_s, onsets_of
from lumctl.errors import UsageError
from lumctl.fleet.readings import Snapshot
from lumctl.health.incidents import with_incidents
from lumctl.health.look import Look
from lumctl.health.observation import Observation
from lumctl.health.rulebook import lines_of, rulebook
from lumctl.health.states import (
    HARMLESS,
    CircuitEndHealth,
    CircuitHealth,
    ComponentHealth,
    Finding,
    HealthReport,
    State,
)
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.policies import How, Policy
from lumctl.inventory.problems import listing, nearest
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, initial_assignment, job_circuits
from lumctl.time_text import seconds_of

_MOST_BYTES = 64 * 1024 * 1024
_MOST_SHOWN = 40
_KINDS = ("accelerator", "host", "link", "device", "circuit")
_STATES = tuple(state.value for state in State)
_XID = re.compile(r"\bXID (\d+)")
_MAINTENANCE = "in maintenance: "

States = Mapping[tuple[str, str], Transition]
"""The last change of each component, by kind and id."""


def read_history(path: Path) -> tuple[Transition, ...]:
    """The transitions of a file of JSON lines, oldest first.

    Raises:
        UsageError: the file cannot be read, or a line is not a transition; the error names the line.
    """
    try:
        with path.open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)  # its size is unknown if it is not a regular file
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MiB")
    try:
        lines = text.decode().splitlines()
    except UnicodeDecodeError as error:
        line, column = text.count(b"\n", 0, error.start) + 1, error.start - text.rfind(b"\n", 0, error.start)
        raise _wrong(path, f"{line}:{column}", "this is not UTF-8 text") from None
    found = [_read(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise UsageError(f"{path} is empty: it contains no history")
    return tuple(sorted(found, key=lambda row: row.at))


def _read(path: Path, number: int, line: str) -> Transition:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        rest = _shown(line[error.pos :]) or "the end of the line"
        raise _wrong(path, f"{number}:{error.colno}", f"found {rest}, expected JSON") from None
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"{number}:1", f"this cannot be read as JSON: {error}") from None
    try:
        return _transition(row)
    except _MistakeError as error:
        column = line.find(json.dumps(error.key)) + 1 or 1
        raise _wrong(path, f"{number}:{column}", str(error)) from None


class _MistakeError(Exception):
    def __init__(self, key: str, said: str) -> None:
        super().__init__(said)
        self.key = key


def _transition(row: Any) -> Transition:
    if not isinstance(row, dict):
        raise _MistakeError("", f"found {_shown(json.dumps(row))}, expected a mapping")
    for key in ("at", "component", "kind", "after"):
        if key not in row:
            raise _MistakeError(key, f"key {key!r} is missing here")
    at, rules = _moment(row["at"]), row.get("rules", [])
    if not isinstance(rules, list):
        raise _MistakeError("rules", f"rules: found {_shown(json.dumps(rules))}, expected a list")
    before = row.get("before")
    return Transition(
        at,
        str(row["component"]),
        _word(row, "kind", _KINDS),
        State(_word(row, "before", _STATES)) if before is not None else None,
        State(_word(row, "after", _STATES)),
        tuple(map(str, rules)),
        str(row.get("evidence", "")),
    )


def _moment(at: Any) -> float:
    """A time in seconds since the epoch, from a number or from ISO 8601 with a zone, the form used in documents."""
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(at, str) and datetime.fromisoformat(at).tzinfo is not None:
            return seconds_of(at)
    if isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at):
        said = f"at: found {_shown(json.dumps(at))}, expected seconds since the epoch, or ISO 8601 with zone"
        raise _MistakeError("at", said)
    return float(at)


def _word(row: Mapping[str, Any], key: str, known: Sequence[str]) -> str:
    if row[key] not in known:
        near = nearest(str(row[key]), known)
        meant = f"; did you mean {near!r}?" if near else ""
        raise _MistakeError(key, f"{key}: found {_shown(json.dumps(row[key]))}, expected {listing(known)}{meant}")
    return str(row[key])


def _shown(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _wrong(path: Path, place: str, said: str) -> UsageError:
    return UsageError(
        f"{path}:{place}: {said}",
        hint=(
            "each line is "
            '{"at": TIME, "component": ID, "kind": "accelerator", "after": "failed", "rules": [...]}; '
            "lumctl health explain COMPONENT -o json prints such lines under history"
        ),
    )


def look_at(inventory: Inventory, target: str, states: States, assignment: Assignment, now: float) -> Observation:
    """The observation that a history implies; components that it does not mention are ok."""
    circuits = circuits_of(inventory, assignment)
    placed = {accelerator for ranks in assignment.values() for accelerator in ranks}
    first = {accelerator for job in inventory.jobs.values() for accelerator in job.ranks}
    swapped_out = first - placed

    def health(kind: str, names: Iterable[str]) -> dict[str, ComponentHealth]:
        return {
            name: _health(kind, name, states, disabled=kind == "accelerator" and name in swapped_out) for name in names
        }

    report = HealthReport(
        at=now,
        hosts=health("host", inventory.hosts),
        accelerators=health("accelerator", inventory.accelerators),
        links=health("link", inventory.transponders),
        devices=health("device", [device.id for device in inventory.light_devices]),
        circuits={circuit.id: _circuit(circuit, states) for circuit in circuits},
    )
    snapshot = Snapshot(now, 0.0, {})
    report = with_incidents(report, Look(inventory, snapshot, circuits, swapped_out, now))
    return Observation(now, target, inventory, assignment, circuits, {}, snapshot, report)


def _health(kind: str, name: str, states: States, *, disabled: bool) -> ComponentHealth:
    state, findings, maintenance = _said(states.get((kind, name)))
    out = disabled or maintenance is not None or state is State.DISABLED
    shown = State.DISABLED if out else state
    return ComponentHealth(name, kind, shown, findings, maintenance=maintenance, disabled=out)


def _circuit(circuit: Circuit, states: States) -> CircuitHealth:
    state, findings, maintenance = _said(states.get(("circuit", circuit.id)))
    ends = tuple(
        CircuitEndHealth(end.transponder, end.device, end.port, None, None, None) for end in (circuit.a, circuit.b)
    )
    return CircuitHealth(
        circuit.id,
        circuit.owner,
        circuit.direction.value,
        state,
        ends,
        None,
        findings,
        maintenance=maintenance,
        disabled=maintenance is not None,
    )


def _said(row: Transition | None) -> tuple[State, tuple[Finding, ...], str | None]:
    if row is None:
        return State.OK, (), None
    if row.evidence.startswith(_MAINTENANCE):
        return State.DISABLED, (), row.evidence.removeprefix(_MAINTENANCE)
    findings = () if row.after in HARMLESS else tuple(_finding(row, rule) for rule in row.rules)
    return row.after, findings, None


def _finding(row: Transition, rule: str) -> Finding:
    case, advice = _case(row, rule)
    return Finding(row.component, rule, row.after, row.evidence, advice, row.at, case)


def _case(row: Transition, rule: str) -> tuple[str, str]:
    """The case and advice of a rule. A history has no cases: the XID in the evidence decides, else the state."""
    lines = every = lines_of(rule)
    if rule == "gpu.xid":
        number = _XID.search(row.evidence)
        action = rulebook().xid_actions.get(int(number[1]), "unknown") if number else "unknown"
        decoded = every if number and int(number[1]) in rulebook().xid_units else ()
        # A sub-code may be more or less severe than the XID number.
        lines = (*(line for line in every if line.case == action), *decoded)
    fitting: Sequence[Any] = [line for line in lines if line.state is row.after] or lines
    return (fitting[0].case, fitting[0].advice) if fitting else ("", "")


TICK_S = 1.0
"""The time between two observations of a rack; the daemon does one action at each."""
_MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class RehearsedEvent:
    """An event that would have occurred: ``what`` is a decision, a breaker's change, or a swap's outcome."""

    at: float
    rack: str
    what: str
    component: str
    policy: str
    because: str
    decision: Decision | None = None

    def document(self) -> dict[str, Any]:
        """The event as data."""
        told = {"at": self.at, "rack": self.rack, "what": self.what, "component": self.component}
        more = decision_document(self.decision) if self.decision else None
        return {**told, "policy": self.policy or None, "because": self.because, "decision": more}


@dataclass(frozen=True, slots=True)
class _Remark:
    at: float
    kind: str
    data: Mapping[str, Any]


@dataclass
class _Rack:
    name: str
    memory: AutopilotMemory = field(default_factory=AutopilotMemory)
    onsets: dict[tuple[str, str], float] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    """Faults for which there was no spare."""

    def remark(self, at: float, event: Event, **data: Any) -> None:
        self.memory.take([_Remark(at, REMARK, {"event": event.value, **data})])


class Rehearsal:
    """Runs a history. An operator is assumed to approve each plan ``approve_after_s`` seconds after the request."""

    def __init__(self, inventory: Inventory, target: str, *, approve_after_s: float | None = None) -> None:
        self._inventory, self._target = inventory, target
        self._approve_after_s = approve_after_s
        self._assignment = dict(initial_assignment(inventory))
        self._states: dict[tuple[str, str], Transition] = {}
        self._racks = [_Rack(name) for name in inventory.racks]
        self._plans = 0

    def run(self, history: Sequence[Transition], *, ends_at: float) -> Iterator[RehearsedEvent]:
        """All events that would have occurred until a time (seconds since the epoch), in order."""
        waiting = list(history)
        now: float | None = waiting[0].at if waiting else None
        for _ in range(_MOST_STEPS):
            if now is None or now > ends_at:
                return
            while waiting and waiting[0].at <= now:
                row = waiting.pop(0)
                self._states[row.kind, row.component] = row
            times = [waiting[0].at] if waiting else []
            for rack in self._racks:
                yield from self._one_look(rack, now, times)
            # Nothing changes between these times, so the time jumps to the next one.
            now = min((at for at in times if at > now), default=None)

    def _one_look(self, rack: _Rack, now: float, times: list[float]) -> Iterator[RehearsedEvent]:
        """Handle one observation of one rack; add the times at which something may change to ``times``."""
        look = look_at(self._inventory, self._target, self._states, self._assignment, now)
        yield from self._breakers(rack, look, now, times)
        self._answer(rack, now, times)
        decisions = decide(self._inventory.policies, look, rack.name, rack.memory, rack.onsets, now=now)
        for decision in decisions:
            key = decision.fault.key
            if rack.memory.decided.get(key) != decision.signature:
                rack.memory.decided[key] = decision.signature
                policy = decision.policy.name if decision.policy else ""
                name = decision.fault.component
                yield RehearsedEvent(now, rack.name, decision.act, name, policy, decision.because, decision)
            if decision.until is not None:
                times.append(decision.until)
        for decision in decisions:
            if decision.policy is None or decision.fault.key in rack.given_up:
                continue
            told = list(self._do(rack, look, decision, decision.policy, now))
            yield from told
            if decision.act in {Response.PLAN, Response.ASK, Response.APPLY}:
                times.append(now + TICK_S)
                return

    def _breakers(self, rack: _Rack, look: Observation, now: float, times: list[float]) -> Iterator[RehearsedEvent]:
        policies = [policy for policy in self._inventory.policies if policy.how is not How.NOTIFY]
        rack.onsets = onsets_of(look, rack.name, rack.onsets, keep_s=kept_onsets_s(policies))
        for policy, state, why in list(
            breaker_changes(policies, rack.memory.breakers, look, rack.name, rack.onsets, now)
        ):
            event = Event.BREAKER_OPENED if state.open_since is not None else Event.BREAKER_CLOSED
            rack.remark(now, event, policy=policy.name, why=why)
            yield RehearsedEvent(now, rack.name, event, rack.name, policy.name, why)
        times.extend(
            # Always after now: run() leaves out times that have passed, and would not look at the breaker again.
            max(closes_at(policy.breaker, rack.onsets), now + TICK_S)
            for policy in policies
            if rack.memory.breakers.get(policy.name, BreakerState()).open_since is not None
        )

    def _answer(self, rack: _Rack, now: float, times: list[float]) -> None:
        """Approve the plans whose assumed approval is due."""
        for ask in list(rack.memory.asks.values()):
            if ask.state is not AskState.ASKED:
                continue
            times += [ask.expires_at, *(ask.at + p.escalation.after_s for p in self._inventory.policies)]
            if self._approve_after_s is not None:
                at = ask.at + self._approve_after_s
                times.append(at)
                if at <= now and at < ask.expires_at:
                    answered = Ask(ask.plan, ask.at, ask.expires_at, AskState.APPROVED, "an operator")
                    rack.memory.asks[ask.plan] = answered

    def _do(
        self, rack: _Rack, look: Observation, decision: Decision, policy: Policy, now: float
    ) -> Iterator[RehearsedEvent]:
        key, name = decision.fault.key, decision.fault.component
        match decision.act:
            case Response.NOTIFY:
                rack.remark(now, Event.TOLD, key=key, policy=policy.name)
            case Response.PLAN:
                rack.remark(now, Event.PLANNED, key=key, policy=policy.name, plan=self._new_plan())
            case Response.ASK:
                plan = self._new_plan()
                rack.memory.asks[plan] = Ask(plan, now, now + policy.approval.expires_s, AskState.ASKED)
                rack.remark(now, Event.ASKED, key=key, policy=policy.name, plan=plan)
            case Response.APPLY:
                yield self._applied(rack, look, decision, policy, now)
            case _:
                ask = rack.memory.asks.get(decision.plan or "")
                overdue = ask is not None and ask.state is AskState.ASKED and now - ask.at >= policy.escalation.after_s
                if ask is not None and overdue and rack.memory.handled[key].event is not Event.ESCALATED:
                    rack.remark(now, Event.ESCALATED, key=key, policy=policy.name, plan=ask.plan)
                    because = f"{ask.plan} has been waiting for approval for {now - ask.at:.0f} s"
                    yield RehearsedEvent(now, rack.name, Event.ESCALATED, name, policy.name, because)

    def _applied(
        self, rack: _Rack, look: Observation, decision: Decision, policy: Policy, now: float
    ) -> RehearsedEvent:
        """Assume that a swap succeeds if there is a spare of the same kind; the planner may choose another spare."""
        plan = decision.plan or self._new_plan()
        pairs: list[tuple[str, str]] = []
        for job, accelerators in decision.fault.jobs.items():
            for failed in accelerators:
                spare = self._spare(look, job, failed, dict(pairs))
                if spare is None:
                    rack.given_up.add(decision.fault.key)
                    because = f"no spare of the same kind is left for {failed}"
                    return RehearsedEvent(now, rack.name, "failed", failed, policy.name, because)
                pairs.append((failed, spare))
        by = dict(pairs)
        for job in decision.fault.jobs:
            self._assignment[job] = tuple(by.get(rank, rank) for rank in self._assignment[job])
        replaced = [failed for failed, _ in pairs]
        rack.remark(now, Event.ATTEMPT, plan=plan, policy=policy.name, key=decision.fault.key, accelerators=replaced)
        rack.remark(now, Event.OUTCOME, plan=plan, outcome="done")
        rack.memory.last_change = now
        if plan in rack.memory.asks:
            ask = rack.memory.asks[plan]
            rack.memory.asks[plan] = Ask(plan, ask.at, ask.expires_at, AskState.SPENT, ask.by)
        told = ", ".join(f"{failed} by {spare}" for failed, spare in pairs)
        return RehearsedEvent(now, rack.name, "applied", decision.fault.component, policy.name, f"replace {told}")

    def _spare(self, look: Observation, job: str, failed: str, taken: Mapping[str, str]) -> str | None:
        """The first spare of the same kind whose lanes lead where the links of the job need them."""
        old, written = look.inventory.accelerators[failed], look.inventory.jobs[job]
        for name, new in look.inventory.accelerators.items():
            alike = new.rack == old.rack and new.model == old.model and new.memory_gib >= old.memory_gib
            well = look.report.accelerators[name].state is State.OK
            if not alike or not well or name in taken.values() or look.role_of(name) is not Role.SPARE:
                continue
            by = {**taken, failed: name}
            with suppress(UsageError):
                job_circuits(look.inventory, written, tuple(by.get(rank, rank) for rank in self._assignment[job]))
                return name
        return None

    def _new_plan(self) -> str:
        self._plans += 1
        return f"plan-{self._plans:04}"
