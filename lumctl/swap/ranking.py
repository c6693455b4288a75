"""How spares are ranked: by a row of criteria, the first one in which two differ decides. Less is better in each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from lumctl.health.states import State
from lumctl.inventory.model import Accelerator
from lumctl.site import Observation
from lumctl.swap.groups import is_broken_up
from lumctl.swap.lightpaths import LightPaths
from lumctl.swap.records import LATELY_S, AcceleratorRecord

_DIGITS = 48
"""Binary digits of one criterion in a cost: far more than the sum of all failures' parts can fill."""
_DEAREST = 1 << 40
_NOT_KNOWN = 1e6


@dataclass(frozen=True, slots=True)
class Score:
    """The criteria in their order."""

    reserved: int
    """0 for one that is kept for this job, 1 for any other, 2 for one that was reserved and is named."""
    memory_gib: float
    """How much more memory it has than the one that failed: a larger part is left for who needs it."""
    lanes: int
    """How many of its lanes are not ok now."""
    tied: int
    """1 if it is tied to other spares, and would leave them for one that is tied to nobody."""
    faults: int
    """How often it or a lane of it became degraded or failed in the last seven days."""
    fresh: int
    """1 while it burns in, or has been back from a failure or from maintenance for less than a day."""
    moves: int
    """How many circuits of the job have to make room."""
    thin: int
    """How many new circuits would arrive less than ``rx_margin_db`` above what their receivers need."""
    loss_db: float
    """What the worst new circuit loses."""
    pucs: int
    """PUCs that the new circuits pass."""
    cells: int
    """Cells that are written."""
    order: int
    """Its place in the inventory."""

    def parts(self) -> dict[str, float]:
        """By name, as plans write it."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def cost(self) -> int:
        """One number in which the first criterion has the highest digits; sums of it are compared alike."""
        cost = 0
        for part in self.parts().values():
            cost = (cost << _DIGITS) + min(round(part * 1000), _DEAREST)
        return cost

    def decided_by(self, other: "Score") -> str | None:
        """The first criterion in which two differ, or ``None``."""
        mine, others = self.parts(), other.parts()
        return next((name for name in mine if round(mine[name] * 1000) != round(others[name] * 1000)), None)


def score(
    seen: Observation,
    job: str,
    failed: Accelerator,
    spare: Accelerator,
    record: AcceleratorRecord,
    paths: LightPaths | None,
) -> Score:
    """Weigh a spare. Without ``paths`` its light is not known before the whole choice is made."""
    lanes = [seen.report.links[lane.id].state for lane in seen.inventory.transponders_of(spare.id)]
    margin = seen.inventory.thresholds.rx_margin_db
    return Score(
        reserved=0 if spare.reserved_for == job else 2 if spare.reserved or spare.reserved_for else 1,
        memory_gib=round(spare.memory_gib - failed.memory_gib, 3),
        lanes=sum(state is not State.OK for state in lanes),
        tied=int(is_broken_up(seen.inventory, failed.id, spare.id)),
        faults=record.faults,
        fresh=int(record.fresh_until(seen.at) is not None),
        moves=len(paths.moved) if paths else 0,
        thin=sum(c.margin_db is not None and c.margin_db < margin for c in paths.add) if paths else 0,
        loss_db=round(paths.worst_loss_db, 3) if paths else _NOT_KNOWN,
        pucs=paths.total_pucs if paths else 0,
        cells=paths.changed_pucs if paths else 0,
        order=list(seen.inventory.accelerators).index(spare.id),
    )


_Words = Callable[[Score, Score], str]
_WORDS: Mapping[str, _Words] = {
    "reserved": lambda worse, _: "it is reserved" if worse.reserved > 1 else "the other is kept for this job",
    "memory_gib": lambda worse, better: (
        f"it has {worse.memory_gib - better.memory_gib:g} GiB more than the other, which is enough: "
        "larger parts are left for who needs them"
    ),
    "lanes": lambda worse, better: f"{_are(worse.lanes, 'lane')} not ok now, of the other {better.lanes}",
    "tied": lambda _worse, _better: "it is tied to other spares, which are left for who needs them together",
    "faults": lambda worse, better: (
        f"it was degraded or failed {_times(worse.faults)} in the last {LATELY_S / 86_400:.0f} days, "
        f"the other {_times(better.faults)}"
    ),
    "fresh": lambda _worse, _better: "it has not run for long since it came back",
    "moves": lambda worse, better: (
        f"moves of circuits that make room for it: {worse.moves}, for the other {better.moves}"
    ),
    "thin": lambda worse, better: (
        f"{_are(worse.thin, 'new circuit')} short of the margin that is wanted, with the other {better.thin}"
    ),
    "loss_db": lambda worse, better: (
        f"its worst new circuit loses {worse.loss_db:.2f} dB, with the other {better.loss_db:.2f} dB"
        if worse.loss_db < _NOT_KNOWN
        else "no light path was found for it alone"
    ),
    "pucs": lambda worse, better: f"its new circuits pass {worse.pucs} PUCs, with the other {better.pucs}",
    "cells": lambda worse, better: f"{worse.cells} cells are written for it, for the other {better.cells}",
    "order": lambda _worse, _better: "they are alike in everything else, and it stands later in the inventory",
}


def why_behind(worse: Score, better: Score) -> str:
    """In words, why one ranks behind another."""
    decided = worse.decided_by(better)
    return "they are alike" if decided is None else _WORDS[decided](worse, better)


def _are(count: int, noun: str) -> str:
    return f"{count} {noun} is" if count == 1 else f"{count} {noun}s are"


def _times(count: int) -> str:
    return "never" if count == 0 else "once" if count == 1 else f"{count} times"
