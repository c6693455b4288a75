"""Whether one receiver of a circuit hears its intended transmitter.

Light alone proves nothing. With every PUC in bar or cross, each port of a mesh is connected to some other port, so a
wrong circuit brings light too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lumctl.devices.types import Neighbour, OpticsReading
from lumctl.fleet.readings import InterfaceReading
from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.link import has_no_carrier, has_no_light
from lumctl.health.states import Finding
from lumctl.inventory.model import Evidence, Transponder


@dataclass(frozen=True, slots=True)
class ReceiverCase:
    """One receiver of one circuit with its fresh readings.

    ``neighbour`` is the newest LLDP neighbour of its interface, and ``hears`` is that neighbour's transponder.
    ``host_known``: the neighbour is at least a host of the inventory. ``announced``: the intended transmitter is among
    all neighbours. ``neighbours_read``: the host's neighbour table could be read. ``planned_dbm`` is the expected
    power, if the loss of the light path is known.
    """

    circuit: str
    receiver: Transponder
    expected: str
    interface: InterfaceReading | None
    optics: OpticsReading | None
    neighbours_read: bool
    neighbour: Neighbour | None
    hears: str | None
    host_known: bool
    announced: bool
    rx_margin_db: float
    planned_dbm: float | None
    read_at: float

    @property
    def heard_now(self) -> str | None:
        """The transmitter that it hears; ``None`` if it is dark or has no carrier: then the neighbour is an old one."""
        return None if self.dark or has_no_carrier(self.interface) else self.hears

    @property
    def dark(self) -> bool:
        """Whether the receiver is read and has no light."""
        return has_no_light(self.optics, below_dbm=verdict("circuit.dark", "no-light").limit)

    @property
    def proven(self) -> bool:
        """Whether it provably hears the intended transmitter."""
        return self.heard_now == self.expected


def light(case: ReceiverCase) -> Iterator[Finding]:
    """No light, or an interface that is down: then the receiver hears nothing, even if an old table entry remains."""
    if case.dark:
        evidence = f"{case.receiver.id} receives no light from {case.expected}"
        yield found(case.circuit, "circuit.dark", "no-light", evidence, since=case.read_at, about=case.receiver.id)
    elif has_no_carrier(case.interface):
        evidence = f"{case.receiver.interface} behind {case.receiver.id} is down"
        yield found(case.circuit, "circuit.down", "no-carrier", evidence, since=case.read_at, about=case.receiver.id)


def source(case: ReceiverCase) -> Iterator[Finding]:
    """A receiver that hears another transmitter than the intended one, or one that cannot be identified."""
    if case.dark or has_no_carrier(case.interface) or case.proven:
        return
    who = f"{case.neighbour.system} {case.neighbour.port}" if case.neighbour is not None else ""
    if case.neighbour is not None and case.hears is not None:
        evidence = f"{case.receiver.id} hears {case.hears} instead of {case.expected}"
        yield found(
            case.circuit, "circuit.wrong-transmitter", "known", evidence, since=case.read_at, about=case.receiver.id
        )
    elif case.announced:
        # Another neighbour is newer, but the intended transmitter is there as well: neither proven nor wrong.
        evidence = f"{case.receiver.id} hears {who}, and {case.expected} too"
        yield found(
            case.circuit, "circuit.unproven", "several-announce", evidence, since=case.read_at, about=case.receiver.id
        )
    elif case.host_known:
        evidence = f"{case.receiver.id} hears {who}, a port that is not in the inventory"
        yield found(
            case.circuit, "circuit.unproven", "unnamed-port", evidence, since=case.read_at, about=case.receiver.id
        )
    elif case.neighbour is not None:
        evidence = f"{case.receiver.id} hears {who}, which is not in the inventory, instead of {case.expected}"
        yield found(
            case.circuit, "circuit.wrong-transmitter", "stranger", evidence, since=case.read_at, about=case.receiver.id
        )
    elif Evidence.LLDP not in case.receiver.verify:
        evidence = f"{case.receiver.id}: {_presence(case)}, source not shown"
        yield found(
            case.circuit, "circuit.unproven", "source-not-shown", evidence, since=case.read_at, about=case.receiver.id
        )
    elif case.neighbours_read:
        evidence = f"{case.receiver.id}: {_presence(case)}, no neighbour announces itself"
        yield found(
            case.circuit, "circuit.unproven", "nobody-announces", evidence, since=case.read_at, about=case.receiver.id
        )


def margin(case: ReceiverCase) -> Iterator[Finding]:
    """Light so weak that a little more loss would break the circuit."""
    power = _light(case)
    if power is not None and power - case.receiver.rx_sensitivity_dbm < case.rx_margin_db:
        left = power - case.receiver.rx_sensitivity_dbm
        evidence = (
            f"{case.receiver.id} receives {power:.1f} dBm, {left:.1f} dB above its sensitivity (required: "
            f"{case.rx_margin_db:g} dB)"
        )
        yield found(case.circuit, "circuit.rx-margin", "thin", evidence, since=case.read_at, about=case.receiver.id)


def dim(case: ReceiverCase) -> Iterator[Finding]:
    """Much less light than planned. Checked only at receivers that provably hear the intended transmitter."""
    power, planned = _light(case), case.planned_dbm
    if power is None or planned is None or not case.proven:
        return
    missing = planned - power
    if missing >= verdict("circuit.dim", "less-than-planned").limit:
        evidence = f"{case.receiver.id} receives {power:.1f} dBm, {missing:.1f} dB less than planned"
        yield found(
            case.circuit, "circuit.dim", "less-than-planned", evidence, since=case.read_at, about=case.receiver.id
        )


def _light(case: ReceiverCase) -> float | None:
    """The power at a receiver that is optical, read, and not dark."""
    return case.optics.rx_power_dbm if case.optics and case.optics.optical and not case.dark else None


def _presence(case: ReceiverCase) -> str:
    return "light present" if case.optics and case.optics.rx_power_dbm is not None else "light not read"


RULES = (light, source, margin, dim)
