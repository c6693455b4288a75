"""Expected values of a port, a GPU or a host: from the inventory, else from most others of its kind in the rack."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from lumctl.fleet.host_readings import Capacity
from lumctl.health.look import HostLook, Look
from lumctl.health.rulebook import verdict
from lumctl.health.rules.cases import Expected, PortRate, Usual
from lumctl.health.rules.settings import usual_settings
from lumctl.inventory.model import Accelerator, Transponder

if TYPE_CHECKING:
    from lumctl.fleet.readings import GpuReading

_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,2})?) Gb/sec(?: \(([0-9]{1,2})X)?")
_MB_PER_GB = 1000


@dataclass(frozen=True)
class Expectations:
    """The expected values in one observation of a rack. Each majority is computed on first use."""

    look: Look

    def nvlinks(self, accelerator: Accelerator) -> Expected | None:
        """How many NVLinks of an accelerator should be active."""
        if accelerator.nvlinks is not None:
            return Expected(accelerator.nvlinks, "the inventory")
        return self._nvlinks.get((accelerator.rack, accelerator.model))

    def pcie_width(self, accelerator: Accelerator) -> Expected | None:
        """How many lanes the PCIe link of an accelerator should have."""
        return self._pcie_widths.get((accelerator.rack, accelerator.model))

    def settings(self, accelerator: Accelerator, product: str | None) -> Mapping[str, Usual]:
        """The values that most GPUs of a product in the accelerator's rack have, by setting."""
        return self._usual_settings.get((accelerator.rack, product or ""), {})

    def rate(self, transponder: Transponder) -> Expected | None:
        """The expected rate of a port in Gb/s."""
        if transponder.rate_gb_s is not None:
            return Expected(transponder.rate_gb_s, "the inventory")
        return self._rates.get(self._kinds.get(transponder.id))

    @cached_property
    def rates(self) -> Mapping[str, tuple[PortRate, ...]]:
        """The rates of the ports of each transponder; transponders whose host is not read are omitted."""
        return {
            lane.id: found
            for host, lanes in self.look.lanes.items()
            if lanes and (here := self.look.readable(host)) is not None
            for lane in lanes
            if (found := _rates_of(here, lane.interface))
        }

    def rdma_ports(self, host: str) -> Expected | None:
        """How many InfiniBand and RoCE ports a host should have."""
        written = self.look.inventory.hosts[host]
        if written.rdma_ports is not None:
            return Expected(written.rdma_ports, "the inventory")
        return self._rdma_ports.get(self._host_kind(host))

    def memory_gib(self, host: str) -> Expected | None:
        """How much main memory a host should have, in GiB: a median, because kernels reserve different amounts."""
        return self._memory_gib.get(self._host_kind(host))

    def processors(self, host: str) -> Expected | None:
        """How many processors (hardware threads) a host should use."""
        return self._processors.get(self._host_kind(host))

    @cached_property
    def _capacities(self) -> Mapping[str, Capacity]:
        return {
            host: capacity
            for host in self.look.inventory.hosts
            if (here := self.look.readable(host)) is not None
            and (capacity := self.look.fresh("capacity", here.seen.capacity)) is not None
        }

    @cached_property
    def _memory_gib(self) -> Mapping[Hashable, Expected]:
        by_kind: dict[Hashable, list[float]] = {}
        for host, capacity in self._capacities.items():
            kind = self._host_kind(host)
            if kind is not None and capacity.memory_gib is not None:
                by_kind.setdefault(kind, []).append(capacity.memory_gib)
        least = verdict("incident.majority", "alike").limits["least"]
        return {
            kind: Expected(median(sizes), f"the median of {len(sizes)} hosts of its kind in the rack")
            for kind, sizes in by_kind.items()
            if len(sizes) >= least
        }

    @cached_property
    def _processors(self) -> Mapping[Hashable, Expected]:
        return _majorities(
            (self._host_kind(host), capacity.processors)
            for host, capacity in self._capacities.items()
            if capacity.processors is not None
        )

    @cached_property
    def _nvlinks(self) -> Mapping[Hashable, Expected]:
        return _majorities(
            ((a.rack, a.model), [link.active for link in links].count(True))
            for a in self.look.inventory.accelerators.values()
            if (here := self.look.readable(a.host)) is not None
            and (links := here.nvlinks.get(a.id))
            and any(link.active is not None for link in links)
            # A partitioned GPU (MIG) uses no NVLink, which says nothing about the others.
            and not ((gpu := here.gpus.get(a.id)) is not None and gpu.mig_enabled)
        )

    @cached_property
    def _pcie_widths(self) -> Mapping[Hashable, Expected]:
        return _majorities(
            ((a.rack, a.model), gpu.pcie_width)
            for a in self.look.inventory.accelerators.values()
            if (here := self.look.readable(a.host)) is not None
            and (gpu := here.gpus.get(a.id)) is not None
            and gpu.pcie_width
        )

    @cached_property
    def _usual_settings(self) -> Mapping[tuple[str, str], Mapping[str, Usual]]:
        alike: dict[tuple[str, str], list[GpuReading]] = {}
        for host in self.look.collected.values():
            for accelerator in host.accelerators:
                reading = host.gpus.get(accelerator.id)
                if reading is not None and reading.product and not self.look.stale(reading.taken_at):
                    alike.setdefault((accelerator.rack, reading.product), []).append(reading)
        return {kind: usual_settings(readings) for kind, readings in alike.items()}

    @cached_property
    def _rates(self) -> Mapping[Hashable, Expected]:
        used = self.look.in_use
        return _majorities(
            (self._kinds.get(name), rate.gb_s) for name, found in self.rates.items() if name in used for rate in found
        )

    @cached_property
    def _kinds(self) -> Mapping[str, Hashable]:
        return {
            name: self._kind(lane, here)
            for name in self.rates
            if (here := self.look.readable((lane := self.look.inventory.transponders[name]).host)) is not None
        }

    @cached_property
    def _rdma_ports(self) -> Mapping[Hashable, Expected]:
        return _majorities(
            (self._host_kind(host), len(here.seen.infiniband))
            for host in self.look.inventory.hosts
            if (here := self.look.readable(host)) is not None and here.probe_ended_well("infiniband")
        )

    def _kind(self, transponder: Transponder, here: HostLook) -> Hashable:
        """The kind of a port: ports of one kind should be equally fast.

        It is the fabric device at the other end, with the model of the card. A link that no driver serves may lead
        anywhere: its kind is the model of its card or module, and it has none if that is unknown.
        """
        board = next((port.board for port in here.seen.infiniband if port.device == transponder.interface), None)
        rack = self.look.inventory.hosts[transponder.host].rack
        if transponder.driver:
            return (rack, transponder.lane.device, board)
        optics = here.seen.optics.get(transponder.interface)
        part = board or (optics.part if optics is not None else None)
        return (rack, part) if part else None

    def _host_kind(self, host: str) -> Hashable:
        models = tuple(sorted(accelerator.model for accelerator in self.look.accelerators[host]))
        return (self.look.inventory.hosts[host].rack, models) if models else None


