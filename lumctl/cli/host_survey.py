"""What hosts report before an inventory describes them: GPUs, network interfaces, LLDP neighbours."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumctl.errors import UnreachableError, UsageError
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.parsers.sysfs import is_virtual
from lumctl.fleet.probes import survey_probes
from lumctl.inventory.model import Inventory

if TYPE_CHECKING:
    from lumctl.devices.endpoints import Endpoints
    from lumctl.fleet.readings import GpuReading, HostSnapshot

_DIGITS = re.compile(r"([0-9]+)")
_SAY_IT = "omit --read-hosts and describe the hosts: --gpus, --model, --memory-gib, --interfaces"


@dataclass(frozen=True, slots=True)
class FoundInterface:
    """A network interface; ``neighbours`` are the system and port names that LLDP hears there."""

    name: str
    operstate: str
    speed_mbps: int | None
    pci: str | None
    neighbours: tuple[tuple[str, str], ...]

    def words(self) -> str:
        """Name, state, rate and neighbours, for a comment in the inventory."""
        rate = f", {self.speed_mbps / 1000:g} Gb/s" if self.speed_mbps else ""
        heard = ", ".join(f"{system} {port}" for system, port in self.neighbours)
        return f"{self.name} ({self.operstate}{rate}{f', hears {heard}' if heard else ''})"


@dataclass(frozen=True, slots=True)
class FoundHost:
    """A host with its GPUs in the order of their minor numbers, and its network interfaces in natural order."""

    name: str
    gpus: "tuple[GpuReading, ...]"
    interfaces: tuple[FoundInterface, ...]

    def fabric_interfaces(self, count: int, hosts: Iterable[str]) -> tuple[str, ...]:
        """The ``count`` interfaces that most likely lead to the fabric: first those with an LLDP neighbour in the rack.

        Then come the fastest and those that report no rate, then slower ones. An interface with another neighbour, such
        as a network switch, is excluded.

        Raises:
            UsageError: fewer than ``count`` interfaces remain.
        """
        rack = set(hosts)
        able = [
            each
            for each in self.interfaces
            if not each.neighbours or any(_short(system) in rack or system in rack for system, _ in each.neighbours)
        ]
        fastest = max((each.speed_mbps or 0 for each in able), default=0)
        # An interface that is down reports no rate. Prefer it to a slower port that is up, such as a management port.
        able.sort(key=lambda each: (not each.neighbours, 0 < (each.speed_mbps or 0) < fastest))
        if len(able) < count:
            names = ", ".join(each.name for each in self.interfaces) or "none"
            raise UsageError(
                f"{self.name} needs {count} interfaces to the fabric, two for each GPU, but only {len(able)} of its "
                f"interfaces can lead there (it has: {names})",
                hint="name them: --interfaces eth[2-9]",
            )
        return tuple(sorted((each.name for each in able[:count]), key=_natural))


def survey(inventory: Inventory, endpoints: "Endpoints", *, enrol_hint: str) -> Mapping[str, FoundHost]:
    """Read the hosts of ``endpoints`` over SSH at the same time, without writing to them.

    ``enrol_hint`` is the hint of the error about an unknown host key.

    Raises:
        UnreachableError: a host could not be read, or it shows no GPU.
    """
    sudo = {name: endpoint.ssh.sudo for name, endpoint in endpoints.hosts.items()}
    with Fleet(inventory, endpoints, probes_of=lambda name: survey_probes(sudo=sudo[name])) as fleet:
        snapshot = fleet.collect()
    found: dict[str, FoundHost] = {}
    for name, seen in snapshot.hosts.items():
        _require_read(name, seen, enrol_hint)
        gpus = sorted(seen.gpus, key=lambda gpu: (gpu.minor is None, gpu.minor or 0, gpu.pci))
        found[name] = FoundHost(name, tuple(gpus), _interfaces(seen))
    return found


def _require_read(name: str, seen: "HostSnapshot", enrol_hint: str) -> None:
    if not seen.reachable:
        raise UnreachableError(
            seen.error or f"{name} does not answer",
            hint=enrol_hint if seen.host_key_problem else _SAY_IT,
        )
    if not seen.gpus:
        outcome = seen.probes.get("gpu")
        detail = f": {outcome.detail}" if outcome and outcome.detail else ""
        raise UnreachableError(
            f"{name} shows no GPU{detail}",
            hint=_SAY_IT,
        )


def _interfaces(seen: "HostSnapshot") -> tuple[FoundInterface, ...]:
    cards = seen.adapters.interfaces
    # A host that reports its cards by PCI address needs no guess by name.
    names = [name for name in seen.interfaces if (name in cards if cards else not is_virtual(name))]
    return tuple(
        FoundInterface(
            name,
            seen.interfaces[name].operstate or "unknown",
            seen.interfaces[name].speed_mbps,
            cards.get(name),
            tuple((each.system, each.port) for each in seen.neighbours.get(name, ())),
        )
        for name in sorted(names, key=_natural)
    )


def _short(system: str) -> str:
    return system.partition(".")[0]


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts ``eth10`` after ``eth9``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(name)]
