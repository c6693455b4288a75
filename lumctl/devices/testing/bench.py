"""A standalone mesh and switch on a bench: a device's twin gets one of these if there is no simulated rack."""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.joins import Ports, plan
from lumctl.devices.types import Alarm, PortReading, Progress, PucState

TEMPERATURE_C = 31.5


class _DarkDevice:
    """What the mesh and the switch of a bench have in common."""

    _stops = False

    @contextmanager
    def stops_midway(self) -> Iterator[None]:
        """While inside, every change is refused when half of it was made."""
        self._stops = True
        try:
            yield
        finally:
            self._stops = False

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """No light anywhere."""
        return dict.fromkeys(ports, -math.inf)

    def read_temperature(self) -> float:
        """In degrees Celsius."""
        return TEMPERATURE_C

    def read_alarms(self) -> tuple[Alarm, ...]:
        """None."""
        return ()

    def read_progress(self) -> Progress | None:
        """Nothing is ever in progress."""
        return None


class BenchMesh(_DarkDevice):
    """One dark mesh with all PUCs in bar. Inside :meth:`stops_midway` it makes half of a change, then refuses it."""

    def __init__(self, device: str, puc_count: int) -> None:
        self.id = device
        self.puc_count = puc_count
        self._states = dict.fromkeys(range(puc_count), PucState.BAR)
        self._lock = threading.Lock()

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
            taken = list(changes.items())
            self._states.update(taken[: len(taken) // 2] if self._stops else taken)
            if self._stops:
                raise DeviceRefusedError(f"{self.id}: stopped midway")


class BenchSwitch(_DarkDevice):
    """One dark switch without joins. :meth:`stops_midway` is as in :class:`BenchMesh`."""

    def __init__(self, device: str, port_count: int, input_count: int) -> None:
        self.id = device
        self.port_count = port_count
        self.input_count = input_count
        self._ports = {port: PortReading(port, enabled=True) for port in range(port_count)}
        self._joins: dict[int, int] = {}
        self._lock = threading.Lock()

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
            wanted = list(joins.items())
            todo = plan(Ports(self.id, self.port_count, self.input_count), self._joins, dict(wanted))
            if self._stops:
                half = dict(wanted[: len(wanted) // 2])
                todo = plan(Ports(self.id, self.port_count, self.input_count), self._joins, half)
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
