"""Where light goes: from a port through the PUCs as they stand to the port it leaves by."""

from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.geometry import FREE, Mesh

Pass = tuple[int, PucState]
"""One PUC on the way of light, and the state it stands in."""

TURN: Mapping[PucState, int] = {PucState.BAR: 2, PucState.CROSS: 3}
"""What a state does to the number of the terminal at which light comes in (by exclusive or)."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The way of light from ``port`` to ``exit``. Backwards it is the same."""

    port: int
    exit: int
    passes: tuple[Pass, ...]

    @property
    def pucs(self) -> tuple[int, ...]:
        """The PUCs passed, in order; one that is passed on both sides stands here twice."""
        return tuple(puc for puc, _ in self.passes)


def trace(mesh: Mesh, states: Mapping[int, PucState], port: int) -> Trace:
    """Follow light from ``port``. PUCs that ``states`` does not name are in bar.

    Raises:
        UsageError: the mesh has no such port.
    """
    if not 0 <= port < mesh.port_count:
        raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {mesh.port_count - 1}")
    passes: list[Pass] = []
    terminal = mesh.ports[port]
    # This ends: every step can be walked back, so light that came in from outside cannot be caught in a loop.
    while True:
        puc = terminal >> 2
        state = states.get(puc, PucState.BAR)
        passes.append((puc, state))
        out = terminal ^ TURN[state]
        terminal = mesh.peers[out]
        if terminal == FREE:
            return Trace(port, mesh.port_at[out], tuple(passes))


def exits(mesh: Mesh, states: Mapping[int, PucState]) -> dict[int, int]:
    """For every port the port that its light leaves by. It is an involution, and no port is its own partner."""
    return {port: trace(mesh, states, port).exit for port in range(mesh.port_count)}
