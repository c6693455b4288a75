"""A standalone mesh and switch on a bench: a device's twin gets one of these if there is no simulated rack.

Each knows the values with which the contract kit compares the driver: states, readings, alarms and progress.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from lumctl.devices.errors import DeviceRefusedError
from lumctl.devices.joins import Ports, plan
from lumctl.devices.types import Alarm, DeviceReading, PortReading, Progress, PucState

TEMPERATURE_C = 31.5
ALARMS = (("power supply has failed", "critical", "psu/1", 7200), ("monitor drifts", "minor", "port/2", 86_400))
"""Text, severity and source of each alarm, and its age in seconds when it is raised."""


class _BenchDevice:
    """The common part of a bench's mesh and switch."""

    _stops = False

    def __init__(self) -> None:
        self._raised: list[Alarm] = []
        self._is_late = False
        self._pending: Callable[[], None] | None = None
        self._lock = threading.RLock()

    @contextmanager
    def stops_midway(self) -> Iterator[None]:
        """Within the block, make half of every change and then refuse it."""
        self._stops = True
        try:
            yield
        finally:
            self._stops = False

    @contextmanager
    def completes_late(self) -> Iterator[None]:
        """Within the block, answer a change at once; make it when the block ends."""
        self._is_late = True
        try:
            yield
        finally:
            with self._lock:
                self._is_late = False
                pending, self._pending = self._pending, None
                if pending is not None:
                    pending()

    @property
    def alarms(self) -> tuple[Callable[[], AbstractContextManager[Alarm]], ...]:
        """Context managers that raise one alarm each; the alarms differ in severity, source and time."""
        return tuple(partial(self._raises, *alarm) for alarm in ALARMS)

    @contextmanager
    def _raises(self, text: str, severity: str, source: str, age_s: int) -> Iterator[Alarm]:
        alarm = Alarm(text, severity, source, since=int(time.time()) - age_s)
        self._raised.append(alarm)
        try:
            yield alarm
        finally:
            self._raised.remove(alarm)

    def reading(self) -> DeviceReading:
        """The temperature, powers and alarms that the device measures."""
        return DeviceReading(0.0, temperature_c=TEMPERATURE_C, powers_dbm=self.read_powers((0, 1, 2, 3)))

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """A different power at each port, and no light at every fourth port."""
        return {port: -math.inf if port % 4 == 3 else -6.0 - 1.5 * port for port in ports}  # noqa: PLR2004 - the fourth

    def read_temperature(self) -> float:
        """Temperature in degrees Celsius."""
        return TEMPERATURE_C

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The alarms that are raised now."""
        return tuple(self._raised)

    def read_progress(self) -> Progress | None:
        """Whether a change waits for the end of :meth:`completes_late`."""
        return Progress(text="change in progress") if self._pending is not None else None


class BenchMesh(_BenchDevice):
    """One mesh with all PUCs in bar. Within :meth:`stops_midway` it makes half of a change, then refuses it."""

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
            if self._is_late:
                self._pending = partial(self._states.update, dict(changes))
                return
            taken = list(changes.items())
            self._states.update(taken[: len(taken) // 2] if self._stops else taken)
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
            wanted = list(joins.items())
            # The whole change is checked, even if only half of it will be made.
            todo = plan(Ports(self.id, self.port_count, self.input_count), self._joins, dict(wanted))
            if self._stops:
                half = dict(wanted[: len(wanted) // 2])
                todo = plan(Ports(self.id, self.port_count, self.input_count), self._joins, half)
            after = {a: b for a, b in self._joins.items() if (a, b) not in todo.remove} | dict(todo.add)
            if self._is_late:
                self._pending = partial(setattr, self, "_joins", after)
                return
            self._joins = after
            if self._stops:
                raise DeviceRefusedError(f"{self.id}: stopped midway")

    def read_ports(self) -> dict[int, PortReading]:
        """Every port."""
        with self._lock:
            return dict(self._ports)

    ports = read_ports

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable light through a port."""
        with self._lock:
            self._ports[port] = PortReading(port, enabled, label=self._ports[port].label)

    def set_label(self, port: int, label: str) -> None:
        """Name a port."""
        with self._lock:
            self._ports[port] = PortReading(port, self._ports[port].enabled, label=label)
