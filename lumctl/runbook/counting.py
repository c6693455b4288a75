"""How many differences there are of each part and device: what is read first where they are many."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumctl.runbook.differing import Unlike


@dataclass(frozen=True, slots=True)
class Count:
    """How many differences of a part are about one device: things that are not the same, or that one side has alone."""

    part: str
    where: str
    unlike: int
    only_a: int
    only_b: int


def counted(found: Sequence[Unlike]) -> tuple[Count, ...]:
    """The differences by part, in their order, and device."""
    parts = list(dict.fromkeys(each.part for each in found))
    by_place: dict[tuple[str, str], list[Unlike]] = {}
    for each in found:
        by_place.setdefault((each.part, each.where), []).append(each)
    return tuple(
        Count(
            part,
            where,
            unlike=sum(each.a is not None and each.b is not None for each in those),
            only_a=sum(each.b is None for each in those),
            only_b=sum(each.a is None for each in those),
        )
        for (part, where), those in sorted(by_place.items(), key=lambda item: (parts.index(item[0][0]), item[0][1]))
    )
