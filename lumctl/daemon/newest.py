"""The newest look, as it passes from the loop that takes it to the threads that hand it on."""

import time
from collections.abc import Callable

from lumctl.site.observation import Observation


class Newest:
    """Holds one look and knows its age by a clock that nobody sets. A single reference is exchanged: no lock."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._held: tuple[Observation, float] | None = None

    def put(self, look: Observation) -> None:
        """A look that was taken just now."""
        self._held = (look, self._monotonic())

    @property
    def look(self) -> Observation | None:
        """The newest look; ``None`` before the first."""
        held = self._held
        return held[0] if held else None

    def age_s(self) -> float | None:
        """How long ago it was taken; ``None`` before the first."""
        held = self._held
        return self._monotonic() - held[1] if held else None
