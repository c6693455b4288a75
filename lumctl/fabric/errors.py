"""What the fabric room refuses."""

from collections.abc import Iterable

from lumctl.errors import RefusedError
from lumctl.fabric.geometry import PortPair


class InconsistentFabricError(RefusedError):
    """A circuit said to be live is not what the states of the mesh really make."""


class Unroutable(RefusedError):  # noqa: N818 - the word that operators and callers use for it
    """Some circuits were not found a way. ``proven``: there is none; else the router gave up looking."""

    def __init__(self, demands: tuple[PortPair, ...], message: str, *, proven: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.demands = demands
        self.proven = proven


def named(demands: Iterable[PortPair]) -> str:
    """Demands as they are written on the command line: ``3:17, 4:9``."""
    return ", ".join(f"{a}:{b}" for a, b in demands)
