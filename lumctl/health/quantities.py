"""Which numbers of a look are worth keeping over time, and of which component each of them is."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import GpuReading
from lumctl.health.identity import match_gpus
from lumctl.health.observation import Observation


class Quantity(NamedTuple):
    """One quantity: its name, its unit (empty: a count), and its field in the reading."""

    name: str
    unit: str
    field: str


ACCELERATOR: tuple[Quantity, ...] = (
    Quantity("temperature", "C", "temperature_c"),
    Quantity("memory temperature", "C", "memory_temperature_c"),
    Quantity("utilization", "%", "utilization_percent"),
    Quantity("memory used", "MiB", "memory_used_mib"),
    Quantity("power", "W", "power_w"),
    Quantity("ECC uncorrectable", "", "ecc_volatile_uncorrectable"),
    Quantity("ECC correctable", "", "ecc_volatile_correctable"),
    Quantity("ECC all time", "", "ecc_aggregate_uncorrectable"),
)
TRANSPONDER: tuple[Quantity, ...] = (
    Quantity("receives", "dBm", "rx_power_dbm"),
    Quantity("sends", "dBm", "tx_power_dbm"),
    Quantity("laser bias", "mA", "bias_ma"),
    Quantity("module temperature", "C", "temperature_c"),
)
UNITS: Mapping[str, str] = {quantity.name: quantity.unit for quantity in (*ACCELERATOR, *TRANSPONDER)}


class Measured(NamedTuple):
    """What was read of one component, when (seconds since the epoch), and which of it is kept."""

    component: str
    rack: str
    at: float
    quantities: tuple[Quantity, ...]
    reading: GpuReading | OpticsReading

    def values(self) -> Iterator[tuple[str, float]]:
        """The numbers that the host reported, by name; no light at all is ``-inf``."""
        for name, _, field in self.quantities:
            value = getattr(self.reading, field)
            if value is not None:
                yield name, value


def measured(look: Observation) -> Iterator[Measured]:
    """Every accelerator and every transponder of which there is a reading."""
    inventory, hosts = look.inventory, look.snapshot.hosts
    for host, place in inventory.hosts.items():
        if (read := hosts.get(host)) is None or not read.gpus:
            continue
        for accelerator, gpu in match_gpus(inventory.accelerators_of(host), read.gpus).items():
            yield Measured(accelerator, place.rack, gpu.taken_at, ACCELERATOR, gpu)
    for transponder in inventory.transponders.values():
        read = hosts.get(transponder.host)
        optics = read.optics.get(transponder.interface) if read is not None else None
        if optics is not None:
            rack = inventory.hosts[transponder.host].rack
            yield Measured(transponder.id, rack, optics.taken_at, TRANSPONDER, optics)
