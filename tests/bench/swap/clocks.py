"""When a store was written during a run, and what lay between."""

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lumctl.change import Plan
from lumctl.change.plan import Do
from lumctl.store import Record, Store

_WRITES = ("acquire", "begin", "advance", "end", "release")


@dataclass(frozen=True)
class Write:
    """One synced transaction: from when to when, and which entries it added."""

    kind: str
    began: float
    ended: float
    entries: tuple[tuple[str, str], ...] = ()


@dataclass
class Clocks:
    """Clocks on the writes of one store."""

    store: Store
    writes: list[Write] = field(default_factory=list)

    def __post_init__(self) -> None:
        for kind in _WRITES:
            self._clock(self.store.leases if kind in {"acquire", "release"} else self.store.runs, kind)

    def clear(self) -> None:
        """Forget what was; the next run is to be measured."""
        self.writes.clear()

    def verified(self, plan: Plan) -> float:
        """When the proof of the plan's new circuits was on disk."""
        (verify,) = [step.id for step in plan.steps if step.do is Do.VERIFY]
        return next(write.ended for write in self.writes if ("outcome", verify) in write.entries)

    def parts(self, began: float, ended: float) -> dict[str, float]:
        """Milliseconds from the plan to the end of its run: before it begins, the stages, and the journal."""
        by_kind = {kind: [write for write in self.writes if write.kind == kind] for kind in _WRITES}
        (acquire,), (begin,) = by_kind["acquire"], by_kind["begin"]
        journal = [*by_kind["advance"], *by_kind["end"]]
        stages = {
            f"stage {_named(before)}": after.began - before.ended for before, after in pairwise([begin, *journal])
        }
        seconds = {
            "lease": acquire.ended - began,
            "preconditions and guard": begin.began - acquire.ended,
            "begin": begin.ended - begin.began,
            **stages,
            f"journal ({len(journal)} transactions)": sum(write.ended - write.began for write in journal),
            "end: guard and lease": ended - journal[-1].ended,
        }
        return {name: 1000 * value for name, value in seconds.items()}

    def _clock(self, part: Any, kind: str) -> None:
        real = getattr(part, kind)

        def clocked(*words: Any, **more: Any) -> Any:
            began = time.perf_counter()
            result = real(*words, **more)
            said = [*(words[2] if kind == "advance" else ()), *more.get("outcomes", ())]
            self.writes.append(Write(kind, began, time.perf_counter(), tuple(_entry(record) for record in said)))
            return result

        setattr(part, kind, clocked)


def _entry(record: Record) -> tuple[str, str]:
    return record.kind, record.step


def _named(write: Write) -> str:
    """By the steps that were intended; those that only read go before the first that were."""
    if write.kind == "begin":
        return "check"
    steps = [step for kind, step in write.entries if kind == "intent" and step != "1"]
    return steps[0] if len(steps) == 1 else f"{steps[0]}-{steps[-1]}"
