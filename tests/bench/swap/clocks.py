"""When a store was written during a run, what lay between, and whose processor time that was."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Self

from lumctl.change import Plan
from lumctl.change.plan import Do
from lumctl.store import Record, Store

_WRITES = ("acquire", "begin", "advance", "end", "release")


class Stamp(NamedTuple):
    """A moment, or what passed between two: seconds, and processor time of this process and of the simulator."""

    wall: float = 0.0
    cpu: float = 0.0
    simulated: float = 0.0

    def __add__(self, other: Self) -> "Stamp":  # type: ignore[override]  # of two stamps, not of two tuples
        return Stamp(*(one + two for one, two in zip(self, other, strict=True)))

    def __sub__(self, other: Self) -> "Stamp":
        return Stamp(*(one - two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Write:
    """One synced transaction: from when to when, and which entries it added."""

    kind: str
    began: Stamp
    ended: Stamp
    entries: tuple[tuple[str, str], ...] = ()

    @property
    def took(self) -> Stamp:
        return self.ended - self.began


@dataclass
class Clocks:
    """Clocks on the writes of one store. ``simulated`` gives the processor time (seconds) of the simulator so far."""

    store: Store
    simulated: Callable[[], float] = lambda: 0.0
    writes: list[Write] = field(default_factory=list)
    swap: tuple[Write, ...] = ()
    """The writes of the last swap, without what undid it."""

    def __post_init__(self) -> None:
        for kind in _WRITES:
            self._clock(self.store.leases if kind in {"acquire", "release"} else self.store.runs, kind)

    def clear(self) -> None:
        """Forget what was; the next run is to be measured."""
        self.writes.clear()

    def keep(self) -> None:
        """The swap has ended: what is written from now on undoes it."""
        self.swap = tuple(self.writes)

    def now(self) -> Stamp:
        """This moment."""
        return Stamp(time.perf_counter(), time.process_time(), self.simulated())

    def verified(self, plan: Plan) -> Stamp:
        """When the proof of the plan's new circuits was on disk."""
        (verify,) = [step.id for step in plan.steps if step.do is Do.VERIFY]
        return next(write.ended for write in self.writes if ("outcome", verify) in write.entries)

    def parts(self, began: Stamp, ended: Stamp) -> dict[str, Stamp]:
        """From the plan to the end of its run: before it begins, the stages, and the journal."""
        by_kind = {kind: [write for write in self.swap if write.kind == kind] for kind in _WRITES}
        (acquire,), (begin,) = by_kind["acquire"], by_kind["begin"]
        journal = [*by_kind["advance"], *by_kind["end"]]
        stages = {f"stage {_named(after)}": after.began - before.ended for before, after in pairwise([begin, *journal])}
        return {
            "lease": acquire.ended - began,
            "preconditions and guard": begin.began - acquire.ended,
            "begin": begin.took,
            **stages,
            f"journal ({len(journal)} transactions)": sum((write.took for write in journal), Stamp()),
            "end: guard and lease": ended - journal[-1].ended,
        }

    def waited_for_disk(self, until: Stamp) -> float:
        """Seconds until a moment in which a transaction was under way and this process did not compute."""
        writes = [write for write in self.swap if write.ended.wall <= until.wall]
        return sum(write.took.wall - write.took.cpu for write in writes)

    def _clock(self, part: Any, kind: str) -> None:
        real = getattr(part, kind)

        def clocked(*words: Any, **more: Any) -> Any:
            began = self.now()
            result = real(*words, **more)
            said = [*(words[2] if kind == "advance" else ()), *more.get("outcomes", ())]
            self.writes.append(Write(kind, began, self.now(), tuple(_entry(record) for record in said)))
            return result

        setattr(part, kind, clocked)


def _entry(record: Record) -> tuple[str, str]:
    return record.kind, record.step


def _named(write: Write) -> str:
    """By the steps whose outcomes it wrote."""
    steps = [step for kind, step in write.entries if kind == "outcome"]
    return steps[0] if len(steps) == 1 else f"{steps[0]}-{steps[-1]}"
