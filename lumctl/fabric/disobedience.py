"""Which PUC does not stand as written, by who hears whom."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lumctl.devices.types import PucState
from lumctl.fabric.condition import mesh_of
from lumctl.fabric.geometry import Mesh
from lumctl.fabric.tracing import trace
from lumctl.inventory.model import Device

_OTHER = {PucState.BAR: PucState.CROSS, PucState.CROSS: PucState.BAR}


@dataclass(frozen=True, slots=True)
class Disobedience:
    """The ``pucs`` each of which explains alone what the receivers hear.

    It is ``shown`` where a receiver hears another transmitter than it should. Darkness alone may have other causes.
    """

    pucs: tuple[int, ...] = ()
    shown: bool = False


def disobeying_pucs(
    device: Device, written: Mapping[int, PucState], sending: Collection[int], heard: Mapping[int, int | None]
) -> Disobedience:
    """The PUCs of a mesh each of which, standing in its other state, explains alone what the receivers hear.

    ``written`` is what the mesh should hold. ``sending`` are the ports at which light comes in. ``heard`` tells by port
    of a receiver at which port the light that it hears came in, ``None`` for a dark receiver; a receiver of which
    nothing is known is left out.
    """
    mesh = mesh_of(device)
    meant, passed = _arrivals(mesh, written, sending)
    wrong = [port for port, source in heard.items() if meant.get(port) != source]
    # Only a PUC on the way of light that does not arrive as meant can be the one.
    ways = [passed[source] for port in wrong for source in (meant.get(port), heard[port]) if source in passed]
    found = []
    for puc in sorted(set().union(*ways)):
        states = {**written, puc: _OTHER[written.get(puc, PucState.BAR)]}
        arriving, _ = _arrivals(mesh, states, sending)
        if all(arriving.get(port) == source for port, source in heard.items()):
            found.append(puc)
    return Disobedience(tuple(found), any(heard[port] is not None for port in wrong))


def _arrivals(
    mesh: Mesh, states: Mapping[int, PucState], sending: Collection[int]
) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
    """By port at which light leaves, the port at which it came in; by the latter, the PUCs that it passes."""
    traces = {port: trace(mesh, states, port) for port in sending}
    return {t.exit: port for port, t in traces.items()}, {port: frozenset(t.pucs) for port, t in traces.items()}
