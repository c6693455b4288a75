"""The waveguides of a mesh as curves: along both sides of every PUC, round every corner, and out at the ports."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, tan

from lumctl.fabric.drawing.circuits import Leg
from lumctl.fabric.drawing.model import Curve, Line, straight
from lumctl.fabric.drawing.paper import Corner, Paper, Point, along
from lumctl.fabric.geometry import FREE, Mesh

# In lengths of the shortest edge:
ASIDE = 0.105
"""How far a waveguide runs beside its edge."""
GATE = 0.23
"""Half the length of a PUC's gate: within it light keeps or changes its side."""
REACH = 0.6
"""How far from its vertex a port ends."""
_APART = 0.17
"""Half the distance between the two ports of one vertex."""


@dataclass(frozen=True, slots=True)
class Tracks:
    """A mesh's waveguides on a sheet: an edge is ``scale`` long, and the paper's origin lies at ``origin``."""

    mesh: Mesh
    paper: Paper
    scale: float
    origin: Point

    def at(self, point: Point) -> Point:
        """A point of the paper on the sheet."""
        return self.origin[0] + point[0] * self.scale, self.origin[1] + point[1] * self.scale

    def gate_end(self, terminal: int) -> Point:
        """Where the gate of a PUC ends at a terminal."""
        return self.at(self._gate_end(terminal))

    def port(self, port: int) -> Point:
        """Where a port ends."""
        return self.at(port_at(self.paper.corners[self.mesh.ports[port]]))

    def passing(self, leg: Leg) -> Curve:
        """Through a gate: straight on in bar, over to the other side in cross."""
        start, end = self._gate_end(leg[0]), self._gate_end(leg[1])
        if leg[0] ^ leg[1] == 2:  # noqa: PLR2004 - bar, by the numbering of terminals
            return self._curve(straight(start, end))
        inward, outward = self.paper.corners[leg[0]].edge, self.paper.corners[leg[1]].edge
        return self._curve((along(start, inward, GATE), along(end, outward, GATE), end))

    def turning(self, terminal: int) -> Curve:
        """From the gate's end at a terminal round the corner to the next gate."""
        peer = self.mesh.peers[terminal]
        start, end = self._gate_end(terminal), self._gate_end(peer)
        return self._curve((self._pull(terminal, start, end), self._pull(peer, end, start), end))

    def leaving(self, port: int) -> Curve:
        """From the gate's end at a port's terminal out of the mesh."""
        terminal = self.mesh.ports[port]
        corner = self.paper.corners[terminal]
        start, end = self._gate_end(terminal), port_at(corner)
        reach = hypot(end[0] - start[0], end[1] - start[1]) / 2.5
        return self._curve((along(start, corner.edge + pi, reach), along(end, corner.middle + pi, reach), end))

    def way(self, legs: Sequence[Leg]) -> tuple[Point, tuple[Curve, ...]]:
        """A circuit from port to port: in, through gates and round corners by turns, and out."""
        first, last = self.mesh.port_at[legs[0][0]], self.mesh.port_at[legs[-1][1]]
        curves = [_back(self.leaving(first), self.gate_end(legs[0][0]))]
        for leg in legs:
            curves.append(self.passing(leg))
            if self.mesh.peers[leg[1]] != FREE:
                curves.append(self.turning(leg[1]))
        return self.port(first), (*curves, self.leaving(last))

    def idle(self, colour: str, width: float) -> list[Line]:
        """All waveguides between the gates, each once."""
        lines: list[Line] = []
        for terminal, peer in enumerate(self.mesh.peers):
            if peer > terminal:
                lines.append(Line(self.gate_end(terminal), (self.turning(terminal),), colour, width))
            elif peer == FREE:
                out = self.leaving(self.mesh.port_at[terminal])
                lines.append(Line(self.gate_end(terminal), (out,), colour, width))
        return lines

    def _gate_end(self, terminal: int) -> Point:
        corner = self.paper.corners[terminal]
        a, b = self.paper.ends[terminal >> 2]
        middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        aside = pi / 2 if corner.width > 0 else -pi / 2
        return along(along(middle, corner.edge, -GATE), corner.edge + aside, ASIDE)

    def _pull(self, terminal: int, start: Point, end: Point) -> Point:
        """The control point of a turn: towards where the two tracks would meet."""
        corner = self.paper.corners[terminal]
        distance = hypot(start[0] - corner.vertex[0], start[1] - corner.vertex[1])
        half = abs(corner.width) / 2
        meeting = distance - ASIDE / tan(half) if half < pi / 2 else distance
        most = hypot(end[0] - start[0], end[1] - start[1])
        return along(start, corner.edge + pi, 0.72 * min(max(meeting, 0.0), most))

    def _curve(self, curve: Curve) -> Curve:
        return self.at(curve[0]), self.at(curve[1]), self.at(curve[2])


def port_at(corner: Corner) -> Point:
    """Where a port ends on paper: out of the middle of the room at its vertex, on its own edge's side."""
    sideways = -pi / 2 if corner.width > 0 else pi / 2
    return along(along(corner.vertex, corner.middle, REACH), corner.middle + sideways, _APART)


def port_number_at(corner: Corner) -> Point:
    """Where the number of a port stands: further out, and a little further from its neighbour."""
    away = 0.27 + 0.07 * abs(cos(corner.middle))  # numbers are wider than high
    sideways = -pi / 2 if corner.width > 0 else pi / 2
    return along(along(port_at(corner), corner.middle, away), corner.middle + sideways, 0.03)


def _back(curve: Curve, start: Point) -> Curve:
    """The same curve, from its end to its start."""
    return curve[1], curve[0], start
