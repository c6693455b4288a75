"""The answers of devices that are read repeatedly, without a long wait for a device that does not answer."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from lumctl.devices.errors import (
    DeviceError,
    DeviceUnreachableError,
    DriverFaultError,
    GatewayUnreachableError,
    OutcomeUnknownError,
    WrongGatewayError,
)
from lumctl.devices.protocols import MeshDriver, SwitchDriver
from lumctl.devices.types import Capability, DeviceReading, Obstacle
from lumctl.fleet.readings import HostSnapshot, Snapshot
from lumctl.health.rulebook import verdict
from lumctl.inventory.model import Inventory
from lumctl.workers import Workers

Said = TypeVar("Said")


class DeviceAnswers(Generic[Said]):
    """Reads devices, each with at most one request at a time, and keeps the newest answer of each.

    ``ask`` returns the answer of a device, or the fact that it did not answer.
    """

    def __init__(self, devices: Iterable[str], ask: Callable[[str], Said]) -> None:
        self._devices = tuple(devices)
        self._ask = ask
        self._workers = Workers("device")
        self._asked: dict[str, Future[Said]] = {}
        self._due: list[Future[Said]] = []
        self._known: dict[str, Said] = {}
        self._begun = 0.0

    def begin(self) -> None:
        """Ask every device that has no request pending."""
        self._begun = time.monotonic()
        # First: a device that has answered since then may be asked again.
        self._take()
        # Only these are waited for: a device that still owes an earlier answer must not delay every observation.
        self._due = [self._begin(device) for device in self._devices if device not in self._asked]

    def _begin(self, device: str) -> Future[Said]:
        asked = self._asked[device] = self._workers.submit(partial(self._ask, device))
        return asked

    def gathered(self, patience_s: float | None) -> dict[str, Said]:
        """The newest answers: of every device, or (with ``patience_s``) of those that answered in time.

        A device whose earlier answer is overdue is not waited for. A device that has never answered is omitted.
        """
        if patience_s is None:
            wait(self._asked.values())
        else:
            wait(self._due, timeout=max(self._begun + patience_s - time.monotonic(), 0.0))
        self._take()
        return dict(self._known)

    def _take(self) -> None:
        """Store the answers that have arrived."""
        for device, asked in list(self._asked.items()):
            if asked.done():
                del self._asked[device]
                self._known[device] = asked.result()

    def close(self) -> None:
        """Read nothing more; a pending request ends at the driver's own time limit."""
        self._workers.close()


WAIT_S = 60.0
"""After this time, in seconds, an observation counts even if some hosts have not answered.

A lost host misses three readings within 20 s, and the time limits of probes and drivers are shorter.
"""


