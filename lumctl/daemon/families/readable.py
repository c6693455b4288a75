"""What of a look can still be believed: hosts that answer, and readings that are not too old."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from lumctl.devices.types import DeviceReading, OpticsReading
from lumctl.fleet.readings import GpuReading, HostSnapshot, InterfaceReading, NvlinkReading, PortCounters
from lumctl.health.matching import match_gpus, match_nvlinks
from lumctl.inventory.model import Transponder
from lumctl.site.observation import Observation


@dataclass(frozen=True)
class Readable:
    """A look at a time, seconds since the epoch."""

    look: Observation
    now: float

    @property
    def target(self) -> str:
        """What was looked at."""
        return self.look.target

    def is_new(self, taken_at: float, *, beyond_s: float = 0.0) -> bool:
        """Whether a reading says something about now; ``beyond_s`` is granted to what is read more rarely."""
        return self.now - taken_at <= self.look.inventory.thresholds.stale_after_s + beyond_s

    @cached_property
    def hosts(self) -> Mapping[str, HostSnapshot]:
        """The hosts that can be reached."""
        return {name: host for name, host in self.look.snapshot.hosts.items() if host.reachable}

    @cached_property
    def devices(self) -> Mapping[str, DeviceReading]:
        """The meshes and switches that answer, and of which more than that was read of late."""
        said = self.look.devices.items()
        return {name: d for name, d in said if d.problem is None and d.read_at is not None and self.is_new(d.read_at)}

    @cached_property
    def _matched(self) -> Mapping[str, Mapping[str, GpuReading]]:
        """The readings of each host's accelerators, however old: they tell who is who."""
        accelerators = self.look.inventory.accelerators_of
        return {name: match_gpus(accelerators(name), host.gpus) for name, host in self.hosts.items()}

    @cached_property
    def gpus(self) -> Mapping[str, GpuReading]:
        """The reading of each accelerator."""
        everything = (found for gpus in self._matched.values() for found in gpus.items())
        return {name: gpu for name, gpu in everything if self.is_new(gpu.taken_at)}

    def matched(self, host: str) -> Mapping[str, GpuReading]:
        """The readings of a host's accelerators, however old."""
        return self._matched[host]

    @cached_property
    def nvlinks(self) -> Mapping[str, tuple[NvlinkReading, ...]]:
        """The NVLinks of each accelerator."""
        return {
            name: links
            for host, seen in self.hosts.items()
            if seen.nvlinks
            for name, links in match_nvlinks(self._matched[host], seen).items()
        }

    def interfaces(self) -> Iterator[tuple[Transponder, InterfaceReading]]:
        """The links whose interface was read."""
        for lane, host in self._lanes():
            interface = host.interfaces.get(lane.interface)
            if interface is not None and self.is_new(interface.taken_at):
                yield lane, interface

    def modules(self) -> Iterator[tuple[Transponder, OpticsReading]]:
        """The links whose module was read."""
        for lane, host in self._lanes():
            module = host.optics.get(lane.interface)
            if module is not None and self.is_new(module.taken_at):
                yield lane, module

    def ports(self) -> Iterator[tuple[Transponder, PortCounters]]:
        """What was counted at each link: at its interface, or at the ports of the InfiniBand device of that name."""
        for lane, host in self._lanes():
            for port in host.counters.values():
                if port.name.partition("/")[0] == lane.interface and self.is_new(port.taken_at):
                    yield lane, port

    def _lanes(self) -> Iterator[tuple[Transponder, HostSnapshot]]:
        for lane in self.look.inventory.transponders.values():
            if lane.host in self.hosts:
                yield lane, self.hosts[lane.host]
