"""Histories to try policies on: one change of a state on each line, as ``health explain -o json`` writes them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from lumctl.errors import UsageError
from lumctl.fleet.readings import Snapshot
from lumctl.health.incidents import with_incidents
from lumctl.health.look import Look
from lumctl.health.rulebook import lines_of, rulebook
from lumctl.health.states import CircuitEndHealth, CircuitHealth, ComponentHealth, Finding, HealthReport, State
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Inventory
from lumctl.inventory.problems import listing, nearest
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of
from lumctl.site.observation import Observation

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
        UsageError: it cannot be read, or a line of it is no transition; the line is named.
    """
    try:
        with path.open("rb") as opened:
            text = opened.read(_MOST_BYTES + 1)  # whatever its size is said to be: it may be no regular file
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    if len(text) > _MOST_BYTES:
        raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MiB")
    try:
        lines = text.decode().splitlines()
    except UnicodeDecodeError as error:
        line, column = text.count(b"\n", 0, error.start) + 1, error.start - text.rfind(b"\n", 0, error.start)
        raise _wrong(path, f"{line}:{column}", "this is no text in UTF-8") from None
    found = [_read(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise UsageError(f"{path} is empty: there is no history in it")
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
    at, rules = row["at"], row.get("rules", [])
    if isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at):
        raise _MistakeError("at", f"at: found {_shown(json.dumps(at))}, expected seconds since the epoch")
    if not isinstance(rules, list):
        raise _MistakeError("rules", f"rules: found {_shown(json.dumps(rules))}, expected a list")
    before = row.get("before")
    return Transition(
        float(at),
        str(row["component"]),
        _word(row, "kind", _KINDS),
        State(_word(row, "before", _STATES)) if before is not None else None,
        State(_word(row, "after", _STATES)),
        tuple(map(str, rules)),
        str(row.get("evidence", "")),
    )


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
        hint='a line is {"at": SECONDS, "component": ID, "kind": "accelerator", "after": "failed", "rules": [...]}; '
        "lumctl health explain COMPONENT -o json has them under history",
    )


def look_at(inventory: Inventory, target: str, states: States, assignment: Assignment, now: float) -> Observation:
    """The look that a history implies: everything that it does not tell of is well."""
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
    ends = tuple(CircuitEndHealth(end.transponder, end.port, None, None, None) for end in (circuit.a, circuit.b))
    return CircuitHealth(
        circuit.id,
        circuit.owner,
        circuit.device,
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
    findings = () if row.after in {State.OK, State.DISABLED} else tuple(_finding(row, rule) for rule in row.rules)
    return row.after, findings, None


def _finding(row: Transition, rule: str) -> Finding:
    case, advice = _case(row, rule)
    return Finding(row.component, rule, row.after, row.evidence, advice, row.at, case)


def _case(row: Transition, rule: str) -> tuple[str, str]:
    """A history tells rules, not their cases: the XID stands in the evidence, else the first of that state it is."""
    lines = every = lines_of(rule)
    if rule == "gpu.xid":
        number = _XID.search(row.evidence)
        action = rulebook().xid_actions.get(int(number[1]), "unknown") if number else "unknown"
        decoded = every if number and int(number[1]) in rulebook().xid_units else ()
        # A sub-code may weigh more or less than the number.
        lines = (*(line for line in every if line.case == action), *decoded)
    fitting: Sequence[Any] = [line for line in lines if line.state is row.after] or lines
    return (fitting[0].case, fitting[0].advice) if fitting else ("", "")
