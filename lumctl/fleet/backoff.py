"""When a lost host is tried again."""

import random

_LONGEST_S = 60.0


class Backoff:
    """Tries come at growing distances, from a second to a minute, until one works.

    ``until`` is the moment of the monotonic clock before which nobody tries unless told to. ``failures`` counts the
    failed tries in a row, ``shown`` those of them since somebody last asked deliberately.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.shown = 0
        self.until = 0.0

    def failed(self, now: float) -> None:
        """One more try was in vain."""
        self.failures += 1
        self.shown += 1
        longest = min(_LONGEST_S, 2.0 ** min(self.failures - 1, 10))
        # Not cryptography: hosts that were lost together must not all come back in the same moment.
        self.until = now + longest * random.uniform(0.5, 1.0)  # noqa: S311

    def worked(self) -> None:
        """The host is there."""
        self.failures = self.shown = 0

    def asked_for(self) -> None:
        """Somebody wants to know now: what failed before is not their answer."""
        self.shown = 0
