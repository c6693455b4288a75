"""The recovery that was published, to stand beside our own."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from lumctl.training.timeline import Lane, Moment, Span


@dataclass(frozen=True, slots=True)
class Published:
    """A timeline from a paper: one thing after the other, none beside another."""

    name: str
    source: str
    conditions: str
    moments: tuple[Moment, ...]
    lanes: tuple[Lane, ...]
    failure_to_circuits_s: float
    failure_to_step_s: float

    def spans(self) -> tuple[Span, ...]:
        """What was done between the moments."""
        return tuple(self._spans())

    def _spans(self) -> Iterator[Span]:
        starts = Moment("failure", "failure", 0.0)
        for (before, moment), lane in zip(pairwise((starts, *self.moments)), self.lanes, strict=True):
            yield Span(moment.name, moment.title, lane, before.seconds, moment.seconds, moment.name)


MORPHLUX = Published(
    name="Morphlux",
    source="Morphlux, figure 8c (arXiv 2508.03674v3)",
    conditions="real light and real GPUs, one in each of four servers; the job starts cold again from a checkpoint",
    moments=(
        Moment("circuits", "circuits set, job relaunched", 1.1),
        Moment("group", "NCCL synchronised", 4.5),
        Moment("data", "data set tokenised", 14.5),
        Moment("model", "model loaded", 16.6),
        Moment("step", "first iteration done", 25.6),
    ),
    lanes=(Lane.SWAP, Lane.JOB, Lane.STATE, Lane.STATE, Lane.JOB),
    failure_to_circuits_s=1.1,
    failure_to_step_s=25.6,
)
