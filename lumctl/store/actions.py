"""Actions that change no device, stored as finished runs. One transaction does an action and records it in the journal.

They take no lease: an operator who acknowledges a finding does not wait for a swap to end, and does not disturb it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from lumctl import __version__
from lumctl.errors import RefusedError, UsageError
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow, acknowledgement_from, covered_from
from lumctl.inventory.problems import nearest
from lumctl.store import health_rows, journal
from lumctl.store.database import writing
from lumctl.store.rack_rows import RackRows
from lumctl.store.records import new_run_id
from lumctl.store.schema import acknowledgements, runs, windows

ACTION_KINDS = frozenset({"ack", "maintain", "policy"})
"""The kinds of runs that change no device."""

_PLAN_SCHEMA = "lumctl/plan/v1"


class Actions:
    """Acts on one rack's store, and their record as runs."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def perform(self, data: Mapping[str, Any], *, who: str, now: float) -> dict[str, Any]:
        """Do an act of a run whose caller journals it; see :mod:`lumctl.store.actions`.

        Raises:
            RefusedError: there is nothing to withdraw or to end.
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            return perform(connection, data, who=who, now=now)

    def undo(self, data: Mapping[str, Any], evidence: Mapping[str, Any]) -> None:
        """Undo an act, from the evidence that :meth:`perform` returned.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._rows.engine) as connection:
            take_back(connection, data, evidence)

    def record(
        self,
        kind: str,
        title: str,
        steps: Sequence[Mapping[str, Any]],
        *,
        who: str,
        inventory_digest: str,
        target: str,
        at: float,
        end: float,
    ) -> str:
        """Do the acts of ``steps`` and store them as a finished run; return the run's id, such as ``ack-0007``.

        Each step has a ``title`` and ``data``: an act, see :mod:`lumctl.store.actions`. ``kind`` is ack, maintain or
        policy.

        Raises:
            RefusedError: there is nothing to withdraw or to end; nothing was written.
            UsageError: the data of a step is not an act.
            StoreError: the store cannot be written.
        """
        about = {"kind": kind, "title": title, "rack": self._rows.rack, "target": target, "created_at": at}
        plan = _plan({**about, "inventory_digest": inventory_digest}, steps)
        with writing(self._rows.engine) as connection:
            run = new_run_id(connection, kind, self._rows.of(runs))
            connection.execute(
                insert(runs).values(
                    id=run,
                    rack=self._rows.rack,
                    target=target,
                    kind=kind,
                    title=title,
                    plan=json.dumps(plan, ensure_ascii=False),
                    plan_digest=plan["digest"],
                    inventory_digest=inventory_digest,
                    who=who,
                    version=__version__,
                    fence=journal.NO_FENCE,
                    state="done",
                    started_at=at,
                    ended_at=end,
                )
            )
            begin = {"plan": plan["digest"], "who": who, "inventory_digest": inventory_digest, "title": title}
            self._append(
                connection, run, at, "begin", "", {**begin, "target": target, "kind": kind, "rack": self._rows.rack}
            )
            for step in plan["steps"]:
                self._append(connection, run, at, "intent", step["id"], {"do": step["do"], "title": step["title"]})
                evidence = perform(connection, step["data"], who=who, now=at)
                self._append(connection, run, end, "outcome", step["id"], {"done": True, **evidence})
            self._append(connection, run, end, "end", "", {"state": "done"})
        return run

    def _append(
        self, connection: Connection, run: str, at: float, kind: str, step: str, data: Mapping[str, Any]
    ) -> None:
        journal.append(
            connection, rack=self._rows.rack, run=run, at=at, kind=kind, step=step, data=data, fence=journal.NO_FENCE
        )


