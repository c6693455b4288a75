"""The machines of one power controller of a world, as its twin and the control socket show and switch them."""

from collections.abc import Callable, Mapping
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.errors import UsageError
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.world import World

Request = Mapping[str, Any]
Answer = dict[str, Any]

_ONLY = "1"
"""The controller's name for its machine if the inventory states none."""


class Machines:
    """The hosts of a controller, by the controller's names. ``repowered`` is called with a host that was switched."""

    def __init__(self, world: World, device: str, repowered: Callable[[str], None]) -> None:
        self._world = world
        self._device = device
        self._repowered = repowered
        self._hosts = {
            host.power.component or _ONLY: host.name
            for host in world.inventory.hosts.values()
            if host.power is not None and host.power.device == device
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The controller's names for its machines."""
        return tuple(self._hosts)

    def conduct(self) -> Misbehaviour:
        """How the controller misbehaves now."""
        return self._world.misbehaviour(self._device)

    def named(self, component: str) -> str:
        """The name of a machine, checked; an empty name means the only machine.

        Raises:
            DeviceRefusedError: no machine has that name, or the name is empty and there are several machines.
        """
        if component in self._hosts:
            return component
        if not component and len(self._hosts) == 1:
            return self.names[0]
        found = f"no machine {component!r}" if component else f"{len(self._hosts)} machines"
        raise DeviceRefusedError(f"{self._device} has {found}", hint=f"it has: {', '.join(self._hosts) or 'none'}")

    def is_on(self, name: str) -> bool:
        """Whether a machine is on."""
        return self._world.is_on(self._hosts[name])

    def watts(self, name: str) -> float:
        """The power that a machine draws, in W."""
        return self._world.host_watts(self._hosts[name])

    def switch(self, name: str, *, on: bool) -> None:
        """Switch a machine, as far as the controller's faults allow.

        Raises:
            DeviceRefusedError: a fault makes the controller refuse.
        """
        self._act(name, lambda host: self._world.switch_host(host, on=on))

    def restart(self, name: str) -> None:
        """Restart a machine.

        Raises: as :meth:`switch`, and DeviceRefusedError if the machine is off.
        """
        if not self.is_on(name):
            raise DeviceRefusedError(f"{self._device}: {name} is off: there is nothing to restart")
        self._act(name, self._world.restart_host)

    def _act(self, name: str, act: Callable[[str], None]) -> None:
        conduct = self.conduct()
        for host in conduct.taken([self._hosts[name]]):
            act(host)
            self._repowered(host)
        if conduct.says_no:
            raise DeviceRefusedError(f"{self._device}: {conduct.complaint}")


def machines_of(world: World, inventory: Inventory, repowered: Callable[[str], None]) -> dict[str, Machines]:
    """The machines of every power controller, by device id."""
    controllers = [device.id for device in inventory.devices.values() if device.kind is DeviceKind.POWER]
    return {device: Machines(world, device, repowered) for device in controllers}


def power_requests(every: Mapping[str, Machines]) -> dict[str, Callable[[Request], Answer]]:
    """The control socket's requests about power. ``device`` is a controller, ``component`` its name for a machine."""
    return {
        "power-read": lambda r: _read(*_meant(every, r)),
        "power-switch": lambda r: _switched(*_meant(every, r), on=bool(r["on"])),
        "power-reset": lambda r: _restarted(*_meant(every, r)),
    }


def _meant(every: Mapping[str, Machines], request: Request) -> tuple[Machines, str]:
    device = str(request["device"])
    if device not in every:
        raise UsageError(f"the simulator has no power controller {device!r}")
    machines = every[device]
    if machines.conduct().down:
        raise DeviceUnreachableError(f"{device} does not answer (it is down)")
    return machines, machines.named(str(request.get("component", "")))


def _read(machines: Machines, name: str) -> Answer:
    return {"name": name, "on": machines.is_on(name), "watts": machines.watts(name)}


def _switched(machines: Machines, name: str, *, on: bool) -> Answer:
    if machines.is_on(name) is not on:
        machines.switch(name, on=on)
    return {}


def _restarted(machines: Machines, name: str) -> Answer:
    machines.restart(name)
    return {}
