"""The field model: the light that an imperfect mesh sends from every port to every port, as waves.

A PUC has no reflection. From either end to the other it is, over its two sides,

    T = j e^(jD) [[sin t, cos t], [cos t, -sin t]],   D = (p0 + p1) / 2,   t = (p0 - p1) / 2

with ``p0`` and ``p1`` the phases of its two arms: equal phases are cross, a difference of pi is bar. Leaked light runs
in loops, so the waves at all terminals are the solution of one linear system, not a sum over ways.

What a number means:

* Light of one transmitter that reaches a port over several ways adds up as waves, so it depends on the phase of every
  waveguide, which nobody knows. :func:`gains` holds for the phases given (0 where
  none are); :func:`mean_gains` is the mean over random ones, and
  :func:`incoherent_gains` adds powers instead of waves, one solve for nearly that
  mean.
* Light of two transmitters never interferes: their powers add.
* Everything holds for one wavelength and one polarisation, at rest. Drift and the drive of the PUCs are not modelled.
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

The phases of bar contain pi, so that its leak would be a rounding error; and a loop without loss that light could
enter only by such a leak would have no answer.
"""
_NONE = Phases(0.0, 0.0)
Number = TypeVar("Number", np.float64, np.complex128)
SAMPLES = 64
"""So many random sets of waveguide phases give the crosstalk into a port to about 0.1 dB, or 0.6 dB where all of it has
leaked several times (standard deviations, 9x9 cells with 16 circuits and 30 dB extinction)."""


@dataclass(frozen=True, eq=False, slots=True)
class Couplers:
    """Amplitudes by the terminal ``t`` at which light comes in: ``bar`` to ``t ^ 2``, ``cross`` to ``t ^ 3``."""

    bar: Waves
    cross: Waves


def couplers(mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, condition: MeshCondition) -> Couplers:
    """All PUCs as they are set; a stuck one is what it is stuck in, one that is not named is in bar."""
    standing = {**settings, **condition.stuck}
    pucs = range(mesh.puc_count)
    turns = np.array([_turn(puc, standing.get(puc, PucState.BAR), optics) for puc in pucs], dtype=np.float64)
    sines, cosines, common = turns.reshape(-1, 3).T
    loss_db = np.array([condition.pass_loss_db(puc) for puc in pucs])
    factor = 1j * np.exp(1j * common) * 10 ** (-loss_db / 20)
    bar = np.stack((factor * sines, -factor * sines), axis=1)
    cross = np.stack((factor * cosines, factor * cosines), axis=1)
    # Both ways through the PUC are alike: T is symmetric.
    return Couplers(_lit(np.tile(bar, 2).ravel()), _lit(np.tile(cross, 2).ravel()))


def _turn(puc: int, setting: Setting, optics: WaveOptics) -> tuple[float, float, float]:
    """The sine and the cosine of ``t``, and ``D``, of one PUC."""
    error = optics.phase_errors.get(puc, _NONE)
    common, half = (error.side_0 + error.side_1) / 2, (error.side_0 - error.side_1) / 2
    if isinstance(setting, Phases):
        half += (setting.side_0 - setting.side_1) / 2
        return sin(half), cos(half), common + (setting.side_0 + setting.side_1) / 2
    # Not by way of an angle, so that an ideal PUC leaks nothing at all.
    leak = 10 ** (-optics.extinction_db(puc, setting) / 10)
    right, wrong = sqrt(1 / (1 + leak)), sqrt(leak / (1 + leak))
    sine, cosine = (right, wrong) if setting is PucState.BAR else (wrong, right)
    return sine * cos(half) + cosine * sin(half), cosine * cos(half) - sine * sin(half), common


def _lit(amplitudes: Waves) -> Waves:
    return np.where(np.abs(amplitudes) < _DARK, 0.0, amplitudes)


def transmission(mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, *, condition: MeshCondition) -> Waves:
    """The amplitude that leaves each port (row) for light of amplitude 1 into each port (column).

    It holds for the waveguide phases that ``optics`` names, those not named being 0. It is symmetric: a mesh passes as
    much one way as the other. Ports that the condition blocks pass light like any other: a block is a rule for routing.

    Raises:
        UsageError: ``optics`` gives a phase to a waveguide that is not there.
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
    """Like :func:`gains`, the mean over random phases of all waveguides (those of ``optics`` do not matter).

    What one mesh does on one day lies about this mean: the crosstalk into a port within 1 or 2 dB where circuits share
    PUCs, and up to 7 dB above where all of it has leaked several times (9x9 cells, 16 circuits, 30 dB extinction).

    Raises:
        UsageError: ``samples`` is below 1.
    """
    if samples < 1:
        raise UsageError(f"a mean over {samples} samples cannot be", hint="it takes at least 1")
    waves = _Waves.of(mesh, settings, optics, condition)
    total = np.zeros((mesh.port_count, mesh.port_count))
    for _ in range(samples):
        total += _power(waves.amplitudes(random_waveguide_phases(mesh, rng)))
    return total / samples


def incoherent_gains(
    mesh: Mesh, settings: Mapping[int, Setting], optics: WaveOptics, *, condition: MeshCondition
) -> Reals:
    """Like :func:`mean_gains`, by adding powers where ways meet: one solve and no randomness.

    Echoes count twice: light that comes back to its own port can run the same way the other way round, which has the
    same phase, so that the two always add up as waves. Other ways of equal phase (the same waveguides in another order)
    have leaked several times each and are left out: that is how it differs from the mean.
    """
    waves = _Waves.of(mesh, settings, optics, condition)
    power = _solved(waves.net, _power(waves.bar), _power(waves.cross), _power(waves.ports))
    power[np.diag_indices_from(power)] *= 2
    return power


@dataclass(frozen=True, eq=False, slots=True)
class _Net:
    """Where light goes in a mesh, whatever its PUCs do: arrays by the terminal at which light comes into a PUC.

    ``after_bar`` is the terminal that it comes to next in bar (:data:`FREE`: it leaves), ``bar_exit`` the port that it
    leaves by (:data:`FREE`: it does not), and likewise for cross. ``ports`` are the terminals of the ports.
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
    """A mesh as it stands, but for the phases of its waveguides."""

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
        # A waveguide's phase is put on the light that comes out of it, into the PUC.
        wires = np.exp(1j * angles)
        return _solved(self.net, self.bar * wires, self.cross * wires, self.ports)


def _solved(net: _Net, bar: NDArray[Number], cross: NDArray[Number], ports: NDArray[Number]) -> NDArray[Number]:
    """Solve for what comes into all PUCs, for light into each port in turn, and lead it out of the ports."""
    lead = _arcs(net.after_bar, net.after_cross, bar, cross, len(bar))
    leave = _arcs(net.bar_exit, net.cross_exit, bar, cross, len(ports))
    # Loops that no light gets into would have no answer where they lose nothing. Without reflection and with the same
    # way back for all light, what cannot be reached from a port is not joined to one at all.
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
    """A sparse matrix from the terminal at which light comes in to where it goes; what is dark has no entry."""
    to = np.concatenate((after_bar, after_cross))
    amplitudes = np.concatenate((bar, cross))
    origin = np.tile(np.arange(len(bar)), 2)
    there = (to != FREE) & (amplitudes != 0)
    return csc_matrix((amplitudes[there], (to[there], origin[there])), shape=(rows, len(bar)))


def _power(waves: Waves) -> Reals:
    power: Reals = waves.real**2 + waves.imag**2
    return power
