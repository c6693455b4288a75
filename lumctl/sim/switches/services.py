"""What stands for the switches of a world: the twin of the protocol that each one's driver speaks."""

from collections.abc import Callable
from functools import partial

import paramiko

from lumctl.inventory.model import Device, DeviceKind
from lumctl.sim import keys
from lumctl.sim.netconf import NetconfServer
from lumctl.sim.switches.netconf_tree import SwitchTree
from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.world.world import World

SCPI_DRIVER, NETCONF_DRIVER = "polatis-scpi", "polatis-netconf"
"""The drivers whose switches are served so."""

SwitchService = ScpiSwitch | NetconfServer


def switch_services(
    world: World, *, client_key: paramiko.PKey, pause: Callable[[float], object]
) -> dict[str, SwitchService]:
    """The services of all switches whose protocol is known here, by device; none listens yet."""
    found: dict[str, SwitchService] = {}
    for device in world.inventory.devices.values():
        if device.kind is DeviceKind.SWITCH and device.driver == SCPI_DRIVER:
            found[device.id] = _scpi(world, device, pause)
        elif device.kind is DeviceKind.SWITCH and device.driver == NETCONF_DRIVER:
            found[device.id] = _netconf(world, device, client_key)
    return found


def _scpi(world: World, device: Device, pause: Callable[[float], object]) -> ScpiSwitch:
    return ScpiSwitch(
        partial(world.switches.held, device.id),
        powers=partial(world.switches.powers, device.id),
        name=device.id,
        conduct=partial(world.misbehaviour, device.id),
        wait=pause,
    )


def _netconf(world: World, device: Device, client_key: paramiko.PKey) -> NetconfServer:
    conduct = partial(world.misbehaviour, device.id)
    tree = SwitchTree(
        partial(world.switches.held, device.id),
        powers=partial(world.switches.powers, device.id),
        alarms=partial(world.switches.alarms, device.id),
        name=device.id,
        conduct=conduct,
    )
    return NetconfServer(
        device.id,
        tree,
        key=keys.loaded(keys.new_private_key()),
        client_key=client_key,
        conduct=conduct,
        operations=tree.operations,
    )
