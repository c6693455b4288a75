"""Which probes of a host return something new each time."""

from collections.abc import Sequence

from lumctl.fleet.frames import Frame, FrameMark
from lumctl.fleet.probes import Probe

_TIMES = 3
"""After so many new answers in a row the next is expected to be new as well."""

_SAMPLED_BYTES = 1024


class Habits:
    """What the last answers of each probe were like.

    Comparing is the host's work, and wasted on what is new each time. Of an answer that comes uncompared some bytes are
    compared here: a guess at what the next will be like, which no reading rests on.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._whole_only = {number for number, probe in enumerate(probes) if not probe.may_be_direct}
        self.barred = False
        """Whether a tool's direct output could be mixed up with that of another tool."""
        self._new: dict[int, int] = {}
        self._samples: dict[int, int] = {}

    def restless(self, number: int) -> bool:
        """Whether the next answer is best sent as it comes."""
        return self._new.get(number, 0) >= _TIMES and number not in self._whole_only and not self.barred

    def heard(self, frame: Frame, *, direct: bool) -> None:
        """An answer came; ``direct``: it was not compared with the one before."""
        number = frame.probe
        if frame.mark is FrameMark.LOST and direct:
            # Its shell is gone, but perhaps not the tool: its late output would come before another's answer.
            self.barred = True
        if frame.mark is not FrameMark.WHOLE:
            self._new[number] = 0
            return
        known = self._samples.get(number) if direct else None
        if direct:
            self._samples[number] = hash(frame.body[:: len(frame.body) // _SAMPLED_BYTES + 1])
        else:
            self._samples.pop(number, None)
        self._new[number] = 0 if direct and known == self._samples[number] else self._new.get(number, 0) + 1

    def forget(self) -> None:
        """Another loop answers from now on; it has no history yet."""
        self.barred = False
        self._new.clear()
        self._samples.clear()
