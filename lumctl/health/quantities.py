"""The quantities of an observation that are stored over time, for each component."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lumctl.devices.types import OpticsReading
from lumctl.fleet.readings import GpuReading
from lumctl.health.identity import match_gpus
from lumctl.health.observation import Observation


class Quantity(NamedTuple):
    """One quantity: its name, its unit (empty: a count), and its field in the reading.

    It is drawn on a scale from ``low`` to ``high``. The scale is the same for all components, so that they can be
    compared. Without ``high`` the scale ends at the component's own limit.
    """

    name: str
    unit: str
    field: str
    high: float | None = None
    low: float = 0.0


_HOTTEST_C = 110.0
ACCELERATOR: tuple[Quantity, ...] = (
    Quantity("temperature", "C", "temperature_c", _HOTTEST_C),
    Quantity("memory temperature", "C", "memory_temperature_c", _HOTTEST_C),
    Quantity("power", "W", "power_w"),
    Quantity("SM clock", "MHz", "sm_clock_mhz"),
    Quantity("memory clock", "MHz", "memory_clock_mhz"),
    Quantity("utilisation", "%", "utilization_percent", 100.0),
    Quantity("memory utilisation", "%", "memory_utilization_percent", 100.0),
    Quantity("memory used", "MiB", "memory_used_mib"),
    Quantity("NVLink sends", "KB/s", "nvlink_tx_kb_s"),
    Quantity("NVLink receives", "KB/s", "nvlink_rx_kb_s"),
    Quantity("PCIe sends", "KB/s", "pcie_tx_kb_s"),
    Quantity("PCIe receives", "KB/s", "pcie_rx_kb_s"),
    Quantity("ECC uncorrectable", "", "ecc_volatile_uncorrectable"),
    Quantity("ECC correctable", "", "ecc_volatile_correctable"),
    Quantity("ECC all time", "", "ecc_aggregate_uncorrectable"),
)
TRANSPONDER: tuple[Quantity, ...] = (
    Quantity("receives", "dBm", "rx_power_dbm", 5.0, -30.0),
    Quantity("sends", "dBm", "tx_power_dbm", 5.0, -30.0),
    Quantity("laser bias", "mA", "bias_ma"),
    Quantity("module temperature", "C", "temperature_c", _HOTTEST_C),
)
QUANTITIES: Mapping[str, Quantity] = {quantity.name: quantity for quantity in (*ACCELERATOR, *TRANSPONDER)}
UNITS: Mapping[str, str] = {name: quantity.unit for name, quantity in QUANTITIES.items()}


class Measured(NamedTuple):
    """The reading of one component, its time (seconds since the epoch), and the quantities that are stored from it."""

    component: str
    rack: str
    at: float
    quantities: tuple[Quantity, ...]
    reading: GpuReading | OpticsReading

    def values(self) -> Iterator[tuple[str, float]]:
        """The numbers that the host reported, by name; no light at all is ``-inf``."""
        for quantity in self.quantities:
            value = getattr(self.reading, quantity.field)
            if value is not None:
                yield quantity.name, value


def measured(look: Observation) -> Iterator[Measured]:
    """Every accelerator and every transponder that has a reading."""
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