class FirstAnswers:
    """Finds the hosts and devices from which a process still waits for a first answer."""

    def __init__(self, names: Iterable[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        """``names`` are the hosts and the devices that are expected to answer."""
        self._names = dict.fromkeys(names)
        self._monotonic = monotonic
        self._until = monotonic() + WAIT_S

    def outstanding(self, snapshot: Snapshot, devices: Collection[str]) -> tuple[str, ...]:
        """The hosts and devices that have neither answered nor definitely failed to answer.

        ``devices`` are the devices that answered, or whose time limit has passed.
        """
        if self._names and self._monotonic() >= self._until:
            self._names.clear()
        for name in list(self._names):
            host = snapshot.hosts.get(name)
            if name in devices or (host is not None and _is_final(host)):
                del self._names[name]
        return tuple(self._names)


def _is_final(host: HostSnapshot) -> bool:
    """Whether every probe of a host has ended, or the host is known not to answer."""
    if host.reachable:
        return not host.awaited
    # As many missed answers as the rules need to call a host unreachable: more waiting changes no verdict.
    return host.host_key_problem or host.attempts >= verdict("host.missed", "missed").limit


T = TypeVar("T")

READ_EVERY_S = 5.0
"""The interval, in seconds, at which repeated observations read more of a device than whether it answers.

The processor of a device is small, and often shared.
"""
BEGIN_WITHIN_S = 5.0
"""After this time, in seconds, no other reading of a device begins.

So a slow device delays an observation by one time limit at most.
"""


class DeviceReader:
    """Reads devices, each in one thread at a time, and remembers the newest reading of each.

    ``driver_of`` opens a driver by the device's id. ``every_s`` is the maximum age of the readings, in seconds; whether
    the device answers is always read.
    """

    def __init__(
        self,
        inventory: Inventory,
        driver_of: Callable[[str], MeshDriver | SwitchDriver],
        now: Callable[[], float],
    ) -> None:
        self._driver_of = driver_of
        self._now = now
        self._ports = {device.id: ports_in_use(inventory, device.id) for device in inventory.light_devices}
        self._newest: dict[str, DeviceReading] = {}
        self.every_s = 0.0

    def __call__(self, device: str) -> DeviceReading:
        """Read one device now; if it does not answer, the reading says so."""
        at, deadline = self._now(), time.monotonic() + BEGIN_WITHIN_S
        try:
            driver = self._driver_of(device)
            driver.identify()
        except DeviceError as error:
            return DeviceReading(at, problem=error.message, obstacle=obstacle_of(error))
        known = self._newest.get(device)
        # A negative age means that the clock was set back; without this check such a reading would not be renewed for
        # long.
        if known is not None and known.read_at is not None and 0 <= at - known.read_at < self.every_s:
            return replace(known, taken_at=at)
        self._newest[device] = reading = read_device(driver, self._ports[device], at, deadline=deadline)
        return reading


def obstacle_of(error: DeviceError) -> Obstacle | None:
    """The component that an error blames instead of the device; ``None`` if it is the device itself."""
    if isinstance(error, GatewayUnreachableError | WrongGatewayError):
        return Obstacle.GATEWAY
    return Obstacle.DRIVER if isinstance(error, DriverFaultError) else None


def read_device(
    driver: MeshDriver | SwitchDriver, ports: Sequence[int], at: float, *, deadline: float = math.inf
) -> DeviceReading:
    """All readings that the device's driver declares; ``powers`` at these ports.

    After one reading without an answer the others are skipped: a device that hangs delays the observation by one time
    limit, not three. Readings are also skipped after ``deadline``, in seconds of the monotonic clock.
    """
    unread: dict[str, str] = {}
    silent: list[str] = []

    def read(name: str, capability: Capability, ask: Callable[[], T]) -> T | None:
        try:
            if capability not in driver.capabilities:  # a driver may have to ask the device for them
                return None
            if silent:
                unread[name] = f"not requested, because its {silent[0]} got no answer"
                return None
            if time.monotonic() > deadline:
                unread[name] = f"not requested, because the device answers too slowly (limit: {BEGIN_WITHIN_S:g} s)"
                return None
            return ask()
        except (DeviceUnreachableError, OutcomeUnknownError) as error:
            silent.append(name)
            unread[name] = error.message
        except DeviceError as error:
            unread[name] = error.message
        return None

    # A method is looked up only if its capability is declared: a driver without it may lack the method.
    alarms = read("alarms", Capability.READ_ALARMS, lambda: driver.read_alarms())  # noqa: PLW0108
    temperature_c = read("temperature", Capability.READ_TEMPERATURE, lambda: driver.read_temperature())  # noqa: PLW0108
    asked = tuple(ports)
    powers = read("powers", Capability.READ_POWERS, lambda: driver.read_powers(asked)) if asked else None
    missing = [port for port in asked if powers is not None and port not in powers]
    if missing:
        unread["powers"] = f"it did not return the requested power at port {missing[0]}"
    return DeviceReading(at, None, at, alarms, temperature_c, powers, unread)


def ports_in_use(inventory: Inventory, device: str) -> tuple[int, ...]:
    """The ports of a device at which a lane's power is measured, in order: a mesh measures only outgoing light."""
    lanes = [lane.lane for lane in inventory.transponders.values() if lane.lane.device == device]
    sending = {lane.tx for lane in lanes} if inventory.devices[device].geometry is None else set()
    return tuple(sorted({lane.rx for lane in lanes} | sending))
