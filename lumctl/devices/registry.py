"""The drivers of one inventory's devices, each opened on first use."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from lumctl.containment import Culprit, LateError
from lumctl.devices.contained_driver import open_contained
from lumctl.devices.drivers import DriverInfo, culprit, installed, load
from lumctl.devices.endpoints import DeviceEndpoint, Endpoints
from lumctl.devices.errors import DeviceUnreachableError, DriverFaultError, UnsupportedError
from lumctl.devices.gateway.phases import PhaseGateway
from lumctl.devices.gateway.racks import GatedRacks, GatewayMeans
from lumctl.devices.gateway.wire import GatewaySubject
from lumctl.devices.protocols import (
    Driver,
    DriverContext,
    HostShell,
    MeshDriver,
    PowerDriver,
    SwitchDriver,
    TransponderDriver,
)
from lumctl.devices.recorded_calls import recording_name
from lumctl.devices.recording import record
from lumctl.devices.types import Capability, Neighbour, OpticsReading, PucState
from lumctl.devices.ways import Way
from lumctl.errors import UsageError
from lumctl.inventory.model import Device, DeviceKind, Inventory, PartOf, Transponder
from lumctl.inventory.problems import nearest
from lumctl.workers import Workers

T = TypeVar("T")

__all__ = ["DeviceSet", "DriverInfo", "installed", "load"]


@dataclass(slots=True)
class _Opened:
    driver: Driver
    record: dict[int, PucState]


class DeviceSet:
    """Drivers by device id, for one target. Safe to use from several threads.

    ``shell_of`` returns the shell of a host by its name, ``way_of`` the connection path to a device, ``known_states``
    the last proved states (empty if they are uncertain). With ``record_in``, the calls and answers of every driver
    are recorded in that folder (see :mod:`lumctl.devices.recording`).

    A rack with a gateway is driven through its gateway only; ``gateways`` opens the drivers for that.
    """

    def __init__(
        self,
        inventory: Inventory,
        endpoints: Endpoints,
        *,
        shell_of: Callable[[str], HostShell],
        way_of: Callable[[DeviceEndpoint], Way],
        known_states: Callable[[str], Mapping[int, PucState]],
        now: Callable[[], float],
        record_in: Path | None = None,
        gateways: GatewayMeans = GatewayMeans(),  # noqa: B008 - it is frozen
    ) -> None:
        self._record_in = record_in
        self._inventory = inventory
        self._endpoints = endpoints
        self._shell_of = shell_of
        self._way_of = way_of
        self._known_states = known_states
        self._now = now
        self._lock = threading.Lock()
        self._turns: dict[tuple[str, str], threading.Lock] = {}
        self._late: dict[tuple[str, str], LateError] = {}
        self._opened: dict[tuple[str, str], _Opened] = {}
        self._gated = GatedRacks(inventory, endpoints, gateways, self._recorded_of)

    def phases(self, rack: str) -> PhaseGateway:
        """Lights phases of jobs of a rack.

        Raises:
            UnsupportedError: the rack has no gateway.
        """
        if (gateway := self._gated.gateway(rack)) is None:
            raise UnsupportedError(f"rack {rack} has no gateway, and only a gateway changes light between phases")
        return PhaseGateway(gateway)

    def mesh(self, device_id: str) -> MeshDriver:
        """The driver of a mesh.

        The driver of a device that cannot be read back is opened again when the record of the device has changed
        (another process programmed it). So call this at each use and do not store the driver.

        Raises:
            UsageError: no such device.
            DriverFaultError: its driver is not installed, is broken, or is not a mesh driver.
            UnsupportedError: the device has no PUCs.
        """
        device = _named(self._inventory.devices, device_id, "device")
        if device.geometry is None:
            raise UnsupportedError(f"{device.id} is a {device.kind}: it has no PUCs to read or write")
        if (held := self._gated.driver("mesh", device_id)) is not None:
            return held  # type: ignore[return-value]  # it has the calls of a driver of that kind
        key = ("mesh", device_id)
        # Without waiting for a turn, because most calls end here: only devices without read-back need the record.
        opened = self._opened.get(key)
        if opened is not None and Capability.READ_STATES in opened.driver.capabilities:
            return opened.driver  # type: ignore[return-value]  # as below; it needs no record
        record = dict(self._known_states(device_id))
        with self._turn(key):
            # Again, inside the turn: another thread may have opened or replaced it meanwhile.
            opened = self._opened.get(key)
            if opened is not None and _outdated(opened, record):
                self._opened.pop(key).driver.close()
                opened = None
            if opened is None:
                driver = self._open(self._driver_of(device), "mesh", self._context(device, known_states=record))
                opened = self._opened[key] = _Opened(driver, record)
        return opened.driver  # type: ignore[return-value]  # its class was checked to be of kind mesh

    def switch(self, device_id: str) -> SwitchDriver:
        """The driver of a switch.

        Raises:
            UsageError: no such device.
            DriverFaultError: its driver is not installed, is broken, or is not a switch driver.
            UnsupportedError: the device is not a switch.
        """
        device = _named(self._inventory.devices, device_id, "device")
        if device.kind is not DeviceKind.SWITCH:
            raise UnsupportedError(f"{device.id} is a {device.kind}: it has no ports to connect")
        held = self._gated.driver("switch", device_id)
        return held or self._kept(  # type: ignore[return-value]  # its class was checked to be of kind switch
            ("switch", device_id), lambda: self._open(self._driver_of(device), "switch", self._context(device))
        )

    def changing(self, device_id: str) -> MeshDriver | SwitchDriver:
        """The driver of a mesh or a switch; both have the same calls to stage, commit and undo a change."""
        device = _named(self._inventory.devices, device_id, "device")
        return self.switch(device_id) if device.kind is DeviceKind.SWITCH else self.mesh(device_id)

    def power(self, part: PartOf) -> PowerDriver:
        """The driver of one machine's management controller.

        Raises:
            UsageError: no such device.
            DriverFaultError: its driver is not installed, is broken, or is not a power driver.
        """
        device = _named(self._inventory.devices, part.device, "device")
        held = self._gated.driver("power", part.device, part.component)
        return held or self._kept(  # type: ignore[return-value]  # its class was checked to be of kind power
            ("power", f"{part.device}/{part.component}"),
            lambda: self._open(device.driver, "power", self._context(device, component=part.component)),
        )

    def transponder(self, transponder_id: str) -> TransponderDriver:
        """The driver of a transponder; if a chassis manages it, the drivers of the chassis and the host combined.

        Raises:
            UsageError: no such transponder.
            DriverFaultError: its driver is not installed, is broken, or is not a transponder driver.
        """
        transponder = _named(self._inventory.transponders, transponder_id, "transponder")
        held = self._gated.driver("transponder", transponder_id)
        return held or self._kept(  # type: ignore[return-value]  # its class was checked to be of kind transponder
            ("transponder", transponder_id), lambda: self._opened_transponder(transponder)
        )

    @contextmanager
    def _turn(self, key: tuple[str, str]) -> Iterator[None]:
        """Open a driver in one thread at a time. Other devices' drivers can be opened meanwhile, because one may hang.

        Raises:
            DriverFaultError: an earlier attempt to open it has not finished.
        """
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            late = self._late.get(key)
            # It is still being made in a thread that cannot be ended; a second one might disturb it.
            if late is not None and not late.late.done():
                raise DriverFaultError(late.message)
            try:
                yield
            except DriverFaultError as error:
                if isinstance(error.__cause__, LateError):
                    self._late[key] = error.__cause__
                raise

    def _kept(self, key: tuple[str, str], opened: Callable[[], Driver]) -> Driver:
        with self._turn(key):
            if key not in self._opened:
                self._opened[key] = _Opened(opened(), {})
            return self._opened[key].driver

    def _opened_transponder(self, transponder: Transponder) -> Driver:
        at_host = self._open(transponder.driver, "transponder", self._host_context(transponder))
        if transponder.module is None:
            return at_host
        try:
            chassis = _named(self._inventory.devices, transponder.module.device, "device")
            context = self._context(chassis, device=transponder.id, component=transponder.module.component)
            managed = self._open(chassis.driver, "transponder", context)
        except BaseException:
            # Nobody else knows of it, and each later attempt opens another one.
            at_host.close()
            raise
        # Both were checked to be of kind transponder; the type checker does not know what they can do together.
        return Composed(managed, at_host)  # type: ignore[arg-type,return-value]

    def culprit(self, device_id: str) -> Culprit:
        """The driver of a device as error messages show it: its name, and its package with the version.

        Raises:
            UsageError: no such device, or its driver is not installed.
        """
        return culprit(self._driver_of(_named(self._inventory.devices, device_id, "device")))

    def close(self) -> None:
        """Close all opened drivers at the same time; a later call opens a driver again."""
        workers, closing = Workers("close"), []
        # One at a time, because other threads may open drivers meanwhile.
        while self._opened:
            closing.append(workers.submit(self._opened.popitem()[1].driver.close))
        workers.close()
        for closed in closing:
            closed.result()
        self._gated.close()

    def _context(
        self,
        written: Device,
        *,
        device: str = "",
        component: str = "",
        known_states: Mapping[int, PucState] | None = None,
    ) -> DriverContext:
        endpoint = self._answers_at(self._endpoints.devices, written.id)
        return DriverContext(
            device=device or written.id,
            address=endpoint.address,
            way=self._way_of(endpoint),
            login=endpoint.login,
            component=component,
            puc_count=written.geometry.puc_count if written.geometry else 0,
            port_count=written.port_count,
            input_count=written.input_count,
            settle_s=written.settle_ms / 1000,
            timeout_s=written.timeout_s,
            known_states=known_states or {},
            now=self._now,
        )

    def _host_context(self, transponder: Transponder) -> DriverContext:
        return DriverContext(
            device=transponder.id,
            shell=self._shell_of(transponder.host),
            interface=transponder.interface,
            sudo=self._answers_at(self._endpoints.hosts, transponder.host).ssh.sudo,
            now=self._now,
        )

    def _driver_of(self, device: Device) -> str:
        """The name of a device's driver, or of the driver of the generic device that replaces it on this target."""
        endpoint = self._endpoints.devices.get(device.id)
        return (endpoint.stand_in if endpoint else "") or device.driver

    def _answers_at(self, places: Mapping[str, T], name: str) -> T:
        """The endpoint of a host or device on this target; never the rack's address if the simulator has none."""
        if name not in places:
            raise DeviceUnreachableError(f"{name} does not answer on target {self._endpoints.target}")
        return places[name]

    def _open(self, name: str, kind: str, context: DriverContext) -> Driver:
        try:
            driver, named = load(name), culprit(name)
        except UsageError as error:
            raise DriverFaultError(f"{context.device}: {error.message}", hint=error.hint) from error
        if driver.kind != kind:
            raise DriverFaultError(
                f"{context.device} is a {kind}, but its driver {name!r} is for a {driver.kind}",
                hint="to list the installed drivers: lumctl plugin list -o wide",
            )
        return self._recorded(open_contained(driver, context, named), context)

    def _recorded_of(self, opened: Driver, subject: GatewaySubject) -> Driver:
        # Without a login, because only the gateway's process shows the device a secret.
        return self._recorded(opened, DriverContext(device=subject.id, component=subject.component))

    def _recorded(self, opened: Driver, context: DriverContext) -> Driver:
        if self._record_in is None:
            return opened
        path = self._record_in / recording_name(opened.kind, context)
        return record(opened, path, device=context.device, login=context.login)


