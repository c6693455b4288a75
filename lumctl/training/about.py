"""What stands under the picture of a recovery: where it was measured, what was real in it, and what was not."""

from collections.abc import Iterator
from dataclasses import dataclass

from lumctl.fabric.drawing.model import text_width
from lumctl.training.published import Published
from lumctl.training.timeline import KnownBy

SIMULATED = "mesh, light, transponders, hosts and GPUs"
REAL = "processes and their death, sockets, SSH, the plan with its journal, PyTorch with gloo on CPUs"
NOT_EXERCISED = "CUDA and NCCL, the locking of real transceivers, the settling of a real mesh, models of real size"

_T0 = {
    KnownBy.KILL: "t0 is the kill itself.",
    KnownBy.DETECTION: "t0 is when the failure was detected: what passed before that is in none of these times.",
}


@dataclass(frozen=True, slots=True)
class About:
    """What a reader has to know of a measurement. ``machine`` and ``date`` are written as they are."""

    machine: str
    date: str
    simulated: str = SIMULATED
    real: str = REAL
    not_exercised: str = NOT_EXERCISED

    def caption(self, known_by: KnownBy, published: Published | None) -> tuple[str, ...]:
        """The sentences under a picture, one a paragraph."""
        return tuple(self._caption(known_by, published))

    def _caption(self, known_by: KnownBy, published: Published | None) -> Iterator[str]:
        yield f"{_T0[known_by]} The axis is linear up to its first mark and logarithmic from there."
        if self.simulated:
            yield f"Simulated: {self.simulated}. Real: {self.real}."
        if self.not_exercised:
            yield f"Not exercised: {self.not_exercised}."
        if published:
            yield f"Published: {published.source}: {published.conditions}. It is another job on other hardware."


def wrapped(text: str, room: float, size: float) -> Iterator[str]:
    """Lines that fit the room, unless a single word is longer."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and text_width(longer, size) > room:
            yield line
            longer = word
        line = longer
    if line:
        yield line
