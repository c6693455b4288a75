"""Switches, transponders and drivers of power that are wrong in one thing each."""

# ruff: noqa: ARG002 - what is wrong with them

import dataclasses

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import Capability, Neighbour, PortReading, Receipt
from wrong_drivers.right import RightPower, RightSwitch, RightTransponder, UnclearError, ask, write


class PortsFromOne(RightSwitch):
    """Numbers ports from 1, as the front panel does: its port 0 is nobody's."""

    def read_ports(self):
        return {port: PortReading(port) for port in range(1, self.context.port_count + 1)}

    def read_circuits(self):
        return {a + 1: b + 1 for a, b in super().read_circuits().items()}

    def word(self, ingress, egress):
        return super().word(ingress - 1, None if egress is None else egress - 1)


class Steals(RightSwitch):
    """Takes an egress port from whoever holds it."""

    def stage(self, joins):
        held, named = self.read_circuits(), set(joins.values())
        return super().stage({a: None for a, b in held.items() if b in named} | dict(joins))


class JoinsAsText(RightSwitch):
    """Gives joins with ports as text."""

    def read_circuits(self):
        return {str(a): str(b) for a, b in super().read_circuits().items()}


class BeyondPortCount(RightSwitch):
    """Gives a join of ports that the switch does not have."""

    def read_circuits(self):
        return super().read_circuits() | {98: 99}


class SwitchMilliwatts(RightSwitch):
    """Gives powers in mW."""

    def read_powers(self, ports):
        return {port: 10 ** (dbm / 10) for port, dbm in super().read_powers(ports).items()}


class SwitchInTurn(RightSwitch):
    """Declares ``ATOMIC`` and makes one join after the other; says that it was refused where that ended halfway."""

    def send(self, wanted):
        for ingress, egress in sorted(wanted.items()):
            try:
                write(self.context, f"join {self.word(ingress, egress)}")
            except DeviceError as error:
                raise DeviceRefusedError(f"{self.context.device}: {error}") from error


class SwitchKeyError(RightSwitch):
    """Raises ``KeyError`` for a port that does not exist."""

    def stage(self, joins):
        known = {port: port for port in range(self.context.port_count)}
        for ingress, egress in joins.items():
            known[ingress], known[ingress if egress is None else egress]
        return super().stage(joins)


class SwitchBlindCommit(RightSwitch):
    """Does not read back, and takes a lost answer for a yes."""

    def commit(self, staged, *, revert_after_s=None):
        if revert_after_s is not None:
            return super().commit(staged, revert_after_s=revert_after_s)
        words = [self.word(change.ingress, change.after) for change in staged.changes]
        try:
            ask(self.context, " ".join(["join", *words]))
        except Exception:  # noqa: BLE001 - that is what is wrong
            return Receipt(staged, revert_armed=False)
        return Receipt(staged, revert_armed=False)


class TransmitNotReadBack(RightTransponder):
    """Switches the transmitter, whatever becomes of the answer, and does not look whether it followed."""

    def set_transmit(self, enabled):
        try:
            ask(self.context, f"laser {'on' if enabled else 'off'}")
        except UnclearError:
            return


class TransmitForgets(RightTransponder):
    """Remembers what it was told, sends nothing, and gives that for a reading."""

    told = True

    def set_transmit(self, enabled):
        self.told = enabled

    def transmitting(self):
        return self.told


class OpticsMilliwatts(RightTransponder):
    """Gives received power in mW."""

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, rx_power_dbm=10 ** (reading.rx_power_dbm / 10))


class OpticsKelvin(RightTransponder):
    """Gives the module's temperature in Kelvin."""

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, temperature_c=reading.temperature_c + 273.15)


class OpticsDict(RightTransponder):
    """Gives a dictionary for a reading."""

    def read_optics(self):
        return dataclasses.asdict(super().read_optics())

    def transmitting(self):
        return bool(RightTransponder.read_optics(self).transmitting)

    def set_channel(self, frequency_mhz):
        write(self.context, f"channel {frequency_mhz}")

    def set_output_power(self, dbm):
        write(self.context, f"power {dbm}")


class OpticsNoTime(RightTransponder):
    """Stamps its readings with zero."""

    def read_optics(self):
        return dataclasses.replace(super().read_optics(), taken_at=0.0)


class ChannelInTerahertz(RightTransponder):
    """Gives the frequency in THz."""

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, frequency_mhz=reading.frequency_mhz / 1e6)

    def set_channel(self, frequency_mhz):
        write(self.context, f"channel {frequency_mhz}")


class AgesInMilliseconds(RightTransponder):
    """Gives the ages of neighbours in milliseconds."""

    def neighbours(self):
        return tuple(dataclasses.replace(each, age_s=each.age_s * 1000) for each in super().neighbours())


class AgesAreTimes(RightTransponder):
    """Gives the time when a neighbour was heard in place of its age."""

    def neighbours(self):
        return tuple(dataclasses.replace(each, age_s=1.7e9) for each in super().neighbours())


class OldNeighbours(RightTransponder):
    """Gives those neighbours again that it gave last, when the host cannot be asked."""

    last: tuple[Neighbour, ...] = ()

    def neighbours(self):
        try:
            self.last = super().neighbours()
        except DeviceUnreachableError:
            return self.last
        return self.last


class SetsAnyway(RightTransponder):
    """Does not declare tuning, and tunes."""

    capabilities = RightTransponder.capabilities - {Capability.SET_CHANNEL}


class WattsAsText(RightPower):
    """Gives watts as text."""

    def read_power(self):
        reading = super().read_power()
        return dataclasses.replace(reading, watts=f"{reading.watts:.0f} W")


class NegativeWatts(RightPower):
    """Gives what is drawn as a negative number."""

    def read_power(self):
        reading = super().read_power()
        return dataclasses.replace(reading, watts=-reading.watts)


class PowerIsText(RightPower):
    """Says ``"On"`` in place of true."""

    def read_power(self):
        reading = super().read_power()
        return dataclasses.replace(reading, on="On" if reading.on else "Off")

    def set_power(self, on, *, force=False):
        if RightPower.read_power(self).on is not on:
            write(self.context, f"switch {'on' if on else 'off'}")


class OffWhenSilent(RightPower):
    """Says that a machine is off where its controller does not answer."""

    def read_power(self):
        try:
            return super().read_power()
        except DeviceUnreachableError:
            return dataclasses.replace(self.nothing(), on=False)

    def nothing(self):
        from lumctl.devices.types import PowerReading

        return PowerReading(self.context.now(), None)


class OrdersTwice(RightPower):
    """Gives an order again that was lost."""

    def set_power(self, on, *, force=False):
        write(self.context, f"switch {'on' if on else 'off'}")


class PowerLostIsDone(RightPower):
    """Takes a lost answer for a yes."""

    def set_power(self, on, *, force=False):
        try:
            if self.read_power().on is not on:
                ask(self.context, f"switch {'on' if on else 'off'}")
        except UnclearError:
            return
