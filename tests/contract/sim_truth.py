"""What a simulated mesh or switch really measures and raises, as the contract kit takes it."""

import math
from contextlib import contextmanager
from functools import partial

from lumctl.devices.types import Alarm, DeviceReading
from lumctl.sim.client import ask

HOUR_S = 3600


def truths(simulator, device, *, kind, ports):
    """The fields of an UnderTest class that the simulator can fill in; ``ports`` are those whose power is known."""

    def reading():
        dbm = ask(simulator.control, f"{kind}-powers", device=device, ports=ports)["dbm"]
        powers = {int(port): -math.inf if power is None else float(power) for port, power in dbm.items()}
        celsius = ask(simulator.control, f"{kind}-temperature", device=device)["celsius"]
        return DeviceReading(0.0, temperature_c=celsius, powers_dbm=powers)

    return {
        "reading": reading,
        "alarms": [
            partial(_raised, simulator, device, "critical", 1),
            partial(_raised, simulator, device, "minor", 3),
            *([partial(_port_failed, simulator, f"{device}/port/8")] if kind == "switch" else []),
        ],
        "completes_late": partial(_faulty, simulator, device, "slow-commit", HOUR_S),
    }


@contextmanager
def _faulty(simulator, device, fault, value):
    simulator.inject(device, fault, value)
    try:
        yield
    finally:
        simulator.clear(device)


@contextmanager
def _port_failed(simulator, port):
    with _faulty(simulator, port, "dark", None):
        yield Alarm("port 8 has failed", source="port/8")


@contextmanager
def _raised(simulator, device, word, value):
    with _faulty(simulator, device, "alarm", value):
        yield Alarm("power supply 1 has failed", word, "psu/1")
