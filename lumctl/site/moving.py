"""Whose light a change moves: what the plans of open runs, and of those that just ended, name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lumctl.store import Run


def moving(runs: Iterable[Run]) -> frozenset[str]:
    """The transponders and circuits whose light runs move."""
    return frozenset(component for run in runs for component in _named(run.plan))


def _named(plan: Mapping[str, Any]) -> Iterator[str]:
    """The circuits that a plan adds and removes with their ends, what it switches, and what that disturbs."""
    circuits = plan.get("circuits", {})
    for circuit in (*circuits.get("add", ()), *circuits.get("remove", ())):
        yield str(circuit["id"])
        for end in circuit["ends"]:
            yield str(end["lane"])
    for step in plan.get("steps", ()):
        if "transponder" in step["data"]:
            yield str(step["data"]["transponder"])
        if "component" in step["data"] and step.get("do") != "record":
            yield str(step["data"]["component"]).removesuffix("/power")
            yield from map(str, step["data"].get("disturbs", ()))
