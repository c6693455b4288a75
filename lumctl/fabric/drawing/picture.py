"""A mesh with its circuits as a picture, and under it what its letters and marks stand for."""

from lumctl.counts import counted
from lumctl.fabric.drawing.carried import Carried, Circuit
from lumctl.fabric.drawing.key import key
from lumctl.fabric.drawing.lanes import REACH, Lanes, port_number_at
from lumctl.fabric.drawing.model import Group, Item, Label, Picture, text_width
from lumctl.fabric.drawing.paper import Paper, paper
from lumctl.fabric.drawing.symbols import (
    EDGE,
    GLASS,
    INK,
    QUIET,
    THIN,
    badge,
    blocked_port,
    circuit_line,
    free_port,
    gate,
)

_MARGIN = 24.0
_HEADING, _COUNTS, _NUMBER = 17.0, 12.0, 11.0
_HEAD = 40.0
"""The height of the heading."""
_RIM = (REACH + 0.45) * EDGE
"""The room for ports round the mesh."""


def picture(shown: Carried, title: str) -> Picture:
    """Draw a mesh.

    Raises:
        UsageError: the mesh has no positions.
    """
    mesh, on_paper = shown.mesh, paper(shown.mesh)
    left, top, right, bottom = _extent(on_paper)
    origin = (_MARGIN + _RIM - left * EDGE, _MARGIN + _HEAD + _RIM - top * EDGE)
    lanes = Lanes(mesh, on_paper, EDGE, origin)
    room = (right - left) * EDGE + 2 * _RIM
    below = _MARGIN + _HEAD + (bottom - top) * EDGE + 2 * _RIM
    keys, (key_right, key_bottom) = key(shown, (_MARGIN, below), room)
    count = len(shown.circuits)
    counts = f"{mesh.puc_count} PUCs, {mesh.port_count} ports, {counted(count, 'circuits')}"
    heading = (
        Label((_MARGIN, _MARGIN + 8), title, _HEADING, INK, centred=False, bold=True),
        Label((_MARGIN, _MARGIN + 30), counts, _COUNTS, QUIET, centred=False),
    )
    widest = max(_MARGIN + text_width(label.text, label.size) for label in heading)
    return Picture(
        width=max(_MARGIN + room, key_right, widest) + _MARGIN,
        height=key_bottom + _MARGIN,
        title=f"{title}: {counts}",
        description="; ".join(f"{c.letter}: {c.name}, ports {c.ports[0]} and {c.ports[1]}" for c in shown.circuits),
        groups=(
            Group("heading", heading),
            Group("waveguides", tuple(lanes.idle(GLASS, THIN))),
            *(_puc(shown, lanes, puc) for puc in range(mesh.puc_count)),
            *(_circuit(lanes, circuit) for circuit in shown.circuits),
            *(_port(shown, lanes, port) for port in range(mesh.port_count)),
            *keys,
        ),
    )


def _extent(on_paper: Paper) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of all vertices."""
    points = [point for pair in on_paper.ends for point in pair]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def _puc(shown: Carried, lanes: Lanes, puc: int) -> Group:
    condition, state = shown.condition, shown.state(puc)
    stuck, damaged = puc in condition.stuck, puc in condition.damaged
    words = [f"PUC {puc}", state.word, *(["stuck"] if stuck else []), *(["damaged"] if damaged else [])]
    words += [f"carries {circuit.letter}" for circuit in shown.circuits_through(puc)]
    return Group("puc", gate(lanes, puc, state, stuck=stuck, damaged=damaged), ", ".join(words))


def _circuit(lanes: Lanes, circuit: Circuit) -> Group:
    a, b = circuit.ports
    start, curves = lanes.way(circuit.legs)
    title = f"{circuit.letter}: {circuit.name}, ports {a} and {b}, {len(circuit.legs)} PUCs, {circuit.loss_db:.1f} dB"
    return Group("circuit", circuit_line(start, curves, circuit.number), title)


def _port(shown: Carried, lanes: Lanes, port: int) -> Group:
    at, terminal = lanes.port(port), shown.mesh.ports[port]
    circuit = shown.lit.get(terminal)
    number = lanes.at(port_number_at(lanes.paper.corners[terminal]))
    label = Label(number, str(port), _NUMBER, INK if circuit else QUIET, bold=circuit is not None)
    items: tuple[Item, ...] = (free_port(at),)
    title = f"port {port}"
    if circuit:
        items, title = badge(at, circuit), f"{title}, {circuit.letter}"
    if port in shown.condition.blocked_ports:
        items, title = blocked_port(at), f"{title}, blocked"
    return Group("port", (*items, label), title)