def _rates_of(here: HostLook, interface: str) -> tuple[PortRate, ...]:
    """The rates of those ports of an interface or an InfiniBand device that are up."""
    found = here.seen.interfaces.get(interface)
    if found is not None and found.operstate == "up" and found.speed_mbps:
        return (PortRate(found.speed_mbps / _MB_PER_GB),)
    ports = [port for port in here.seen.infiniband if port.device == interface]
    matches = [_RATE.match(port.rate or "") for port in ports if (port.state or "").upper() == "ACTIVE"]
    return tuple(PortRate(float(match[1]), int(match[2]) if match[2] else None) for match in matches if match)


def _majorities(values: Iterable[tuple[Hashable, float]]) -> dict[Hashable, Expected]:
    """The value that most of each kind have; a kind is omitted if too few are known or they differ too much."""
    limits = verdict("incident.majority", "alike").limits
    by_kind: dict[Hashable, Counter[float]] = {}
    for kind, value in values:
        if kind is not None:
            by_kind.setdefault(kind, Counter())[value] += 1
    found: dict[Hashable, Expected] = {}
    for kind, counted in by_kind.items():
        value, alike = counted.most_common(1)[0]
        if alike >= limits["least"] and alike >= limits["share"] * counted.total():
            found[kind] = Expected(value, f"{alike} of {counted.total()} alike in the rack")
    return found
