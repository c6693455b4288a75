"""Policies: the automatic actions, the state of their breakers, and the last decisions."""

from collections.abc import Iterator, Mapping
from typing import Any

from lumctl.health.states import State
from lumctl.tui.look.marks import STATE_STYLES, Marks
from lumctl.tui.panes.rows import AGO, Cell, Column, Pane, Row
from lumctl.tui.views.policy_text import STATES
from lumctl.tui.views.records import RecordedLook

ASKED, DECISION = "asked", "decision"
"""The part after the rack in the keys of these rows; in the key of a policy's row that part is ``policy``."""


def policy_rows(seen: RecordedLook, marks: Marks) -> list[Row]:
    """Each rack's autopilot with its policies, the plans that wait for approval, and its decisions, newest first."""
    return [row for autopilot in seen.records.autopilots for row in _rows(autopilot, marks)]


def find(autopilot: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """The decision with a row's key (without the rack); ``None`` if it is no longer among the newest."""
    return next((decision for decision in autopilot["decisions"] if _key(decision) == key), None)


def _rows(autopilot: Mapping[str, Any], marks: Marks) -> Iterator[Row]:
    rack, state = str(autopilot["rack"]), str(autopilot["state"])
    yield _row(
        (rack, "autopilot", _cell(state, STATES.get(state, State.UNKNOWN), marks), str(autopilot.get("why") or "")),
        rack,
        autopilot.get("last_decided_at"),
        STATES.get(state, State.UNKNOWN),
    )
    for policy in autopilot["policies"]:
        is_open = policy["breaker"] == "open"
        hour, day = (f"{policy[f'swaps_{word}']} of {policy[f'most_{word}']}" for word in ("hour", "day"))
        breaker = f"breaker {policy['breaker']}" if policy["breaker"] else ""
        said = ", ".join(
            word for word in (breaker, policy["breaker_why"] or "", f"{hour} an hour, {day} a day") if word
        )
        name = str(policy["policy"])
        look = State.DEGRADED if is_open else State.OK
        how = _cell(str(policy["how"]), look if is_open else None, marks)
        decided = max((d["at"] for d in autopilot["decisions"] if d.get("policy") == name), default=None)
        at = policy["breaker_since"] or decided
        yield _row((f"  {name}", "policy", how, said), f"{rack}/policy/{name}", at, look)
    for asked in autopilot["waiting"]:
        waits = _cell("waits", State.DEGRADED, marks)
        said = f"{asked['plan']}: {asked['title']}; enter to approve or reject it"
        key = f"{rack}/{ASKED}/{asked['plan']}"
        yield _row((f"  {asked['policy']}", "approval", waits, said), key, asked["asked_at"], State.DEGRADED)
    for decision in reversed(autopilot["decisions"]):  # the document has the oldest first
        said = (
            f"{decision.get('component', decision['key'])}: {decision.get('because') or decision.get('reason') or ''}"
        )
        cells = (f"  {decision['policy']}", "decided", Cell(str(decision.get("act", ""))), said)
        yield _row(cells, f"{rack}/{_key(decision)}", decision["at"], State.OK)


def _key(decision: Mapping[str, Any]) -> str:
    return f"{DECISION}/{decision['at']}/{decision['key']}"


def _cell(word: str, state: State | None, marks: Marks) -> Cell:
    return Cell(word) if state is None else Cell(f"{marks.glyphs.get(state, '')} {word}", STATE_STYLES[state])


def _row(cells: tuple[str, str, Cell, str], key: str, at: float | None, state: State) -> Row:
    name, kind, shown, said = cells
    return Row(key, name.strip(), state, (Cell(name), Cell(kind), shown, Cell(said)), at)


def _trouble(seen: RecordedLook) -> tuple[State, ...]:
    """The states of rows that need an operator: a stopped autopilot, an open breaker, a plan that waits."""
    return tuple(row.state for row in policy_rows(seen, Marks({})) if row.state in {State.DEGRADED, State.FAILED})


POLICIES = Pane(
    "policies",
    "Policies",
    "policies and decisions",
    "Policies: what may be done automatically, and what was decided.",
    (
        Column("name", "NAME", 14),
        Column("kind", "KIND", 9),
        Column("state", "STATE", 10),
        AGO,
        Column("said", "WHY", 30),
    ),
    policy_rows,
    _trouble,
    goes_stale=False,
    opens="policy",
    one="policy or decision",
    short="Pol",
)
