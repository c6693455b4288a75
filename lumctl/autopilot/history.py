"""Histories to try policies on: one change of a state on each line, as ``health explain -o json`` writes them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lumctl.errors import UsageError
from lumctl.fleet.readings import Snapshot
from lumctl.health.incidents import with_incidents
from lumctl.health.look import Look
from lumctl.health.rulebook import rulebook
from lumctl.health.states import CircuitEndHealth, CircuitHealth, ComponentHealth, Finding, HealthReport, State
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of
from lumctl.site.observation import Observation

_MOST_BYTES = 64 * 1024 * 1024
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
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MiB")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    found = [_read(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise UsageError(f"{path} is empty: there is no history in it")
    return tuple(sorted(found, key=lambda row: row.at))


def _read(path: Path, number: int, line: str) -> Transition:
    try:
        row = json.loads(line)
        before = row.get("before")
        return Transition(
            float(row["at"]),
            str(row["component"]),
            str(row["kind"]),
            State(before) if before is not None else None,
            State(row["after"]),
            tuple(map(str, row.get("rules", ()))),
            str(row.get("evidence", "")),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path}:{number}: this is no change of a state: {type(error).__name__}: {error}",
            hint='a line is {"at": SECONDS, "component": ID, "kind": "accelerator", "after": "failed", "rules": [...]}',
        ) from None


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
    lines = rulebook().lines(rule)
    if rule == "gpu.xid":
        number = _XID.search(row.evidence)
        action = rulebook().xid_actions.get(int(number[1]), "unknown") if number else "unknown"
        lines = tuple(line for line in lines if line.case == action)
    fitting: Sequence[Any] = [line for line in lines if line.state is row.after] or lines
    return (fitting[0].case, fitting[0].advice) if fitting else ("", "")
