"""Whose light a change moves: what the plans of open runs, and of those that just ended, name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lumctl.store import Run


def moving(runs: Iterable[Run]) -> frozenset[str]:
    """The transponders and circuits whose light runs move."""
    return frozenset(component for run in runs for component in _named(run.plan))


CLOCKS_AGREE_S = 10.0
"""Machines that work on one rack differ by less; a time further ahead is of a clock that was set back since."""


class Moved:
    """When runs last moved the light of each component, as far as one process has seen them."""

    def __init__(self, keep_s: float) -> None:
        """``keep_s``: readings are not older than that."""
        self._keep_s = keep_s
        self._ended: dict[str, float] = {}
        self._at: dict[str, float] = {}

    def taking(self, runs: Iterable[Run], now: float) -> Mapping[str, float]:
        """The times by component (seconds since the epoch), with these runs; one that is at work moves it now."""
        self._ended = {run: at for run, at in self._ended.items() if 0 <= now - at < self._keep_s}
        self._at = {component: at for component, at in self._at.items() if 0 <= now - at < self._keep_s}
        for run in runs:
            at = now
            if run.ended_at is not None and run.ended_at > now + CLOCKS_AGREE_S:
                continue  # nobody can tell whether what was read is older
            if run.ended_at is not None:
                # By its own clock, which may be ahead of ours: then it ended when it was first seen so.
                at = self._ended.setdefault(run.id, min(run.ended_at, now))
            for component in moving([run]):
                self._at[component] = max(at, self._at.get(component, at))
        return dict(self._at)


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
