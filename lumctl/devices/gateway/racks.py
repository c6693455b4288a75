"""Drivers of devices behind a rack's gateway: same kind and capabilities, and each call is sent to the gateway."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from lumctl.devices.endpoints import Endpoints, GatewayEndpoint
from lumctl.devices.errors import GatewayUnreachableError, OutcomeUnknownError
from lumctl.devices.gateway.client import Gateway
from lumctl.devices.gateway.subject import GatewaySubject, rack_of, written
from lumctl.devices.protocols import Driver
from lumctl.devices.recorded_calls import WRITES, bound, signatures
from lumctl.devices.recorded_values import decode, encode
from lumctl.devices.types import Capability
from lumctl.devices.ways import Stream
from lumctl.inventory.model import Inventory
from lumctl.json_lines import connect

Fence = Callable[[], int | None]
"""The number of the lease that writes use now; ``None`` before a run has set one."""


def gateway_driver(gateway: Gateway, subject: GatewaySubject, written: str, fence: Fence) -> Driver:
    """The driver of a subject behind a gateway, which is asked what it can do.

    ``written`` is what our inventory says of the subject; each call carries the number that ``fence`` gives then.

    Raises:
        GatewayUnreachableError: the gateway does not answer.
        WrongGatewayError: its inventory says otherwise of the subject.
    """
    said = gateway.ask({**_address(subject), "call": "describe", "written": written}, about=subject.name)
    known = {each.value for each in Capability}
    try:
        about = {
            "kind": subject.kind,
            "capabilities": frozenset(Capability(each) for each in said["capabilities"] if each in known),
            "proven": str(said["proven"]),
        }
    except (KeyError, TypeError) as error:
        raise GatewayUnreachableError(f"{subject.name}: the gateway does not say what it can do") from error
    calls = {name: _call(name) for name in signatures(subject.kind)}
    made: Any = type("GatewayDriver", (_GatewayDriver,), about | calls)
    driver: Driver = made(gateway, subject, fence)
    return driver


class _GatewayDriver:
    """Base of every such driver; :func:`gateway_driver` adds the calls of its kind."""

    api_version: ClassVar[int] = 1
    kind: ClassVar[str]

    def __init__(self, gateway: Gateway, subject: GatewaySubject, fence: Fence) -> None:
        self._gateway = gateway
        self._subject = subject
        self._fence = fence

    def close(self) -> None:
        """Do nothing: the connections belong to all drivers of the rack, and the device's to the gateway."""

    def _ask(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = {key: encode(value) for key, value in bound(self.kind, name, args, kwargs).items()}
        # A read carries it too: from then on no older lease begins a write.
        request = {**_address(self._subject), "call": name, "arguments": arguments, "fence": self._fence()}
        writes = name in WRITES
        answer = self._gateway.ask(request, about=self._subject.name, writes=writes)
        try:
            return decode(answer)
        except ValueError as error:
            kind = OutcomeUnknownError if writes else GatewayUnreachableError
            raise kind(f"{self._subject.name}: what its gateway answered is not understood: {error}") from error


def _address(subject: GatewaySubject) -> dict[str, Any]:
    return {"kind": subject.kind, "id": subject.id, "component": subject.component}


def _call(name: str) -> Callable[..., Any]:
    def call(self: _GatewayDriver, *args: Any, **kwargs: Any) -> Any:
        return self._ask(name, args, kwargs)

    return call


Dial = Callable[[GatewayEndpoint, float], Stream]
"""Connects to a gateway within so many seconds, or raises ``OSError``."""


def _dial(endpoint: GatewayEndpoint, within_s: float) -> Stream:
    """Connect to a gateway of this machine."""
    return connect(endpoint.path, within_s)


@dataclass(frozen=True, slots=True)
class GatewayMeans:
    """``fence_of`` gives the number of the lease under which a rack is written now; ``dial`` connects to a gateway."""

    fence_of: Callable[[str], int | None] = lambda _rack: None
    dial: Dial = _dial


class GatedRacks:
    """Opens drivers behind gateways and keeps them. Safe to use from several threads.

    ``recorded`` is what is put around each driver that is opened.
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
        """The driver of a subject; ``None`` where its rack has no gateway, and it is driven from here.

        Raises:
            GatewayUnreachableError: the gateway does not answer: nobody else may write to the device.
            WrongGatewayError: it is another one's, or its inventory says otherwise of the device.
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
            said = written(self._inventory, subject)
            known = self._recorded(gateway_driver(gateway, subject, said, partial(self._fence_of, rack)), subject)
            with self._lock:
                known = self._opened.setdefault(subject, known)
        return known

    def close(self) -> None:
        """Hang up everywhere; a driver asked for later is opened again."""
        with self._lock:
            opened, self._opened = list(self._opened.values()), {}
        for driver in opened:
            driver.close()
        for gateway in self._gateways.values():
            gateway.close()
