"""The drivers of one inventory's devices, each opened when it is first asked for."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lumctl.devices.drivers import DriverInfo, installed, load
from lumctl.devices.endpoints import Endpoints
from lumctl.devices.errors import DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import Driver, DriverContext, HostShell, MeshDriver, TransponderDriver
from lumctl.devices.types import Capability, PucState
from lumctl.errors import UsageError
from lumctl.inventory.hints import nearest
from lumctl.inventory.model import Device, Inventory, Transponder

T = TypeVar("T")

__all__ = ["DeviceSet", "DriverInfo", "installed", "load"]


@dataclass(slots=True)
class _Opened:
    driver: Driver
    record: dict[int, PucState]


class DeviceSet:
    """Drivers by device id, aimed at one target. Safe to use from several threads.

    ``shell_of`` gives the way to a host by its name; ``known_states`` what a device was last proved to hold, empty
    where that is not certain.
    """

    def __init__(
        self,
        inventory: Inventory,
        endpoints: Endpoints,
        *,
        shell_of: Callable[[str], HostShell],
        known_states: Callable[[str], Mapping[int, PucState]],
        now: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._endpoints = endpoints
        self._shell_of = shell_of
        self._known_states = known_states
        self._now = now
        self._lock = threading.RLock()
        self._opened: dict[tuple[str, str], _Opened] = {}

    def mesh(self, device_id: str) -> MeshDriver:
        """The driver of a mesh.

        A device that cannot be read back is opened anew when the record of it has changed since (another process
        programmed it), so ask for the driver where it is used and do not keep it.

        Raises:
            UsageError: no such device, or its driver is not installed, broken, or no driver of a mesh.
            UnsupportedError: the device has no PUCs.
        """
        device = _named(self._inventory.devices, device_id, "device")
        record = dict(self._known_states(device_id))
        key = ("mesh", device_id)
        with self._lock:
            held = self._opened.get(key)
            if held is not None and _outdated(held, record):
                self._opened.pop(key).driver.close()
                held = None
            if held is None:
                driver = self._open(device.driver, "mesh", self._mesh_context(device, record))
                held = self._opened[key] = _Opened(driver, record)
        return held.driver  # type: ignore[return-value]  # its class was checked to be of kind mesh

    def transponder(self, transponder_id: str) -> TransponderDriver:
        """The driver of a transponder.

        Raises:
            UsageError: no such transponder, or its driver is not installed, broken, or no driver of a transponder.
        """
        transponder = _named(self._inventory.transponders, transponder_id, "transponder")
        key = ("transponder", transponder_id)
        with self._lock:
            held = self._opened.get(key)
            if held is None:
                driver = self._open(transponder.driver, "transponder", self._transponder_context(transponder))
                held = self._opened[key] = _Opened(driver, {})
        return held.driver  # type: ignore[return-value]  # its class was checked to be of kind transponder

    def close(self) -> None:
        """Close every driver that was opened; one asked for later is opened again."""
        with self._lock:
            while self._opened:
                self._opened.popitem()[1].driver.close()

    def _mesh_context(self, device: Device, record: dict[int, PucState]) -> DriverContext:
        if device.geometry is None:
            raise UnsupportedError(f"{device.id} is a {device.kind}: it has no PUCs to read or write")
        return DriverContext(
            device=device.id,
            address=self._answers_at(self._endpoints.devices, device.id),
            puc_count=device.geometry.puc_count,
            port_count=device.geometry.port_count,
            settle_s=device.settle_ms / 1000,
            known_states=record,
            now=self._now,
        )

    def _transponder_context(self, transponder: Transponder) -> DriverContext:
        return DriverContext(
            device=transponder.id,
            shell=self._shell_of(transponder.host),
            interface=transponder.interface,
            sudo=self._answers_at(self._endpoints.hosts, transponder.host).ssh.sudo,
            now=self._now,
        )

    def _answers_at(self, places: Mapping[str, T], name: str) -> T:
        """Where something answers on this target; never the rack's address in place of one the simulator lacks."""
        if name not in places:
            raise DeviceUnreachableError(f"{name} does not answer on target {self._endpoints.target}")
        return places[name]

    @staticmethod
    def _open(name: str, kind: str, context: DriverContext) -> Driver:
        driver = load(name)
        if driver.kind != kind:
            raise UsageError(
                f"{context.device} is a {kind}, and its driver {name!r} drives a {driver.kind}",
                hint="the drivers that are installed: lumctl plugin list -o wide",
            )
        return driver(context)


def _outdated(held: _Opened, record: dict[int, PucState]) -> bool:
    """Whether a driver that goes by the record was opened with another one.

    An empty record means that a run is writing the device now, or left it uncertain: what the driver itself has
    written since it was opened is then the better knowledge, and an undo needs it.
    """
    if Capability.READ_STATES in held.driver.capabilities or not record:
        return False
    return held.record != record


def _named(known: Mapping[str, T], name: str, what: str) -> T:
    if name in known:
        return known[name]
    near = nearest(name, known)
    raise UsageError(f"the inventory has no {what} {name!r}", hint=f"did you mean {near}?" if near else None)
