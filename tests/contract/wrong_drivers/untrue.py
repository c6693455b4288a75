"""Drivers that report something plausible that is not so: only who knows the device's truth can tell."""

# ruff: noqa: ARG002 - what is wrong with them

import dataclasses
import math

from lumctl.devices.joins import ports_of
from lumctl.devices.types import Progress
from wrong_drivers.right import (
    LateMesh,
    PortSwitch,
    RightMesh,
    RightPower,
    RightSwitch,
    RightTransponder,
    write,
)


class Fahrenheit(RightMesh):
    """Gives its temperature in degrees Fahrenheit."""

    def read_temperature(self):
        return super().read_temperature() * 1.8 + 32


class RemembersTemperature(RightMesh):
    """Reads its temperature once."""

    last = None

    def read_temperature(self):
        if self.last is None:
            self.last = super().read_temperature()
        return self.last


class NextPowers(RightMesh):
    """Gives for each port the power of the next one."""

    def read_powers(self, ports):
        return dict(zip(ports, super().read_powers(tuple(port + 1 for port in ports)).values(), strict=True))


class SwitchNextPowers(RightSwitch):
    """Gives for each port the power of the one before."""

    def read_powers(self, ports):
        count = self.context.port_count
        before = super().read_powers(tuple((port - 1) % count for port in ports))
        return {port: before[(port - 1) % count] for port in ports}


class SwitchMilliwattsOfLight(RightSwitch):
    """Gives powers in mW, and no light as the contract has it."""

    def read_powers(self, ports):
        powers = super().read_powers(ports)
        return {port: 10 ** (dbm / 10) if dbm > -math.inf else dbm for port, dbm in powers.items()}


class NeverInProgress(LateMesh):
    """Does not ask whether its device still works on a change."""

    def read_progress(self):
        return super().read_progress() and None


class AlwaysInProgress(LateMesh):
    """Takes an idle device for one at work."""

    def read_progress(self):
        return super().read_progress() or Progress()


class NoAlarms(RightMesh):
    """Reads the alarms and drops them."""

    def read_alarms(self):
        return super().read_alarms()[:0]


class _Alarms:
    """Changes each alarm."""

    def read_alarms(self):
        return tuple(map(self.changed, super().read_alarms()))


class AlarmsFromOne(_Alarms, RightMesh):
    """Gives port numbers in alarms as the front panel does."""

    def changed(self, alarm):
        kind, _, number = alarm.source.partition("/")
        return dataclasses.replace(alarm, source=f"{kind}/{int(number) + 1}" if kind == "port" else alarm.source)


class AlarmsSinceNow(_Alarms, RightMesh):
    """Gives the time of the reading in place of the alarm's."""

    def changed(self, alarm):
        return dataclasses.replace(alarm, since=self.context.now())


class AlarmsSinceEver(_Alarms, RightSwitch):
    """Gives the same time for each alarm."""

    def changed(self, alarm):
        return dataclasses.replace(alarm, since=1.0)


class AlarmsAreWarnings(_Alarms, RightSwitch):
    """Gives the same severity for each alarm."""

    def changed(self, alarm):
        return dataclasses.replace(alarm, severity="warning")


class AlarmsStay(RightSwitch):
    """Gives alarms that have ended."""

    ever = ()

    def read_alarms(self):
        now = super().read_alarms()
        self.ever += tuple(alarm for alarm in now if alarm not in self.ever)
        return self.ever


class LabelForgets(PortSwitch):
    """Remembers labels, sends nothing, and gives them for a reading."""

    def __init__(self, context):
        super().__init__(context)
        self.labels = {}

    def read_ports(self):
        ports = super().read_ports()
        return {port: dataclasses.replace(at, label=self.labels.get(port, at.label)) for port, at in ports.items()}

    def set_label(self, port, label):
        ports_of(self.context).require((port,))
        self.labels[port] = label


class NextPort(PortSwitch):
    """Switches and reads the port beside."""

    def beside(self, port):
        return (port + 1) % self.context.port_count

    def read_ports(self):
        ports = super().read_ports()
        return {port: dataclasses.replace(at, enabled=ports[self.beside(port)].enabled) for port, at in ports.items()}

    def set_port(self, port, enabled):
        ports_of(self.context).require((port,))
        super().set_port(self.beside(port), enabled)


class OpticsFahrenheit(RightTransponder):
    """Gives the module's temperature in degrees Fahrenheit."""

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, temperature_c=reading.temperature_c * 1.8 + 32)


class SentMilliwatts(RightTransponder):
    """Gives the power that it sends in mW."""

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, tx_power_dbm=10 ** (reading.tx_power_dbm / 10))


class OtherLane(RightTransponder):
    """Reads the received power of another lane."""

    def read_optics(self):
        return dataclasses.replace(super().read_optics(), rx_power_dbm=self.of("optics 2").rx_power_dbm)


class TunesOtherLane(RightTransponder):
    """Sets and reads the channel of another lane."""

    def read_optics(self):
        return dataclasses.replace(super().read_optics(), frequency_mhz=self.of("optics 2").frequency_mhz)

    def set_channel(self, frequency_mhz):
        self.set(f"channel {frequency_mhz} 2", lambda: self.read_optics().frequency_mhz == frequency_mhz)


class ChannelForgets(RightTransponder):
    """Remembers the channel, sends nothing, and gives that for a reading."""

    channel = None

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, frequency_mhz=self.channel or reading.frequency_mhz)

    def set_channel(self, frequency_mhz):
        self.channel = frequency_mhz


class ChannelRemembers(RightTransponder):
    """Sends the channel, and gives what was sent last for a reading."""

    channel = None

    def read_optics(self):
        reading = super().read_optics()
        return dataclasses.replace(reading, frequency_mhz=self.channel or reading.frequency_mhz)

    def set_channel(self, frequency_mhz):
        self.channel = frequency_mhz
        write(self.context, f"channel {frequency_mhz}")


class PowerSettingDropped(RightTransponder):
    """Accepts an output power and does nothing."""

    def set_output_power(self, dbm):
        self.read_optics()


class Kilowatts(RightPower):
    """Gives what is drawn in kW."""

    def read_power(self):
        reading = super().read_power()
        return dataclasses.replace(reading, watts=reading.watts / 1000)


class RemembersPower(RightPower):
    """Reads the machine once, and again when it has switched it."""

    last = None

    def read_power(self):
        if self.last is None:
            self.last = super().read_power()
        return self.last

    def set_power(self, on, *, force=False):
        self.last = None
        super().set_power(on, force=force)
        self.last = None


class WrongOutlet(RightPower):
    """Reads and switches the next outlet."""

    outlet = "2"


class BothOutlets(RightPower):
    """Switches the next outlet with its own."""

    def set_power(self, on, *, force=False):
        if self.read_power().on is not on:
            write(self.context, f"switch {'on' if on else 'off'} 2")
        super().set_power(on, force=force)
