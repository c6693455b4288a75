"""The transmitters that are not as the record wants: those of placed ranks are lit, those of replaced ones dark."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lumctl.change.concurrency import all_of
from lumctl.change.live_paths import hear
from lumctl.devices.errors import DeviceError
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of
from lumctl.site import Site
from lumctl.site.observation import current_role


@dataclass(frozen=True, slots=True)
class Switching:
    """Transmitters to be switched so that they are as the record wants."""

    light: tuple[str, ...] = ()
    darken: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What is to be done, in words."""
        words = [f"light the transmitter of {lane}: a placed rank needs it" for lane in self.light]
        return words + [f"darken the transmitter of {lane}: its accelerator was replaced" for lane in self.darken]

    def without(self, lanes: Collection[str]) -> "Switching":
        """The same but for some transponders."""
        return Switching(*(tuple(lane for lane in some if lane not in lanes) for some in (self.light, self.darken)))


NOTHING_TO_SWITCH = Switching()
MOST_READS = 8
"""Reads side by side: a host takes no more commands at once over one connection."""


def switching_for(site: Site, rack: str, placed: Assignment) -> Switching:
    """What has to be switched in a rack where the jobs run as ``placed``; hosts that do not answer are left out."""
    devices = {device.id for device in site.inventory.light_devices if device.rack == rack}
    circuits = [circuit for circuit in circuits_of(site.inventory, placed) if circuit.device in devices]
    heard = hear(site, sorted(devices), circuits)
    dark = dark_transmitters(site, circuits, heard)
    return Switching(tuple(dark), tuple(idle_transmitters(site, rack, placed, circuits)))


def transmitting(site: Site, lanes: Iterable[str]) -> dict[str, bool]:
    """Whether transmitters are on, by transponder; those that cannot be asked now are left out."""
    found: dict[str, bool] = {}

    def ask(lane: str) -> None:
        with suppress(DeviceError):
            found[lane] = site.devices.transponder(lane).transmitting()

    all_of([partial(ask, lane) for lane in dict.fromkeys(lanes)], most=MOST_READS)
    return found


def dark_transmitters(site: Site, circuits: Iterable[Circuit], heard: Mapping[str, str]) -> list[str]:
    """The transmitters of some circuits that are off; whom a receiver hears need not be asked."""
    needed = dict.fromkeys(transmitter for circuit in circuits for _, transmitter in circuit.receivers)
    shines = transmitting(site, needed.keys() - set(heard.values()))
    return [lane for lane in needed if shines.get(lane) is False]


def idle_transmitters(site: Site, rack: str, placed: Assignment, circuits: Iterable[Circuit] = ()) -> list[str]:
    """The transmitters that are on although their accelerator was replaced in its job; none that a circuit needs."""
    needed = {transmitter for circuit in circuits for _, transmitter in circuit.receivers}
    replaced = _replaced(site, rack, placed)
    lanes = [t.id for t in site.inventory.transponders.values() if t.accelerator in replaced and t.id not in needed]
    shines = transmitting(site, lanes)
    return [lane for lane in lanes if shines.get(lane)]


def _replaced(site: Site, rack: str, placed: Assignment) -> Collection[str]:
    here = [a for a in site.inventory.accelerators.values() if a.rack == rack]
    return {a.id for a in here if current_role(site.inventory, placed, a.id) is Role.DISABLED}
