"""What a picture of a recovery shows, line by line: the two figures that count, then each span."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lumctl.training.published import Published
from lumctl.training.scale import in_words
from lumctl.training.several import Several
from lumctl.training.timeline import STEP, VERIFIED, Lane, Timeline

Measured = Timeline | Several


@dataclass(frozen=True, slots=True)
class Row:
    """One bar with its label, in seconds since the failure; ``main`` for the figures that count.

    ``worst_s`` is the end of the slowest of several runs.
    """

    label: str
    lane: Lane
    starts_s: float
    ends_s: float
    worst_s: float | None = None
    main: bool = False

    @property
    def latest_s(self) -> float:
        """How far it reaches."""
        return max(self.ends_s, self.worst_s or 0.0)

    @property
    def note(self) -> str:
        """What stands behind the bar: its end, and how long it took or how late it was at worst."""
        if self.worst_s is not None:
            return f"{in_words(self.ends_s)} (worst {in_words(self.worst_s)})"
        if self.main or not self.starts_s:
            return in_words(self.ends_s)
        return f"{in_words(self.ends_s)} (took {in_words(self.ends_s - self.starts_s)})"

    @property
    def words(self) -> str:
        """All of it in a sentence, for who cannot see the bar."""
        worst = "" if self.worst_s is None else f", at worst until {in_words(self.worst_s)}"
        starts = in_words(self.starts_s) if self.starts_s else "the failure"
        return f"{self.label}: from {starts} until {in_words(self.ends_s)}{worst}"


def ours(measured: Measured) -> tuple[Row, ...]:
    """The rows of what was measured."""
    return tuple(_ours(measured))


def theirs(published: Published) -> tuple[Row, ...]:
    """The rows of what was published."""
    figures = _figures(published.failure_to_circuits_s, published.failure_to_step_s, {})
    spans = (Row(span.title, span.lane, span.starts_s, span.ends_s) for span in published.spans())
    return (*figures, *spans)


def _ours(measured: Measured) -> Iterator[Row]:
    typical = typical_of(measured)
    worst = measured.worst if isinstance(measured, Several) else {}
    yield from _figures(typical.failure_to_circuits_s, typical.failure_to_step_s, worst)
    for span in typical.spans():
        yield Row(span.title, span.lane, span.starts_s, span.ends_s, worst.get(span.until))


def typical_of(measured: Measured) -> Timeline:
    """The one timeline, or the medians of several."""
    return measured.typical if isinstance(measured, Several) else measured


def _figures(circuits_s: float | None, step_s: float | None, worst: Mapping[str, float]) -> Iterator[Row]:
    if circuits_s is not None:
        yield Row("failure to circuits verified", Lane.SWAP, 0.0, circuits_s, worst.get(VERIFIED), main=True)
    if step_s is not None:
        yield Row("failure to next step done", Lane.JOB, 0.0, step_s, worst.get(STEP), main=True)
