"""An axis of time on which milliseconds and minutes can both be read, and times in words."""

from dataclasses import dataclass
from math import ceil, log10

_STRIP = 0.06
"""The share of the axis that shows the time before its first decade, which no logarithm reaches."""
_MS = 1000


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear from 0 to ``low_s``, logarithmic from there to ``high_s``; both are powers of ten."""

    low_s: float = 0.01
    high_s: float = 100.0

    def share(self, seconds: float) -> float:
        """Where a time lies, from 0 to 1."""
        if seconds <= self.low_s:
            return _STRIP * max(seconds, 0.0) / self.low_s
        decades = log10(self.high_s / self.low_s)
        return min(_STRIP + (1 - _STRIP) * log10(seconds / self.low_s) / decades, 1.0)

    def decades(self) -> tuple[float, ...]:
        """The powers of ten on it, in seconds."""
        first, last = round(log10(self.low_s)), round(log10(self.high_s))
        return tuple(10.0**power for power in range(first, last + 1))

    def between(self) -> tuple[float, ...]:
        """Twice to nine times each power of ten."""
        return tuple(times * decade for decade in self.decades()[:-1] for times in range(2, 10))


def scale_for(latest_s: float) -> Scale:
    """An axis from 10 ms to 100 s, or further if that is not enough."""
    return Scale(high_s=max(100.0, 10.0 ** ceil(log10(max(latest_s, 1.0)))))


def in_words(seconds: float) -> str:
    """A time to three digits at most: ``0.4 ms``, ``38 ms``, ``142 ms``, ``1.13 s``, ``25.6 s``, ``140 s``."""
    if seconds < 0.9995:  # noqa: PLR2004 - what would be rounded to 1000 ms is a second
        number, unit = seconds * _MS, "ms"
        places = 1 if number < 9.95 else 0  # noqa: PLR2004 - likewise
    else:
        number, unit = seconds, "s"
        places = 2 if number < 9.995 else 1 if number < 99.95 else 0  # noqa: PLR2004 - likewise
    digits = f"{number:.{places}f}"
    return f"{digits.rstrip('0').rstrip('.') if places else digits} {unit}"
