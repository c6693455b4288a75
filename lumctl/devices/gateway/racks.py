"""Drivers of devices behind a rack's gateway: same kind and capabilities, and each call is sent to the gateway."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from lumctl.devices.endpoints import Endpoints, GatewayEndpoint
from lumctl.devices.errors import GatewayUnreachableError, OutcomeUnknownError
from lumctl.devices.gateway.client import Gateway
from lumctl.devices.gateway.wire import GatewaySubject, rack_of, written
from lumctl.devices.protocols import Driver
from lumctl.devices.recorded_calls import WRITES, bound, forwarding
from lumctl.devices.recorded_values import decode, encode
from lumctl.devices.types import Capability
from lumctl.devices.ways import Stream
from lumctl.inventory.model import Inventory
from lumctl.json_lines import connect

Fence = Callable[[], int | None]
"""The number of the lease that writes use now; ``None`` before a run has set one."""


def gateway_driver(gateway: Gateway, subject: GatewaySubject, written: str, fence: Fence) -> Driver:
    """The driver of a subject behind a gateway; the gateway reports its capabilities.

    ``written`` is our inventory's description of the subject; ``fence`` gives the lease number that each call carries.

    Raises:
        GatewayUnreachableError: the gateway does not answer.
        WrongGatewayError: the gateway's inventory describes the subject differently.
    """
    said = gateway.ask({**_address(subject), "call": "describe", "written": written}, about=subject.name)
    # A newer gateway may state capabilities that this version does not know.
    known = {each.value for each in Capability}
    try:
        about = {
            "kind": subject.kind,
            "capabilities": frozenset(Capability(each) for each in said["capabilities"] if each in known),
            "proven": str(said["proven"]),
        }
    except (KeyError, TypeError) as error:
        raise GatewayUnreachableError(
            f"{subject.name}: the gateway does not report the capabilities of its driver"
        ) from error
    calls = forwarding(subject.kind, lambda self, name, args, kwargs: self._ask(name, args, kwargs))
    made: Any = type("GatewayDriver", (_GatewayDriver,), about | calls)
    driver: Driver = made(gateway, subject, fence)
    return driver


class _GatewayDriver:
    """Base of every driver behind a gateway; :func:`gateway_driver` adds the calls of its kind."""

    api_version: ClassVar[int] = 1
    kind: ClassVar[str]

    def __init__(self, gateway: Gateway, subject: GatewaySubject, fence: Fence) -> None:
        self._gateway = gateway
        self._subject = subject
        self._fence = fence

    def close(self) -> None:
        """Do nothing: all drivers of the rack share the connections, and the gateway owns the device's connection."""

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = {key: encode(value) for key, value in bound(self.kind, name, args, kwargs).items()}
        # A read carries the lease number too: after it the gateway refuses writes under an older lease.
        request = {**_address(self._subject), "call": name, "arguments": arguments, "fence": self._fence()}
        writes = name in WRITES
        answer = self._gateway.ask(request, about=self._subject.name, writes=writes)
        try:
            return decode(answer)
        except ValueError as error:
            kind = OutcomeUnknownError if writes else GatewayUnreachableError
            raise kind(f"{self._subject.name}: the gateway's answer cannot be interpreted: {error}") from error


def _address(subject: GatewaySubject) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "component": subject.component}


Dial = Callable[[GatewayEndpoint, float], Stream]
"""Connects to a gateway within a time limit in seconds, or raises ``OSError``."""


def _dial(endpoint: GatewayEndpoint, within_s: float) -> Stream:
    """Connect to a gateway of this machine."""
    return connect(endpoint.path, within_s)


@dataclass(frozen=True, slots=True)
class GatewayMeans:
    """``fence_of`` gives the number of the lease under which a rack is written now; ``dial`` connects to a gateway."""

    fence_of: Callable[[str], int | None] = lambda _rack: None
    dial: Dial = _dial


class GatedRacks:
    """Opens drivers behind gateways and caches them. Safe to use from several threads.

    ``recorded`` wraps each driver that is opened.
    """

    def __init__(
        self,
        inventory: Inventory,
        endpoints: Endpoints,
        means: GatewayMeans,
        recorded: Callable[[Driver, GatewaySubject], Driver],
    ) -> None:
        self._inventory = inventory
        self._fence_of = means.fence_of
        self._recorded = recorded
        self._gateways = {
            rack: Gateway(rack, endpoints.target, where.place, partial(means.dial, where))
            for rack, where in endpoints.gateways.items()
        }
        self._lock = threading.Lock()
        self._opened: dict[GatewaySubject, Driver] = {}

    def driver(self, kind: str, name: str, component: str = "") -> Driver | None:
        """The driver of a subject; ``None`` if its rack has no gateway and this program drives the device itself.

        Raises:
            GatewayUnreachableError: the gateway does not answer; only the gateway may write to the device.
            WrongGatewayError: it is the gateway of another rack, or its inventory describes the device differently.
        """
        if not self._gateways:
            return None
        subject = GatewaySubject(kind, name, component)
        rack = rack_of(self._inventory, subject)
        gateway = self._gateways.get(rack)
        if gateway is None:
            return None
        with self._lock:
            known = self._opened.get(subject)
        if known is None:
            # Without the lock: a gateway that does not answer must not hold up the other racks.
            said = written(self._inventory, subject)
            made = self._recorded(gateway_driver(gateway, subject, said, partial(self._fence_of, rack)), subject)
            with self._lock:
                # Another thread may have opened it meanwhile; all must use the same driver.
                known = self._opened.setdefault(subject, made)
            if known is not made:
                made.close()  # no other code closes its recording
        return known

    def gateway(self, rack: str) -> Gateway | None:
        """The gateway of a rack; ``None`` if it has none."""
        return self._gateways.get(rack)

    def close(self) -> None:
        """Close all connections; a later call opens drivers again."""
        with self._lock:
            opened, self._opened = list(self._opened.values()), {}
        for driver in opened:
            driver.close()
        for gateway in self._gateways.values():
            gateway.close()