def _plan(about: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The acts as a plan document, so that all code that reads runs can read this one too."""
    plan: dict[str, Any] = {
        "schema": _PLAN_SCHEMA,
        **about,
        "undoes": None,
        "expected_seconds": 0.0,
        "warnings": [],
        "replacements": [],
        "candidates": [],
        "circuits": {"add": [], "remove": [], "keep": []},
        "puc_changes": [],
        "join_changes": [],
        "steps": [
            {
                "id": str(number),
                "do": "record",
                "title": step["title"],
                "data": dict(step["data"]),
                "precondition": "",
                "verification": "",
                "undo": "the opposite is requested",
                "required": True,
                "expected_seconds": 0.0,
            }
            for number, step in enumerate(steps, start=1)
        ],
        "start": {"assignment": {}, "crosses": {}},
    }
    # The same digest as in lumctl.change.plan, which this package may not import.
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return {"id": f"plan-{digest[:8]}", "digest": digest, **plan}


SEE = "see the list: lumctl health list"


class Act(StrEnum):
    """The kinds of acts, each with its data."""

    ACKNOWLEDGE = "acknowledge"
    """Acknowledge findings of ``component``: ``rule`` (none: all), ``comment``, ``for_s`` (none: until they clear).

    ``covers`` may list the findings; without it, they are those of the next observation.
    """
    UNACKNOWLEDGE = "unacknowledge"
    """Withdraw acknowledgements of ``component``: ``rule`` (none: all)."""
    OPEN_WINDOW = "open-window"
    """Plan maintenance of ``component`` that begins in ``starts_in_s`` and lasts ``for_s``: ``comment``."""
    END_WINDOW = "end-window"
    """End the maintenance of ``component``."""
    POLICY = "policy"
    """Record that the inventory's policies changed from ``before`` to ``after``; no other row changes."""


NEEDS: Mapping[Act, frozenset[str]] = {
    Act.ACKNOWLEDGE: frozenset({"component", "rule", "comment", "for_s"}),
    Act.UNACKNOWLEDGE: frozenset({"component", "rule"}),
    Act.OPEN_WINDOW: frozenset({"component", "comment", "starts_in_s", "for_s"}),
    Act.END_WINDOW: frozenset({"component"}),
    Act.POLICY: frozenset({"before", "after"}),
}
"""The fields that each act needs besides ``act`` and ``rack``."""


def understood(data: Mapping[str, Any]) -> Act:
    """The kind of act that some data describes.

    Raises:
        UsageError: there is no such act, or a field is missing.
    """
    word = str(data.get("act"))
    if word not in set(Act):
        near = nearest(word, [*Act])
        raise UsageError(f"no act {word!r}", hint=f"did you mean {near}?" if near else f"one of: {', '.join(Act)}")
    act = Act(word)
    missing = sorted((NEEDS[act] | {"rack"}) - set(data))
    if missing:
        raise UsageError(f"{act} needs {', '.join(missing)}")
    return act


def perform(connection: Connection, data: Mapping[str, Any], *, who: str, now: float) -> dict[str, Any]:
    """Do an act inside the caller's transaction; return evidence, with any rows that it replaced under ``was``.

    Raises:
        RefusedError: there is nothing to withdraw or to end.
        UsageError: the data is not an act.
    """
    return _PERFORM[understood(data)](connection, data, who, now)


def take_back(connection: Connection, data: Mapping[str, Any], evidence: Mapping[str, Any]) -> None:
    """Undo an act, from the evidence that :func:`perform` returned."""
    rack = str(data["rack"])
    match understood(data):
        case Act.ACKNOWLEDGE:
            # A rule of None would delete all acknowledgements of the component, not only the one that the act stored.
            health_rows.unacknowledge(connection, rack, str(data["component"]), data["rule"] or health_rows.EVERY_RULE)
            _say_again(connection, rack, evidence)
        case Act.UNACKNOWLEDGE:
            _say_again(connection, rack, evidence)
        case Act.OPEN_WINDOW:
            connection.execute(delete(windows).where(windows.c.rack == rack, windows.c.id == evidence["window"]))
        case Act.END_WINDOW:
            for window, ends in evidence["was"].items():
                connection.execute(
                    update(windows).where(windows.c.rack == rack, windows.c.id == window).values(ends=ends)
                )
        case Act.POLICY:
            pass


def _acknowledge(connection: Connection, data: Mapping[str, Any], who: str, now: float) -> dict[str, Any]:
    rack, component, rule = str(data["rack"]), str(data["component"]), data["rule"]
    until = None if data["for_s"] is None else now + float(data["for_s"])
    before = [said for said in _said(connection, rack, component) if said["rule"] == rule]
    said = Acknowledgement(component, rule, who, str(data["comment"]), now, until, covered_from(data.get("covers")))
    health_rows.acknowledge(connection, rack, said)
    return {"component": component, "rule": rule, "was": before}


def _unacknowledge(connection: Connection, data: Mapping[str, Any], _who: str, _now: float) -> dict[str, Any]:
    rack, component, rule = str(data["rack"]), str(data["component"]), data["rule"]
    before = [said for said in _said(connection, rack, component) if rule in {None, said["rule"]}]
    cleared = health_rows.unacknowledge(connection, rack, component, rule)
    if not cleared:
        of_rule = f" for {rule}" if rule else ""
        raise RefusedError(f"{component} has no acknowledgement{of_rule}", hint=SEE)
    return {"component": component, "cleared": cleared, "was": before}


def _open_window(connection: Connection, data: Mapping[str, Any], who: str, now: float) -> dict[str, Any]:
    starts = now + float(data["starts_in_s"])
    ends = starts + float(data["for_s"])
    window = MaintenanceWindow("", str(data["component"]), who, str(data["comment"]), starts, ends)
    return {"component": window.component, "window": health_rows.add_window(connection, str(data["rack"]), window)}


def _end_window(connection: Connection, data: Mapping[str, Any], _who: str, now: float) -> dict[str, Any]:
    rack, component = str(data["rack"]), str(data["component"])
    ended = [w for w in health_rows.open_windows(connection, rack, now=now) if w.component == component]
    if not ended:
        raise RefusedError(f"{component} is not in maintenance", hint=SEE)
    for window in ended:
        health_rows.end_window(connection, rack, window.id, now=now)
    return {"component": component, "ended": len(ended), "was": {window.id: window.ends for window in ended}}


def _policy(_connection: Connection, data: Mapping[str, Any], _who: str, _now: float) -> dict[str, Any]:
    return {"after": data["after"]}


_PERFORM: Mapping[Act, Callable[[Connection, Mapping[str, Any], str, float], dict[str, Any]]] = {
    Act.ACKNOWLEDGE: _acknowledge,
    Act.UNACKNOWLEDGE: _unacknowledge,
    Act.OPEN_WINDOW: _open_window,
    Act.END_WINDOW: _end_window,
    Act.POLICY: _policy,
}


def _said(connection: Connection, rack: str, component: str) -> list[dict[str, Any]]:
    """Every stored acknowledgement of a component, expired or not."""
    table = acknowledgements.c
    rows = connection.execute(select(acknowledgements).where(table.rack == rack, table.component == component))
    return [asdict(health_rows.acknowledgement_of(row)) for row in rows]


def _say_again(connection: Connection, rack: str, evidence: Mapping[str, Any]) -> None:
    for said in evidence.get("was", ()):
        health_rows.acknowledge(connection, rack, acknowledgement_from(said))
