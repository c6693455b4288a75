"""The field model: the light that an imperfect mesh sends from every port to every port, as waves.

A PUC has no reflection. Its transfer matrix from either end to the other, over its two sides, is

    T = j e^(jD) [[sin t, cos t], [cos t, -sin t]],   D = (p0 + p1) / 2,   t = (p0 - p1) / 2

with ``p0`` and ``p1`` the phases of its two arms: equal phases are cross, a difference of pi is bar. Leaked light runs
in loops, so the waves at all terminals are the solution of one linear system instead of a sum over paths.

What a number means:

* Light of one transmitter that reaches a port over several paths adds up as waves. So it depends on the phases of all
  waveguides, which are unknown. :func:`gains` holds for given phases (0 by default); :func:`mean_gains` is the mean
  over random phases. :func:`incoherent_gains` adds powers instead of waves: it gives nearly that mean by one solve.
* Light of two transmitters never interferes: their powers add.
* Everything holds for one wavelength and one polarisation in a steady state. Drift and the drive of the PUCs are not
  modelled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, sin, sqrt
from random import Random
from typing import TypeVar

from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.fabric.condition import MeshCondition
from lumctl.fabric.geometry import FREE, Mesh
from lumctl.fabric.research.optics import (
    NDArray,
    Phases,
    Reals,
    Setting,
    WaveOptics,
    Waves,
    connected_components,
    csc_matrix,
    np,
    random_waveguide_phases,
    splu,
)

_DARK = 1e-6
"""Amplitudes below this (120 dB down) count as none.

