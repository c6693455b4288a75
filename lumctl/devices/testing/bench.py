"""A standalone mesh and switch on a bench: a device's twin gets one of these if there is no simulated rack."""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.joins import Ports, plan
from lumctl.devices.types import Alarm, PortReading, Progress, PucState

TEMPERATURE_C = 31.5
ALARM = Alarm("fan 2 is slow", "minor", "fan/2", 1_790_000_000.0)
"""The one alarm of a device on a bench."""


class _BenchDevice:
    """What the mesh and the switch of a bench have in common. Each port has a power of its own; port 3 is dark."""

    dark, lit = 3, 2
    _stops = False
    _works = False

    def __init__(self) -> None:
        self._left: dict[int, Any] = {}
        self._lock = threading.RLock()

    @property
    def shown(self) -> Self:
        """What it shows, for those who do not ask by a driver."""
        return self

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While inside, half of a change is made at once, and the rest is in progress."""
        self._works = True
        try:
            yield
        finally:
            with self._lock:
                self._works = False
                left, self._left = self._left, {}
                self.write(left)

    def write(self, changes: Mapping[int, Any]) -> None:
        """Make a change; each kind has its own."""
        raise NotImplementedError

    def _taken(self, changes: Mapping[int, Any]) -> dict[int, Any]:
        """What is made at once of a change; the rest is left, or lost where it stops."""
        if not (self._stops or self._works):
            return dict(changes)
        cells = list(changes.items())
        if self._works:
            self._left |= dict(cells[len(cells) // 2 :])
        return dict(cells[: len(cells) // 2])

    @contextmanager
    def stops_midway(self) -> Iterator[None]:
        """While inside, every change is refused when half of it was made."""
        self._stops = True
        try:
            yield
        finally:
            self._stops = False

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """In dBm."""
        return {port: -math.inf if port == self.dark else -5.0 - port / 4 for port in ports}

    def read_temperature(self) -> float:
        """In degrees Celsius."""
        return TEMPERATURE_C

    def read_alarms(self) -> tuple[Alarm, ...]:
        """One that stays."""
        return (ALARM,)

    def read_progress(self) -> Progress | None:
        """What is left of a change."""
        with self._lock:
            return Progress(0, len(self._left)) if self._left else None


class BenchMesh(_BenchDevice):
    """One mesh with all PUCs in bar. Inside :meth:`stops_midway` it makes half of a change, then refuses it."""

    def __init__(self, device: str, puc_count: int) -> None:
        super().__init__()
        self.id = device
        self.puc_count = puc_count
        self._states = dict.fromkeys(range(puc_count), PucState.BAR)

    def truth(self) -> dict[int, PucState]:
        """The state of each PUC."""
        with self._lock:
            return dict(self._states)

    read_states = truth

    def write(self, changes: Mapping[int, PucState]) -> None:
        """Set PUCs.

        Raises:
            DeviceRefusedError: a PUC does not exist, or the mesh stops midway.
        """
        with self._lock:
            if not changes.keys() <= self._states.keys():
                raise DeviceRefusedError(f"{self.id}: there is no such PUC")
            self._states |= self._taken(changes)
            if self._stops:
                raise DeviceRefusedError(f"{self.id}: stopped midway")


class BenchSwitch(_BenchDevice):
    """One switch without joins. :meth:`stops_midway` is as in :class:`BenchMesh`."""

    def __init__(self, device: str, port_count: int, input_count: int) -> None:
        super().__init__()
        self.id = device
        self.port_count = port_count
        self.input_count = input_count
        self._ports = {port: PortReading(port, enabled=True) for port in range(port_count)}
        self._joins: dict[int, int] = {}

    def truth(self) -> dict[int, int]:
        """Its joins: ingress port -> egress port."""
        with self._lock:
            return dict(self._joins)

    read_circuits = truth

    def write(self, joins: Mapping[int, int | None]) -> None:
        """Join ports.

        Raises:
            DeviceRefusedError: a port is wrong or in use, or the switch stops midway.
        """
        with self._lock:
            ports = Ports(self.id, self.port_count, self.input_count)
            plan(ports, self._joins, joins)  # refused as a whole, before any of it is made
            todo = plan(ports, self._joins, self._taken(joins))
            self._joins = {a: b for a, b in self._joins.items() if (a, b) not in todo.remove} | dict(todo.add)
            if self._stops:
                raise DeviceRefusedError(f"{self.id}: stopped midway")

    def read_ports(self) -> dict[int, PortReading]:
        """Every port."""
        with self._lock:
            return dict(self._ports)

    def set_port(self, port: int, enabled: bool) -> None:
        """Let light through a port or not."""
        with self._lock:
            self._ports[port] = PortReading(port, enabled, label=self._ports[port].label)

    def set_label(self, port: int, label: str) -> None:
        """Name a port."""
        with self._lock:
            self._ports[port] = PortReading(port, self._ports[port].enabled, label=label)
