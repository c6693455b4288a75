"""Meshes and switches: what they complain of, how warm they are, and the light at their ports."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import Numbers, filled, gauge
from lumctl.daemon.families.readable import Readable
from lumctl.health.rulebook import rulebook
from lumctl.health.rules.device import is_plausible_c, is_plausible_dbm, severity_of


def devices(readable: Readable) -> Iterator[Metric]:
    """What devices say of themselves, as far as it is new and can be true."""
    said = readable.devices
    text = "Alarms of a mesh or a switch, by severity: its own word as lumctl health rules understand it."
    alarms = gauge("device_alarms", text, ["id", "severity"])
    severities = [line.case for line in rulebook().lines("device.alarm")]
    powers = gauge("device_port_power_dbm", "Light at a port of a mesh or a switch; -Inf is no light.", ["id", "port"])
    for name, reading in said.items():
        if reading.alarms is not None:
            counted = Counter(map(severity_of, reading.alarms))
            for severity in severities:
                alarms.add_metric([readable.target, name, severity], counted[severity])
        for port, dbm in (reading.powers_dbm or {}).items():
            if is_plausible_dbm(dbm):
                powers.add_metric([readable.target, name, str(port)], dbm)
    yield alarms
    warm: Numbers = {
        name: celsius
        for name, reading in said.items()
        if (celsius := reading.temperature_c) is not None and is_plausible_c(celsius)
    }
    yield filled(
        gauge("device_temperature_celsius", "Temperature of a mesh or a switch.", ["id"]), readable.target, warm
    )
    yield powers
