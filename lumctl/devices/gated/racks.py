"""The drivers of those racks of an inventory that have a gateway."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lumctl.devices.endpoints import Endpoints, GatewayEndpoint
from lumctl.devices.gated.client import Gateway
from lumctl.devices.gated.proxy import gated
from lumctl.devices.gated.subject import Subject, rack_of, written
from lumctl.devices.protocols import Driver
from lumctl.devices.ways import Stream
from lumctl.inventory.model import Inventory
from lumctl.json_lines import connect

Dial = Callable[[GatewayEndpoint, float], Stream]
"""Connects to a gateway within so many seconds, or raises ``OSError``."""


def _dial(endpoint: GatewayEndpoint, within_s: float) -> Stream:
    """Connect to a gateway of this machine."""
    return connect(endpoint.path, within_s)


@dataclass(frozen=True, slots=True)
class Means:
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
        means: Means,
        recorded: Callable[[Driver, Subject], Driver],
    ) -> None:
        self._inventory = inventory
        self._fence_of = means.fence_of
        self._recorded = recorded
        self._gateways = {
            rack: Gateway(rack, endpoints.target, where.place, partial(means.dial, where))
            for rack, where in endpoints.gateways.items()
        }
        self._lock = threading.Lock()
        self._opened: dict[Subject, Driver] = {}

    def driver(self, kind: str, name: str, component: str = "") -> Driver | None:
        """The driver of a subject; ``None`` where its rack has no gateway, and it is driven from here.

        Raises:
            GatewayUnreachableError: the gateway does not answer: nobody else may write to the device.
            WrongGatewayError: it is another one's, or its inventory says otherwise of the device.
        """
        if not self._gateways:
            return None
        subject = Subject(kind, name, component)
        rack = rack_of(self._inventory, subject)
        gateway = self._gateways.get(rack)
        if gateway is None:
            return None
        with self._lock:
            known = self._opened.get(subject)
        if known is None:
            said = written(self._inventory, subject)
            known = self._recorded(gated(gateway, subject, said, partial(self._fence_of, rack)), subject)
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
