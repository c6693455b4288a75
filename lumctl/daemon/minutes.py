"""Looks folded into minutes: of each reading the least, the mean and the greatest. Pure."""

import math
from collections.abc import Iterable

from lumctl.store.packing import MINUTE_S, Values, both

Folded = dict[int, dict[str, dict[str, Values]]]
"""By minute (counted since the epoch), then component, then name of the reading."""

_LOW, _SUM, _COUNT, _HIGH, _DARK = range(5)


class Folding:
    """The minutes of one rack that are not handed on yet. A reading that was not taken anew counts once."""

    def __init__(self) -> None:
        self._newest: dict[str, float] = {}
        self._minutes: dict[int, dict[str, dict[str, list[float]]]] = {}

    def add(self, component: str, at: float, values: Iterable[tuple[str, float]]) -> None:
        """A reading of a component that was taken ``at`` (seconds since the epoch)."""
        if self._newest.get(component) == at:
            return
        self._newest[component] = at
        named = self._minutes.setdefault(int(at // MINUTE_S), {}).setdefault(component, {})
        for name, value in values:
            if math.isnan(value):
                continue
            one = named.get(name)
            if one is None:
                one = named[name] = [value, 0.0, 0, value, value]
            elif value < one[_LOW]:
                one[_LOW] = value
            elif value > one[_HIGH]:
                one[_HIGH] = value
            if not math.isinf(value):  # no light at all has no place in a mean of dBm
                one[_SUM] += value
                one[_COUNT] += 1

    def take(self, before: float = math.inf) -> Folded:
        """Hand on the minutes that ended by a time, and know them no more."""
        over = [minute for minute in self._minutes if (minute + 1) * MINUTE_S <= before]
        return {
            minute: {
                component: {name: _values(one) for name, one in named.items()}
                for component, named in self._minutes.pop(minute).items()
            }
            for minute in over
        }


def together(some: Folded, more: Folded) -> Folded:
    """Minutes of two hand-outs as one; ``some`` is changed."""
    for minute, components in more.items():
        for component, named in components.items():
            known = some.setdefault(minute, {}).setdefault(component, {})
            for name, values in named.items():
                known[name] = both(known[name], values) if name in known else values
    return some


def _values(one: list[float]) -> Values:
    mean = one[_SUM] / one[_COUNT] if one[_COUNT] else one[_DARK]
    return Values(float(one[_LOW]), mean, float(one[_HIGH]))
