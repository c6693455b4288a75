"""A simulated optical circuit switch: which ports are connected, which pass light, and their labels."""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping

from lumctl.devices.errors import DeviceRefusedError

Pair = tuple[int, int]
"""An ingress port and the egress port that it is connected to. Ports count from 0."""


class SwitchState:
    """The state of one switch. The first ``input_count`` ports are inputs; if all are, any port may be joined to any.

    A thread that reads or changes the state must do so within ``with state.held()``.
    """

    def __init__(self, port_count: int, input_count: int) -> None:
        self.port_count = port_count
        self.input_count = input_count
        self.joins: dict[int, int] = {}
        self.disabled: set[int] = set()
        self.failed: dict[int, float] = {}
        """Ports that let no light through and are reported as failed, and since when (epoch seconds)."""
        self.labels: dict[int, str] = {}
        self.changing: set[int] = set()
        """Ingress ports whose joins are being made and do not carry light yet."""
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def held(self) -> Iterator["SwitchState"]:
        """Lock the state for the duration of the block."""
        with self._lock:
            yield self

    @property
    def any_to_any(self) -> bool:
        """Whether any port may be connected to any other."""
        return self.input_count == self.port_count

    def partner(self, port: int) -> int | None:
        """The port at the other end of a join, from either end: light passes in both directions."""
        if port in self.joins:
            return self.joins[port]
        return next((ingress for ingress, egress in self.joins.items() if egress == port), None)

    def passes(self, port: int) -> bool:
        """Whether a port lets light through."""
        return port not in self.disabled and port not in self.failed

    def require(self, ports: Iterable[int]) -> None:
        """Check that all these ports exist.

        Raises:
            DeviceRefusedError: a port does not exist.
        """
        missing = [port for port in ports if not 0 <= port < self.port_count]
        if missing:
            raise DeviceRefusedError(f"port {missing[0]} does not exist (valid: 0 to {self.port_count - 1})")

    def part(self, pairs: Iterable[Pair]) -> None:
        """Remove joins; a join that does not exist is ignored.

        Raises:
            DeviceRefusedError: there is no such port; nothing changed.
        """
        pairs = tuple(pairs)
        self.require(port for pair in pairs for port in pair)
        for ingress, egress in pairs:
            for a, b in ((ingress, egress), (egress, ingress)):
                if self.joins.get(a) == b:
                    del self.joins[a]

    def join(self, pairs: Iterable[Pair]) -> None:
        """Make joins; a join that already exists is ignored.

        Raises:
            DeviceRefusedError: a port does not exist, is on the wrong side, or is in use; nothing changed.
        """
        made = dict(self.joins)
        used = {port for pair in self.joins.items() for port in pair}
        for ingress, egress in pairs:
            self.require((ingress, egress))
            if self.partner(ingress) == egress:
                continue
            if not self._of_two_sides(ingress, egress):
                raise DeviceRefusedError(f"port {ingress} cannot be connected to {egress}: both are on the same side")
            if taken := used & {ingress, egress}:
                raise DeviceRefusedError(f"port {min(taken)} is in use")
            made[ingress] = egress
            used |= {ingress, egress}
        self.joins = made

    def set(self, joins: Mapping[int, int | None]) -> None:
        """Join ingress ports to these egress ports as one change; ``None`` parts an ingress port.

        Raises:
            DeviceRefusedError: as :meth:`join`; nothing changed.
        """
        before = dict(self.joins)
        try:
            self.require(joins)
            # All are parted first, so that one change can swap the ports of two joins.
            self.part((port, partner) for port in joins if (partner := self.partner(port)) is not None)
            self.join((ingress, egress) for ingress, egress in joins.items() if egress is not None)
        except DeviceRefusedError:
            self.joins = before
            raise

    def begin(self, before: Mapping[int, int]) -> None:
        """Let the joins made since ``before`` carry no light until :meth:`settle`."""
        self.changing = {ingress for ingress, egress in self.joins.items() if before.get(ingress) != egress}

    def settle(self) -> None:
        """Let the joins that were being made carry light."""
        self.changing.clear()

    def switch(self, ports: Iterable[int], *, on: bool) -> None:
        """Enable or disable light through ports.

        Raises:
            DeviceRefusedError: there is no such port; nothing changed.
        """
        ports = set(ports)
        self.require(ports)
        self.disabled = self.disabled - ports if on else self.disabled | ports

    def _of_two_sides(self, ingress: int, egress: int) -> bool:
        if self.any_to_any:
            return ingress != egress
        return ingress < self.input_count <= egress
