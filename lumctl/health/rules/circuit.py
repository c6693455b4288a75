"""Whether one receiver of a circuit hears its intended transmitter.

Light alone proves nothing: in bar and cross every port of a mesh is paired with some other, so a wrong circuit brings
light too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lumctl.devices.types import Neighbour, OpticsReading
from lumctl.fleet.readings import InterfaceReading
from lumctl.health.rulebook import found, verdict
from lumctl.health.rules.link import has_no_carrier, has_no_light
from lumctl.health.states import Finding
from lumctl.inventory.model import Evidence, Inventory, Transponder


@dataclass(frozen=True, slots=True)
class ReceiverCase:
    """One receiver of one circuit with its fresh readings.

    ``neighbour`` is the newest one that its host heard behind it, ``hears`` its transponder and ``host_known``
    whether it is at least a host of the inventory. ``announced``: the intended transmitter is among all that were
    heard; ``neighbours_read``: the host's table could be read at all. ``planned_dbm`` is the expected power, if the
    loss of the light path is known.
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
        """The transmitter that it hears; ``None`` if it is dark or without carrier, despite an old table entry."""
        return None if self.dark or has_no_carrier(self.interface) else self.hears

    @property
    def dark(self) -> bool:
        """Whether the receiver is read and has no light."""
        return has_no_light(self.optics, below_dbm=verdict("circuit.dark", "no-light").limit)

    @property
    def proven(self) -> bool:
        """Whether it was shown to hear the intended transmitter."""
        return self.heard_now == self.expected


def light(case: ReceiverCase) -> Iterator[Finding]:
    """No light, or an interface that is down: nothing can be heard, whatever an old table entry has."""
    if case.dark:
        evidence = f"{case.receiver.id} receives no light from {case.expected}"
        yield found(case.circuit, "circuit.dark", "no-light", evidence, since=case.read_at, about=case.receiver.id)
    elif has_no_carrier(case.interface):
        evidence = f"{case.receiver.interface} behind {case.receiver.id} is down"
        yield found(case.circuit, "circuit.down", "no-carrier", evidence, since=case.read_at, about=case.receiver.id)


def source(case: ReceiverCase) -> Iterator[Finding]:
    """Another transmitter than the intended one, or none that can be named."""
    if case.dark or has_no_carrier(case.interface) or case.proven:
        return
    who = f"{case.neighbour.system} {case.neighbour.port}" if case.neighbour is not None else ""
    if case.neighbour is not None and case.hears is not None:
        evidence = f"{case.receiver.id} hears {case.hears} instead of {case.expected}"
        yield found(
            case.circuit, "circuit.wrong-transmitter", "known", evidence, since=case.read_at, about=case.receiver.id
        )
    elif case.announced:
        evidence = f"{case.receiver.id} hears {who}, and {case.expected} too"
        yield found(
            case.circuit, "circuit.unproven", "several-announce", evidence, since=case.read_at, about=case.receiver.id
        )
    elif case.host_known:
        evidence = f"{case.receiver.id} hears {who}, a port that the inventory does not name"
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
        evidence = f"{case.receiver.id}: {_presence(case)}, nobody announces itself"
        yield found(
            case.circuit, "circuit.unproven", "nobody-announces", evidence, since=case.read_at, about=case.receiver.id
        )


def margin(case: ReceiverCase) -> Iterator[Finding]:
    """Light so weak that little more loss would end the circuit."""
    power = _light(case)
    if power is not None and power - case.receiver.rx_sensitivity_dbm < case.rx_margin_db:
        left = power - case.receiver.rx_sensitivity_dbm
        evidence = (
            f"{case.receiver.id} receives {power:.1f} dBm, {left:.1f} dB above its sensitivity"
            f" (wanted: {case.rx_margin_db:g} dB)"
        )
        yield found(case.circuit, "circuit.rx-margin", "thin", evidence, since=case.read_at, about=case.receiver.id)


def dim(case: ReceiverCase) -> Iterator[Finding]:
    """Much less light than planned. A receiver that hears another transmitter is judged for that alone."""
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


class TransmitterNames:
    """The lanes of an inventory by what their hosts announce.

    Hosts announce a short or a fully qualified name, as their administrator chose; both are recognised.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._hosts = {_short(host) for host in inventory.hosts}
        self._lanes: dict[tuple[str, str], str] = {}
        for transponder in inventory.transponders.values():
            self._lanes.setdefault((_short(transponder.host), transponder.interface), transponder.id)

    def transponder(self, neighbour: Neighbour) -> str | None:
        """The transponder behind a neighbour's host and interface; ``None`` if the inventory knows no such lane."""
        return self._lanes.get((_short(neighbour.system), neighbour.port))

    def knows_host(self, neighbour: Neighbour) -> bool:
        """Whether a neighbour is a host of the inventory, whatever it calls its port."""
        return _short(neighbour.system) in self._hosts


def heard_transponder(inventory: Inventory, neighbour: Neighbour) -> str | None:
    """The transponder behind one neighbour; for many neighbours make one :class:`TransmitterNames`."""
    return TransmitterNames(inventory).transponder(neighbour)


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
