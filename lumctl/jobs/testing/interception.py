"""Programs of a control that are refused from some point on, to see what the control makes of that."""

from collections.abc import Sequence
from typing import Unpack

from lumctl.jobs.control import JobContext, More
from lumctl.programs import Ended


class CutShortProgram:
    """Lets the first ``passed`` programs run and has each later one end as ``refusal``, without running it.

    Its clock jumps ahead where a control waits: a control that waits for what never comes gives up at once.
    """

    def __init__(self, context: JobContext, passed: int, refusal: Ended) -> None:
        self.refused = False
        """Whether a program was not run."""
        self._context, self._left, self._refusal = context, passed, refusal
        self._waited_s = 0.0

    def run(self, argv: Sequence[str], *, act: str, timeout_s: float, **more: Unpack[More]) -> Ended:
        """Run a program, or refuse it."""
        self._left -= 1
        if self._left < 0:
            self.refused = True
            return self._refusal
        return self._context.run(argv, act=act, timeout_s=timeout_s, **more)

    def now(self) -> float:
        """The time, with what was waited."""
        return self._context.now() + self._waited_s

    def wait(self, seconds: float) -> None:
        """Let the time pass."""
        self._waited_s += seconds