The phases of bar contain pi, so an ideal bar would leak by a rounding error. A loop without loss that light can enter
only by such a leak would have no solution.
"""
_NONE = Phases(0.0, 0.0)
Number = TypeVar("Number", np.float64, np.complex128)
SAMPLES = 64
"""The number of random sets of waveguide phases. It gives the crosstalk into a port to about 0.1 dB, or to 0.6 dB if
all of it has leaked several times (standard deviations; 9x9 cells, 16 circuits, 30 dB extinction)."""


@dataclass(frozen=True, eq=False, slots=True)
class Couplers:
    """Amplitudes by the terminal ``t`` at which light comes in: ``bar`` to ``t ^ 2``, ``cross`` to ``t ^ 3``."""

    bar: Waves
    cross: Waves


def couplers(mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, condition: MeshCondition) -> Couplers:
    """The amplitudes of all PUCs as set; a stuck PUC has the state in which it is stuck, an unnamed PUC is in bar."""
    standing = {**settings, **condition.stuck}
    pucs = range(mesh.puc_count)
    turns = np.array([_turn(puc, standing.get(puc, PucState.BAR), optics) for puc in pucs], dtype=np.float64)
    sines, cosines, common = turns.reshape(-1, 3).T
    loss_db = np.array([condition.pass_loss_db(puc) for puc in pucs])
    factor = 1j * np.exp(1j * common) * 10 ** (-loss_db / 20)
    bar = np.stack((factor * sines, -factor * sines), axis=1)
    cross = np.stack((factor * cosines, factor * cosines), axis=1)
    # Both directions through the PUC are equal: T is symmetric.
    return Couplers(_lit(np.tile(bar, 2).ravel()), _lit(np.tile(cross, 2).ravel()))


def _turn(puc: int, setting: Setting, optics: WaveOptics) -> tuple[float, float, float]:
    """The sine and the cosine of ``t``, and ``D``, of one PUC."""
    error = optics.phase_errors.get(puc, _NONE)
    common, half = (error.side_0 + error.side_1) / 2, (error.side_0 - error.side_1) / 2
    if isinstance(setting, Phases):
        half += (setting.side_0 - setting.side_1) / 2
        return sin(half), cos(half), common + (setting.side_0 + setting.side_1) / 2
    # Computed without an angle, so that an ideal PUC has no leakage at all.
    leak = 10 ** (-optics.extinction_db(puc, setting) / 10)
    right, wrong = sqrt(1 / (1 + leak)), sqrt(leak / (1 + leak))
    sine, cosine = (right, wrong) if setting is PucState.BAR else (wrong, right)
    return sine * cos(half) + cosine * sin(half), cosine * cos(half) - sine * sin(half), common


def _lit(amplitudes: Waves) -> Waves:
    return np.where(np.abs(amplitudes) < _DARK, 0.0, amplitudes)


def transmission(mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, *, condition: MeshCondition) -> Waves:
    """The amplitude that leaves each port (row) for light of amplitude 1 into each port (column).

    It holds for the waveguide phases that ``optics`` names; the others are 0. The matrix is symmetric: a mesh passes
    light equally in both directions. Blocked ports pass light like all others: a block is only a rule for routing.

    Raises:
        UsageError: ``optics`` gives a phase to a waveguide that does not exist.
    """
    return _Waves.of(mesh, settings, optics, condition).amplitudes(optics.waveguide_phases)


def gains(mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, *, condition: MeshCondition) -> Reals:
    """The power that leaves each port (row) for power 1 into each port (column), for the phases of ``optics``."""
    return _power(transmission(mesh, settings, optics, condition=condition))


def mean_gains(
    mesh: Mesh,
    settings: Mapping[int, Setting],
    optics: WaveOptics,
    *,
    condition: MeshCondition,
    rng: Random,
    samples: int = SAMPLES,
) -> Reals:
    """The mean of :func:`gains` over random phases of all waveguides; the phases of ``optics`` do not matter.

    The crosstalk into a port of one mesh at one time differs from this mean: by 1 or 2 dB if circuits share PUCs, and
    it is up to 7 dB higher if all of it has leaked several times (9x9 cells, 16 circuits, 30 dB extinction).

    Raises:
        UsageError: ``samples`` is below 1.
    """
    if samples < 1:
        raise UsageError(f"a mean over {samples} samples is not possible", hint="use at least 1")
    waves = _Waves.of(mesh, settings, optics, condition)
    total = np.zeros((mesh.port_count, mesh.port_count))
    for _ in range(samples):
        total += _power(waves.amplitudes(random_waveguide_phases(mesh, rng)))
    return total / samples


def incoherent_gains(
    mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, *, condition: MeshCondition
) -> Reals:
    """An approximation of :func:`mean_gains` that adds powers where paths meet: one solve, and no randomness.

    Echoes count twice: light that returns to its own port can take the same path in both directions. Both have the same
    phase, so they always add up as waves. Other paths of equal phase (the same waveguides in another order) have leaked
    several times each. They are omitted, which is the difference from the mean.
    """
    waves = _Waves.of(mesh, settings, optics, condition)
    power = _solved(waves.net, _power(waves.bar), _power(waves.cross), _power(waves.ports))
    power[np.diag_indices_from(power)] *= 2
    return power


@dataclass(frozen=True, eq=False, slots=True)
class _Net:
    """The connections in a mesh, for any states of its PUCs: arrays by the terminal at which light enters a PUC.

    ``after_bar`` is the next terminal of light in bar (:data:`FREE`: it leaves the mesh), ``bar_exit`` the port at
    which it leaves (:data:`FREE`: it does not), and likewise for cross. ``ports`` are the terminals of the ports.
    """

    after_bar: NDArray[np.intp]
    after_cross: NDArray[np.intp]
    bar_exit: NDArray[np.intp]
    cross_exit: NDArray[np.intp]
    ports: NDArray[np.intp]

    @classmethod
    def of(cls, mesh: Mesh) -> "_Net":
        terminals = np.arange(len(mesh.peers))
        peers, ports = np.array(mesh.peers, dtype=np.intp), np.array(mesh.ports, dtype=np.intp)
        port_at = np.full(len(peers), FREE)
        port_at[ports] = np.arange(len(ports))
        return cls(peers[terminals ^ 2], peers[terminals ^ 3], port_at[terminals ^ 2], port_at[terminals ^ 3], ports)


@dataclass(frozen=True, eq=False, slots=True)
class _Waves:
    """A mesh in its present state, except for the phases of its waveguides."""

    mesh: Mesh
    net: _Net
    bar: Waves
    cross: Waves
    ports: Waves

    @classmethod
    def of(cls, mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, condition: MeshCondition) -> "_Waves":
        found = couplers(mesh, settings, optics, condition)
        loss_db = [condition.loss_db((port,), ()) for port in range(mesh.port_count)]
        ports = (10 ** (-np.array(loss_db) / 20)).astype(np.complex128)
        return cls(mesh, _Net.of(mesh), found.bar, found.cross, ports)

    def amplitudes(self, waveguide_phases: Mapping[int, float]) -> Waves:
        angles = np.zeros(len(self.mesh.peers))
        for terminal, phase in waveguide_phases.items():
            if not 0 <= terminal < len(angles) or self.mesh.peers[terminal] == FREE:
                raise UsageError(f"there is no waveguide at terminal {terminal}", hint="its phase cannot be set")
            angles[[terminal, self.mesh.peers[terminal]]] = phase
        # A waveguide's phase is applied to the light that enters the PUC from it.
        wires = np.exp(1j * angles)
        return _solved(self.net, self.bar * wires, self.cross * wires, self.ports)


def _solved(net: _Net, bar: NDArray[Number], cross: NDArray[Number], ports: NDArray[Number]) -> NDArray[Number]:
    """Solve for the waves into all PUCs, for light into each port in turn; return the waves that leave the ports."""
    lead = _arcs(net.after_bar, net.after_cross, bar, cross, len(bar))
    leave = _arcs(net.bar_exit, net.cross_exit, bar, cross, len(ports))
    # A loop without loss that light cannot enter has no solution, so such loops are left out. There is no reflection,
    # and light is reversible, so a terminal that cannot be reached from a port is not connected to any port.
    _, part = connected_components(abs(lead), directed=False)
    lit = np.flatnonzero(np.isin(part, part[net.ports]))
    sources = np.zeros((len(bar), len(ports)), dtype=bar.dtype)
    sources[net.ports, np.arange(len(ports))] = ports
    unit = csc_matrix((np.ones(len(lit), dtype=bar.dtype), (np.arange(len(lit)), np.arange(len(lit)))))
    inside = splu(unit - lead[lit][:, lit]).solve(sources[lit])
    outside: NDArray[Number] = ports[:, np.newaxis] * (leave[:, lit] @ inside)
    return outside


def _arcs(
    after_bar: NDArray[np.intp],
    after_cross: NDArray[np.intp],
    bar: NDArray[Number],
    cross: NDArray[Number],
    rows: int,
) -> csc_matrix:
    """A sparse matrix from the terminals where light enters to those where it goes; zero amplitudes have no entry."""
    to = np.concatenate((after_bar, after_cross))
    amplitudes = np.concatenate((bar, cross))
    origin = np.tile(np.arange(len(bar)), 2)
    there = (to != FREE) & (amplitudes != 0)
    return csc_matrix((amplitudes[there], (to[there], origin[there])), shape=(rows, len(bar)))


def _power(waves: Waves) -> Reals:
    power: Reals = waves.real**2 + waves.imag**2
    return power
