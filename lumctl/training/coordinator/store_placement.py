"""The placement in the store: read when something has changed; while the store cannot be read, the last one holds."""

from collections.abc import Callable, Sequence

from lumctl.errors import LumctlError

AGAIN_S = 30.0
"""How long after the store could not be read spares are looked up again."""


class StorePlacement:
    """The accelerators of the ranks, and the spares that are to be ready, as last read from the store."""

    def __init__(
        self,
        placement: Callable[[], Sequence[str]],
        ready_on: Callable[[], Sequence[str]],
        say: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        self._placement, self._ready_on, self._say, self._now = placement, ready_on, say, now
        self.placed = tuple(placement())
        """As it was read last."""
        self._spares: tuple[str, ...] = ()
        self._spares_from = 0.0
        """From when on they are to be read again."""
        self._why = ""

    def read(self) -> LumctlError | None:
        """Read the placement; the error if it cannot be read, and then the last one holds."""
        self.changed()
        try:
            self.placed = tuple(self._placement())
        except LumctlError as error:
            self._unread(error)
            return error
        self._why = ""
        return None

    def changed(self) -> None:
        """Have the spares read again: they may have changed."""
        self._spares_from = min(self._spares_from, self._now())

    @property
    def spares(self) -> tuple[str, ...]:
        """On which accelerators without a rank a worker is to be ready."""
        if self._now() >= self._spares_from:
            try:
                self._spares, self._spares_from = tuple(self._ready_on()), float("inf")
            except LumctlError as error:
                self._unread(error)
                self._spares_from = self._now() + AGAIN_S
        return self._spares

    def _unread(self, error: LumctlError) -> None:
        if self._why != error.message:
            self._say(f"the store cannot be read, what it said last holds: {error.message}")
            self._why = error.message
