"""The twin of a chassis with transponders, as OpenConfig models it; its NETCONF server uses this."""

from collections.abc import Mapping
from functools import partial
from xml.etree.ElementTree import Element

import paramiko

from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.sim import ssh
from lumctl.sim.chassis import tree
from lumctl.sim.netconf import Keys, NetconfServer, RpcError
from lumctl.sim.world.links import CHANNELS_MHZ, POWERS_DBM
from lumctl.sim.world.world import World

DRIVER = "openconfig"
"""The driver whose chassis are served."""


def chassis_services(world: World, *, client_key: paramiko.PKey) -> dict[str, NetconfServer]:
    """A server for each chassis of this driver, by device id; they are not open yet."""
    return {
        device.id: NetconfServer(
            device.id,
            Chassis(world, modules_of(world.inventory, device.id)),
            key=ssh.loaded(ssh.new_private_key()),
            client_key=client_key,
            conduct=partial(world.misbehaviour, device.id),
        )
        for device in world.inventory.devices.values()
        if device.kind is DeviceKind.CHASSIS and device.driver == DRIVER
    }


def modules_of(inventory: Inventory, device: str) -> dict[str, str]:
    """The transponders of a chassis, by the component that holds each."""
    return {
        transponder.module.component: transponder.id
        for transponder in inventory.transponders.values()
        if transponder.module is not None and transponder.module.device == device
    }


class Chassis:
    """One chassis of a world. ``modules`` are its transponders by the names of their optical channels.

    Each optical channel uses lane 0 of the transceiver in its line port, and carries one logical channel; these are
    numbered from 1. The light is off if any of ``tx-laser``, ``enabled`` and ``admin-state`` is off.
    """

    keys: Keys = tree.KEYS

    def __init__(self, world: World, modules: Mapping[str, str]) -> None:
        self._world = world
        self._modules = dict(modules)
        self._names = {
            name: number for number, channel in enumerate(self._modules, 1) for name in tree.parts(channel, number)
        }

    def initial(self) -> Element:
        """The configuration of every component, as its module is now in the world."""
        return tree.joined(
            tree.configured(name, number, self._world.module(transponder))
            for number, (name, transponder) in enumerate(self._modules.items(), 1)
        )

    def check(self, config: Element) -> None:
        """Check that the components exist and the values are within the modules' ranges.

        Raises:
            RpcError: a component does not exist, or a value is out of range.
        """
        for name in tree.component_names(config):
            if name not in self._names:
                path = f"/components/component[name='{name}']"
                raise RpcError("invalid-value", f"the chassis has no component {name!r}", path=path)
        for number, name in enumerate(self._modules, 1):
            self._check(tree.settings(config, name, number))

    def apply(self, config: Element) -> None:
        """Configure the modules whose settings have changed."""
        for number, (name, transponder) in enumerate(self._modules.items(), 1):
            wanted = tree.settings(config, name, number)
            view = self._world.module(transponder)
            # Only what differs is set, because the world counts each setting as a write.
            on = (wanted.laser.text, wanted.enabled.text, wanted.admin.text) == ("true", "true", "ENABLED")
            if on is not view.laser_on:
                self._world.set_laser(transponder, on=on)
            frequency, power = wanted.frequency.text, wanted.power.text
            if frequency is not None and int(frequency) != view.frequency_mhz:
                self._world.set_channel(transponder, int(frequency))
            if power is not None and float(power) != view.target_power_dbm:
                self._world.set_output_power(transponder, float(power))

    def state(self) -> Element:
        """The present state of the modules."""
        return tree.joined(
            tree.shown(name, number, self._world.module(transponder))
            for number, (name, transponder) in enumerate(self._modules.items(), 1)
        )

    @staticmethod
    def _check(wanted: tree.Settings) -> None:
        for word, allowed in (
            (wanted.laser, ("true", "false")),
            (wanted.enabled, ("true", "false")),
            (wanted.admin, ("ENABLED", "DISABLED", "MAINT")),
        ):
            if word.text is not None and word.text not in allowed:
                raise RpcError("invalid-value", f"{word.text!r} is not one of {', '.join(allowed)}", path=word.path)
        for number, kind, (least, most) in (
            (wanted.frequency, int, CHANNELS_MHZ),
            (wanted.power, float, POWERS_DBM),
        ):
            try:
                reached = number.text is None or least <= kind(number.text) <= most
            except ValueError:
                reached = False
            if not reached:
                raise RpcError("invalid-value", f"{number.text!r} is outside {least} to {most}", path=number.path)
