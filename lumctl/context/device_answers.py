"""What devices answer, asked again and again without ever waiting long for one that does not."""

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
        """Ask every device that owes no answer."""
        self._begun = time.monotonic()
        self._take()
        self._due = [self._begin(device) for device in self._devices if device not in self._asked]

    def _begin(self, device: str) -> Future[Said]:
        asked = self._asked[device] = self._workers.submit(partial(self._ask, device))
        return asked

    def gathered(self, patience_s: float | None) -> dict[str, Said]:
        """The newest answers: of every device, or (with ``patience_s``) of those that answered in time.

        There is no wait for a device whose earlier answer is overdue. A device that never answered yet is left out.
        """
        if patience_s is None:
            wait(self._asked.values())
        else:
            wait(self._due, timeout=max(self._begun + patience_s - time.monotonic(), 0.0))
        self._take()
        return dict(self._known)

    def _take(self) -> None:
        """Take the answers that have come."""
        for device, asked in list(self._asked.items()):
            if asked.done():
                del self._asked[device]
                self._known[device] = asked.result()

    def close(self) -> None:
        """Ask nothing more; an answer that is still due ends with the driver's own time limit."""
        self._workers.close()


WAIT_S = 60.0
"""After this time a look counts, even if some hosts have not answered.

A host that is lost misses three times within 20 s, and the time limits of probes and drivers are shorter.
"""


class FirstAnswers:
    """Follows the looks of one process from its first one on."""

    def __init__(self, names: Iterable[str], monotonic: Callable[[], float] = time.monotonic) -> None:
        """``names`` are the hosts and the devices of which answers are expected."""
        self._names = dict.fromkeys(names)
        self._monotonic = monotonic
        self._until = monotonic() + WAIT_S

    def outstanding(self, snapshot: Snapshot, devices: Collection[str]) -> tuple[str, ...]:
        """Those of which nothing final is known: neither an answer, nor that none comes. Each is named until then.

        ``devices`` are those that answered, or whose time is over.
        """
        if self._names and self._monotonic() >= self._until:
            self._names.clear()
        for name in list(self._names):
            host = snapshot.hosts.get(name)
            if name in devices or (host is not None and _is_final(host)):
                del self._names[name]
        return tuple(self._names)


def _is_final(host: HostSnapshot) -> bool:
    """Whether each of its probes has ended in some way, or it is known not to answer."""
    if host.reachable:
        return not host.awaited
    return host.host_key_problem or host.attempts >= verdict("host.missed", "missed").limit


T = TypeVar("T")

READ_EVERY_S = 5.0
"""How often looks in a row read more than whether a device answers: its own processor is small, and often shared."""
BEGIN_WITHIN_S = 5.0
"""After this time no further reading of a device is begun: a slow one holds up a look by one time limit at most."""


class DeviceReader:
    """Reads devices, each in one thread at a time, and remembers the newest reading of each.

    ``driver_of`` opens a driver by the device's id; ``every_s`` is how old all but the answer itself may be.
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
        """One device now; that it does not answer is part of the reading."""
        at, deadline = self._now(), time.monotonic() + BEGIN_WITHIN_S
        try:
            driver = self._driver_of(device)
            driver.identify()
        except DeviceError as error:
            return DeviceReading(at, problem=error.message, obstacle=obstacle_of(error))
        known = self._newest.get(device)
        if known is not None and known.read_at is not None and 0 <= at - known.read_at < self.every_s:
            return replace(known, taken_at=at)
        self._newest[device] = reading = read_device(driver, self._ports[device], at, deadline=deadline)
        return reading


def obstacle_of(error: DeviceError) -> Obstacle | None:
    """What an error shows to be at fault in place of the device; ``None``: the device itself."""
    if isinstance(error, GatewayUnreachableError | WrongGatewayError):
        return Obstacle.GATEWAY
    return Obstacle.DRIVER if isinstance(error, DriverFaultError) else None


def read_device(
    driver: MeshDriver | SwitchDriver, ports: Sequence[int], at: float, *, deadline: float = math.inf
) -> DeviceReading:
    """All readings that the device's driver declares; ``powers`` at these ports.

    After one reading without answer the others are skipped: a device that hangs costs one time limit, not three.
    Readings are also skipped after ``deadline``, in seconds of the monotonic clock.
    """
    unread: dict[str, str] = {}
    silent: list[str] = []

    def read(name: str, capability: Capability, ask: Callable[[], T]) -> T | None:
        try:
            if capability not in driver.capabilities:  # a driver may have to ask the device for them
                return None
            if silent:
                unread[name] = f"not asked, for its {silent[0]} got no answer"
                return None
            if time.monotonic() > deadline:
                unread[name] = f"not asked, for the device answers too slowly (limit: {BEGIN_WITHIN_S:g} s)"
                return None
            return ask()
        except (DeviceUnreachableError, OutcomeUnknownError) as error:
            silent.append(name)
            unread[name] = error.message
        except DeviceError as error:
            unread[name] = error.message
        return None

    # A call is looked up only where its capability is declared.
    alarms = read("alarms", Capability.READ_ALARMS, lambda: driver.read_alarms())  # noqa: PLW0108
    temperature_c = read("temperature", Capability.READ_TEMPERATURE, lambda: driver.read_temperature())  # noqa: PLW0108
    asked = tuple(ports)
    powers = read("powers", Capability.READ_POWERS, lambda: driver.read_powers(asked)) if asked else None
    missing = [port for port in asked if powers is not None and port not in powers]
    if missing:
        unread["powers"] = f"it does not give the power at port {missing[0]}, which was asked for"
    return DeviceReading(at, None, at, alarms, temperature_c, powers, unread)


def ports_in_use(inventory: Inventory, device: str) -> tuple[int, ...]:
    """The ports of a device whose power belongs to a lane, in order: a mesh measures only outgoing light."""
    lanes = [lane.lane for lane in inventory.transponders.values() if lane.lane.device == device]
    sending = {lane.tx for lane in lanes} if inventory.devices[device].geometry is None else set()
    return tuple(sorted({lane.rx for lane in lanes} | sending))
