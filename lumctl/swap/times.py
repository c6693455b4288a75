"""How long the steps of a plan will take: as long as they took lately, else as the inventory lets expect."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from lumctl.change.plan import Do, Step
from lumctl.store import Store

_ENTRIES = 120
"""How far back the journal is looked at: some six runs."""
_FEWEST = 3
"""From how many runs a median is believed."""


def timed(store: Store, steps: Sequence[Step]) -> tuple[tuple[Step, ...], Mapping[str, int]]:
    """The steps with their expected times, and by step of how many runs each is the median.

    A step that is not among these is expected to take what it was given.
    """
    seen = _lately(store)
    times = {step.id: seen.get(_like(step.do.value, step.title), []) for step in steps}
    known = {name: found for name, found in times.items() if len(found) >= _FEWEST}
    listed = tuple(
        replace(step, expected_seconds=round(median(known[step.id]), 4)) if step.id in known else step for step in steps
    )
    return listed, {name: len(found) for name, found in known.items()}


def _lately(store: Store) -> Mapping[tuple[str, str], list[float]]:
    """By kind of step (and device, where it writes one) the seconds that each took in the last runs, if it was done.

    A run counts once for each kind.
    """
    begun: dict[tuple[str, str], tuple[float, tuple[str, str]]] = {}
    taken: dict[tuple[tuple[str, str], str], float] = {}
    for entry in store.latest_entries(_ENTRIES):
        at = (entry.run, entry.step)
        if entry.kind == "intent" and "title" in entry.data:
            begun[at] = (entry.at, _like(str(entry.data.get("do")), str(entry.data["title"])))
        elif entry.kind == "outcome" and entry.data.get("done") and at in begun:
            started, like = begun[at]
            if entry.at >= started:  # else the clock was set back
                taken[like, entry.run] = max(taken.get((like, entry.run), 0.0), entry.at - started)
    found: dict[tuple[str, str], list[float]] = {}
    for (like, _), seconds in taken.items():
        found.setdefault(like, []).append(seconds)
    return found


def _like(do: str, title: str) -> tuple[str, str]:
    """What may be compared: steps of one kind; of those that write devices, on the same device."""
    return do, title.rpartition(" of ")[2] if do == Do.PROGRAM else ""
