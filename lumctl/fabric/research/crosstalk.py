"""Computes what each receiver hears, from the gains between ports: its own circuit, and all other light."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, log10

from lumctl.errors import UsageError
from lumctl.fabric.geometry import PortPair
from lumctl.fabric.research.optics import Reals, np


@dataclass(frozen=True, slots=True)
class Reception:
    """What one receiver hears. Powers are in dBm at the port, after the port's loss; ``-inf`` for none.

    ``signal_dbm`` is all light of the circuit's far transmitter, over any path. ``interference_dbm`` is the sum over
    all other transmitters, including the transmitter at the same port (its echo). The strongest of them is at
    ``worst_port``; ``worst_circuit`` is the circuit of that port, if it has one.
    """

    circuit: PortPair
    port: int
    signal_dbm: float
    interference_dbm: float
    worst_port: int | None
    worst_circuit: PortPair | None
    worst_dbm: float

    @property
    def signal_to_crosstalk_db(self) -> float:
        """The ratio of the signal to the interference in dB; ``inf`` if there is no interference."""
        return inf if self.interference_dbm == -inf else self.signal_dbm - self.interference_dbm


def powers_at_ports(gains: Reals, transmitters: Mapping[int, float]) -> dict[int, float]:
    """The power that leaves each port in dBm (``-inf``: none), from the transmitters' powers in dBm, by port.

    ``gains`` are those of :mod:`lumctl.fabric.research.transmission`. Light of two transmitters does not interfere.

    Raises:
        UsageError: a port is not on the mesh.
    """
    return {port: _dbm(power) for port, power in enumerate((gains @ _sent(gains, transmitters)).tolist())}


def crosstalk(
    gains: Reals, circuits: Sequence[PortPair], transmitters: Mapping[int, float] | None = None
) -> tuple[Reception, ...]:
    """What every receiver of these circuits hears: for each circuit the second port, then the first port.

    Without ``transmitters`` both ends of every circuit send 0 dBm, so that powers are gains in dB. With
    ``transmitters`` (dBm by port) an end whose far end does not transmit is not a receiver: a directed circuit has one
    receiver.

    Raises:
        UsageError: a port is not on the mesh.
    """
    if transmitters is None:
        transmitters = {port: 0.0 for circuit in circuits for port in circuit}
    _require_ports(gains, chain.from_iterable(circuits))
    owner = {port: circuit for circuit in circuits for port in circuit}
    arriving = gains * _sent(gains, transmitters)
    return tuple(
        _reception(circuit, here, far, arriving[here], owner)
        for circuit in circuits
        for far, here in (circuit, circuit[::-1])
        if far in transmitters
    )


def worst_by_circuit(receptions: Sequence[Reception]) -> dict[PortPair, Reception]:
    """By circuit, the receiver with the worst crosstalk."""
    worst: dict[PortPair, Reception] = {}
    for found in receptions:
        held = worst.setdefault(found.circuit, found)
        if found.signal_to_crosstalk_db < held.signal_to_crosstalk_db:
            worst[found.circuit] = found
    return worst


def _reception(circuit: PortPair, here: int, far: int, arriving: Reals, owner: Mapping[int, PortPair]) -> Reception:
    others = arriving.copy()
    others[far] = 0.0
    loudest = int(np.argmax(others))
    heard = others[loudest] > 0
    return Reception(
        circuit=circuit,
        port=here,
        signal_dbm=_dbm(float(arriving[far])),
        interference_dbm=_dbm(float(others.sum())),
        worst_port=loudest if heard else None,
        worst_circuit=owner.get(loudest) if heard else None,
        worst_dbm=_dbm(float(others[loudest])),
    )


def _sent(gains: Reals, transmitters: Mapping[int, float]) -> Reals:
    """The power that each port's transmitter sends, in mW."""
    sent = np.zeros(len(gains))
    _require_ports(gains, transmitters)
    for port, power_dbm in transmitters.items():
        sent[port] = 10 ** (power_dbm / 10)
    return sent


def _require_ports(gains: Reals, ports: Iterable[int]) -> None:
    for port in ports:
        if not 0 <= port < len(gains):
            raise UsageError(f"port {port} is not on the mesh", hint=f"its ports are 0 to {len(gains) - 1}")


def _dbm(milliwatts: float) -> float:
    return 10 * log10(milliwatts) if milliwatts > 0 else -inf
