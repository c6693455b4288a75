"""Crosstalk to first order, without solving anything: cheap enough to compare candidates for routes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log10
from typing import Protocol

from lumctl.devices.types import PucState
from lumctl.fabric.condition import Condition
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.optics.model import Optics
from lumctl.fabric.tracing import TURN, Pass

_ECHO = 2
"""An echo leaks where its light passes a PUC first or where it passes it again; the two add up as waves."""


class Way(Protocol):
    """What is asked of a route: its two ports, and the PUCs passed from the first to the second."""

    @property
    def ports(self) -> PortPair: ...  # noqa: D102 - the class says it

    @property
    def passes(self) -> tuple[Pass, ...]: ...  # noqa: D102


def first_order_crosstalk_db(
    mesh: Mesh, routes: Sequence[Way], optics: Optics, *, condition: Condition
) -> dict[PortPair, float]:
    """How far the light of all others lies below the signal, for each circuit at its worse end: dB, mostly negative.

    Both ends of all circuits are taken to transmit alike. Counted is what leaks once and goes right from there on, in
    the PUCs that two routes share (a route that passes a PUC twice sends light back to where it came from); ``-inf``
    where there is none. What leaks twice, by way of idle waveguides and loops, is not counted, nor are phase errors.
    """
    rays = [ray for way in routes for ray in _both_ways(mesh, way, condition)]
    carried = {step.leaving: (ray, step) for ray in rays for step in ray.steps}
    noise = {ray.end: 0.0 for ray in rays}
    for ray in rays:
        for step in ray.steps:
            # Leaked light leaves by the end it should, on the other side.
            other, joined = carried.get(step.leaving ^ 1, (ray, step))
            if other is not ray:  # its own light, further on along its own way, is part of the signal
                below_db = optics.extinction_db(step.leaving >> 2, step.state) + step.loss_db - joined.loss_db
                noise[other.end] += (_ECHO if other.end == ray.start else 1) * 10 ** (-below_db / 10)
    return {way.ports: _db(max(noise[port] for port in way.ports)) for way in routes}


@dataclass(frozen=True, slots=True)
class _Step:
    """Light leaves a PUC at the terminal ``leaving``, having lost ``loss_db`` since its transmitter."""

    leaving: int
    state: PucState
    loss_db: float


@dataclass(frozen=True, eq=False, slots=True)
class _Ray:
    """One direction of a route."""

    start: int
    end: int
    steps: tuple[_Step, ...]


def _both_ways(mesh: Mesh, way: Way, condition: Condition) -> tuple[_Ray, _Ray]:
    start, end = way.ports
    return _ray(mesh, start, end, way.passes, condition), _ray(mesh, end, start, way.passes[::-1], condition)


def _ray(mesh: Mesh, start: int, end: int, passes: Sequence[Pass], condition: Condition) -> _Ray:
    steps: list[_Step] = []
    terminal = mesh.ports[start]
    loss_db = condition.loss_db((start,), ())  # not the end's: signal and noise share it
    for puc, state in passes:
        loss_db += condition.pass_loss_db(puc)
        leaving = terminal ^ TURN[state]
        steps.append(_Step(leaving, state, loss_db))
        terminal = mesh.peers[leaving]
    return _Ray(start, end, tuple(steps))


def _db(ratio: float) -> float:
    return 10 * log10(ratio) if ratio > 0 else -inf
