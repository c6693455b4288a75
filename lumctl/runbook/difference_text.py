"""Differences in words: only what differs between both sides; of a long list only the number."""

from collections.abc import Mapping, Sequence
from typing import Any

from lumctl.inventory.wiring import is_order

SHOWN = 3
"""At most this many names are shown; the rest is counted."""
_LONGEST = 200
"""Answers of devices and hooks are shown up to this many characters."""


def ranks_apart(a: Sequence[str], b: Sequence[str]) -> tuple[str, str]:
    """On which accelerators the ranks of a job are, on either side, where that is not the same."""
    if not a or not b:
        return _whole(a), _whole(b)
    same = [rank for rank, (one, other) in enumerate(zip(a, b, strict=False)) if one == other]
    apart = sorted({*range(max(len(a), len(b)))} - {*same})
    return _placed(a, apart), _placed(b, apart)


def placed_apart(name: str, a: Sequence[str], b: Sequence[str]) -> tuple[str, str]:
    """The meaning of a name in an assignment: the ranks of a job, or the order of an accelerator's lanes."""
    if not is_order(name):
        return ranks_apart(a, b)
    return ", ".join(a) or "as written", ", ".join(b) or "as written"


def outcomes_apart(a: Any, b: Any) -> tuple[str, str]:
    """What came of a step on either side: failures in their words, else the parts that are not the same."""
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return outcome_told(a), outcome_told(b)
    if "failed" in a or "failed" in b:
        one, other = (outcome_told(each) if "failed" in each else "done" for each in (a, b))
        return one, other
    apart = [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]
    told = [_values_apart(a.get(key), b.get(key)) for key in apart]
    return _joined(apart, [one for one, _ in told]), _joined(apart, [other for _, other in told])


def outcome_told(outcome: Any) -> str:
    """What came of a step, in a line."""
    if outcome is None:
        return "not reached"
    if isinstance(outcome, Mapping) and "failed" in outcome:
        return f"failed: {outcome['failed']}"
    if isinstance(outcome, Mapping):
        return _joined(list(outcome), [_told(value) for value in outcome.values()])
    return _told(outcome)


def some(names: Sequence[str]) -> str:
    """A few names, and of many how many more there are."""
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
    """Two values; of two lists what only one of them has, and how long they are."""
    if not (isinstance(a, list | tuple) and isinstance(b, list | tuple)):
        return _told(a), _told(b)
    return _only(a, b), _only(b, a)


def _only(mine: Sequence[Any], theirs: Sequence[Any]) -> str:
    alone = [_told(item) for item in mine if item not in theirs]
    return f"{some(alone)} (of {len(mine)})" if alone else f"none but the {len(mine)} of both"


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
