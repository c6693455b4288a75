"""Differences in words: only the parts that differ between both sides; for long lists only the number."""

from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.inventory.filler_records import is_stopped_filler
from lumctl.inventory.phase_records import is_phase
from lumctl.inventory.slice_records import is_job, is_shape

SHOWN = 3
"""Number of names that are shown; the rest is counted."""
_LONGEST = 200
"""Characters of a device's or hook's answer that are shown."""


def ranks_apart(a: Sequence[str], b: Sequence[str]) -> tuple[str, str]:
    """The accelerators of a job's ranks on either side, for the ranks where they differ."""
    if not a or not b:
        return _whole(a), _whole(b)
    same = [rank for rank, (one, other) in enumerate(zip(a, b, strict=False)) if one == other]
    apart = sorted({*range(max(len(a), len(b)))} - {*same})
    return _placed(a, apart), _placed(b, apart)


def placed_apart(name: str, a: Sequence[str], b: Sequence[str]) -> tuple[str, str]:
    """The meaning of a name in an assignment: the ranks of a job, its phase, or the order of an accelerator's lanes."""
    if is_job(name):
        return ranks_apart(a, b)
    if is_shape(name):
        return a[0] if a else "no slice", b[0] if b else "no slice"
    if is_stopped_filler(name):
        return "stopped" if a else "running", "stopped" if b else "running"
    if is_phase(name):
        return ", ".join(a) or "the first", ", ".join(b) or "the first"
    return ", ".join(a) or "as written", ", ".join(b) or "as written"


def outcomes_apart(a: Any, b: Any) -> tuple[str, str]:
    """The outcomes of a step on either side: a failure's own words, or else the parts that differ."""
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return outcome_told(a), outcome_told(b)
    if "failed" in a or "failed" in b:
        one, other = (outcome_told(each) if "failed" in each else "done" for each in (a, b))
        return one, other
    apart = [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]
    told = [_values_apart(a.get(key), b.get(key)) for key in apart]
    return _joined(apart, [one for one, _ in told]), _joined(apart, [other for _, other in told])


def outcome_told(outcome: Any) -> str:
    """The outcome of a step in one line."""
    if outcome is None:
        return "not reached"
    if isinstance(outcome, Mapping) and "failed" in outcome:
        return f"failed: {outcome['failed']}"
    if isinstance(outcome, Mapping):
        return _joined(list(outcome), [_told(value) for value in outcome.values()])
    return _told(outcome)


def some(names: Sequence[str]) -> str:
    """A few names, and the number of further names if there are many."""
    few = SHOWN if len(names) > SHOWN + 1 else len(names)
    rest = len(names) - few
    return ", ".join(names[:few]) + (f" and {rest} more" if rest else "")


def _placed(ranks: Sequence[str], apart: Sequence[int]) -> str:
    told = some([f"rank {rank} on {ranks[rank]}" for rank in apart if rank < len(ranks)])
    if not told:
        return f"{len(ranks)} ranks"
    return told if len(apart) == len(ranks) <= SHOWN else f"{told} (of {len(ranks)} ranks)"


def _whole(ranks: Sequence[str]) -> str:
    return "nowhere" if not ranks else f"{len(ranks)} ranks on {some(ranks)}"


def _values_apart(a: Any, b: Any) -> tuple[str, str]:
    """Two values in words; for two lists, the items that only one of them has, and the lengths."""
    if not (isinstance(a, list | tuple) and isinstance(b, list | tuple)):
        return _told(a), _told(b)
    return _only(a, b), _only(b, a)


def _only(mine: Sequence[Any], theirs: Sequence[Any]) -> str:
    alone = [_told(item) for item in mine if item not in theirs]
    return f"{some(alone)} (of {len(mine)})" if alone else f"none except the {len(mine)} of both"


def _joined(keys: Sequence[str], told: Sequence[str]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in zip(keys, told, strict=True))


def _told(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return some([_told(item) for item in value]) or "none"
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_told(inner)}" for key, inner in value.items())
    said = str(value)
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