def _outdated(held: _Opened, record: dict[int, PucState]) -> bool:
    """Whether a driver that relies on the record was opened with another record.

    An empty record means that a run is writing the device now, or left it uncertain. The driver is then not outdated:
    it knows what it has written since it was opened, and an undo needs that.
    """
    return bool(record) and held.record != record


def _named(known: Mapping[str, T], name: str, what: str) -> T:
    if name in known:
        return known[name]
    near = nearest(name, known)
    raise UsageError(f"the inventory has no {what} {name!r}", hint=f"did you mean {near}?" if near else None)


class Composed:
    """Two drivers of one transponder: the chassis is asked about light, the host about neighbours and announcements.

    If one of them does not declare a capability, the other is used.
    """

    api_version: ClassVar[int] = 1
    kind: ClassVar[str] = "transponder"

    def __init__(self, chassis: TransponderDriver, host: TransponderDriver) -> None:
        self._chassis = chassis
        self._host = host
        self.capabilities = chassis.capabilities | host.capabilities
        self.proven = f"{chassis.proven}; its host: {host.proven}"

    def read_optics(self) -> OpticsReading:
        """The module's readings."""
        return self._of(Capability.READ_OPTICS).read_optics()

    def set_transmit(self, enabled: bool) -> None:
        """Switch the transmitter."""
        self._of(Capability.SET_TRANSMIT).set_transmit(enabled)

    def transmitting(self) -> bool:
        """Whether the transmitter is on."""
        return self._of(Capability.SET_TRANSMIT).transmitting()

    def set_channel(self, frequency_mhz: int) -> None:
        """Tune the transmitter."""
        self._of(Capability.SET_CHANNEL).set_channel(frequency_mhz)

    def set_output_power(self, dbm: float) -> None:
        """Set the transmit power."""
        self._of(Capability.SET_OUTPUT_POWER).set_output_power(dbm)

    def announce(self, mark: str) -> None:
        """Make the host announce itself."""
        self._hearing.announce(mark)

    def neighbours(self) -> tuple[Neighbour, ...]:
        """The neighbours that the receiver hears."""
        return self._hearing.neighbours()

    def close(self) -> None:
        """Close both."""
        self._chassis.close()
        self._host.close()

    @property
    def _hearing(self) -> TransponderDriver:
        return self._host if Capability.READ_NEIGHBOURS in self._host.capabilities else self._chassis

    def _of(self, capability: Capability) -> TransponderDriver:
        return self._chassis if capability in self._chassis.capabilities else self._host
