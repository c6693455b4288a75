"""What an action that touches no device does to the store: acknowledgements, maintenance windows, a new policy.

An act is plain data, so that a journal, a plan and a runbook can hold it: ``act`` says what is done, ``rack`` and
``component`` to what. Times are lengths in seconds from the moment it is done, so that it can be done again later.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, delete, select, update

from lumctl.errors import RefusedError, UsageError
from lumctl.health.attention import Acknowledgement, MaintenanceWindow, acknowledgement_from, covered_from
from lumctl.inventory.problems import nearest
from lumctl.store import attention
from lumctl.store.schema import acknowledgements, windows

SEE = "see what is: lumctl health list"


class Act(StrEnum):
    """What an act does."""

    ACKNOWLEDGE = "acknowledge"
    """Findings of ``component`` are known: ``rule`` (none: all), ``comment``, ``for_s`` (none: until they clear).

    ``covers`` may say which; without it, those that the next look finds.
    """
    UNACKNOWLEDGE = "unacknowledge"
    """An acknowledgement of ``component`` is taken back: ``rule`` (none: all)."""
    OPEN_WINDOW = "open-window"
    """Work on ``component`` begins in ``starts_in_s`` and takes ``for_s``: ``comment``."""
    END_WINDOW = "end-window"
    """The maintenance of ``component`` ends."""
    POLICY = "policy"
    """The policies of the inventory were ``before`` and are ``after``: nothing in the store changes by it."""


NEEDS: Mapping[Act, frozenset[str]] = {
    Act.ACKNOWLEDGE: frozenset({"component", "rule", "comment", "for_s"}),
    Act.UNACKNOWLEDGE: frozenset({"component", "rule"}),
    Act.OPEN_WINDOW: frozenset({"component", "comment", "starts_in_s", "for_s"}),
    Act.END_WINDOW: frozenset({"component"}),
    Act.POLICY: frozenset({"before", "after"}),
}
"""What each act must say beside ``act`` and ``rack``."""


def understood(data: Mapping[str, Any]) -> Act:
    """Which act some data is.

    Raises:
        UsageError: none that there is, or it does not say what it must.
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
    """Do an act inside the caller's transaction; gives evidence, with what was there before under ``was``.

    Raises:
        RefusedError: there is nothing to take back.
        UsageError: it is no act.
    """
    return _PERFORM[understood(data)](connection, data, who, now)


def take_back(connection: Connection, data: Mapping[str, Any], evidence: Mapping[str, Any]) -> None:
    """Undo an act by the evidence that it gave."""
    rack = str(data["rack"])
    match understood(data):
        case Act.ACKNOWLEDGE:
            attention.unacknowledge(connection, rack, str(data["component"]), data["rule"] or attention.EVERY_RULE)
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
    attention.acknowledge(connection, rack, said)
    return {"component": component, "rule": rule, "was": before}


def _unacknowledge(connection: Connection, data: Mapping[str, Any], _who: str, _now: float) -> dict[str, Any]:
    rack, component, rule = str(data["rack"]), str(data["component"]), data["rule"]
    before = [said for said in _said(connection, rack, component) if rule in {None, said["rule"]}]
    cleared = attention.unacknowledge(connection, rack, component, rule)
    if not cleared:
        of_rule = f" of {rule}" if rule else ""
        raise RefusedError(f"nothing{of_rule} is acknowledged of {component}", hint=SEE)
    return {"component": component, "cleared": cleared, "was": before}


def _open_window(connection: Connection, data: Mapping[str, Any], who: str, now: float) -> dict[str, Any]:
    starts = now + float(data["starts_in_s"])
    ends = starts + float(data["for_s"])
    window = MaintenanceWindow("", str(data["component"]), who, str(data["comment"]), starts, ends)
    return {"component": window.component, "window": attention.add_window(connection, str(data["rack"]), window)}


def _end_window(connection: Connection, data: Mapping[str, Any], _who: str, now: float) -> dict[str, Any]:
    rack, component = str(data["rack"]), str(data["component"])
    ended = [w for w in attention.open_windows(connection, rack, now=now) if w.component == component]
    if not ended:
        raise RefusedError(f"{component} is not in maintenance", hint=SEE)
    for window in ended:
        attention.end_window(connection, rack, window.id, now=now)
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
    """Every acknowledgement of a component that is kept, whether or not it is over."""
    table = acknowledgements.c
    rows = connection.execute(select(acknowledgements).where(table.rack == rack, table.component == component))
    return [asdict(attention.acknowledgement_of(row)) for row in rows]


def _say_again(connection: Connection, rack: str, evidence: Mapping[str, Any]) -> None:
    for said in evidence.get("was", ()):
        attention.acknowledge(connection, rack, acknowledgement_from(said))
