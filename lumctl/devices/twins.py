"""Twins (simulated devices) in plug-ins, so that the simulator can rehearse runs with the plug-in's devices.

A package offers a twin under the entry point group :data:`GROUP`, by the name of the driver. The twin speaks the
device's protocol on loopback. It reads and changes one device of the simulated world, and thereby switches simulated
light. Only rehearsals use twins; the program itself accesses a simulated world through drivers only.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from lumctl.devices.types import Alarm, PortReading, Progress, PucState

GROUP = "lumctl.twins"


class SimulatedMesh(Protocol):
    """One mesh of a simulated world. Safe to use from several threads.

    Every call raises DeviceUnreachableError while a fault keeps the device down.
    """

    id: str
    puc_count: int

    def read_states(self) -> dict[int, PucState]:
        """The state of every PUC."""
        ...

    def write(self, changes: Mapping[int, PucState]) -> None:
        """Set PUCs, all or none; light has switched when this returns.

        Raises:
            DeviceRefusedError: a PUC does not exist, or a fault makes the device refuse: answer with your protocol's
                error. With the fault, part of the change may have been made.
        """
        ...

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Power that leaves each port in dBm; ``-inf`` for no light."""
        ...

    def read_progress(self) -> Progress | None:
        """The part of a change that a fault (``slow-commit``) has left for the device to make; ``None``: nothing."""
        ...

    def read_temperature(self) -> float:
        """Temperature of the chip in degrees Celsius."""
        ...

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The alarms that a fault (``alarm``) makes the device raise."""
        ...


class SimulatedSwitch(Protocol):
    """One switch of a simulated world. Ports are numbered from 0.

    Safe to use from several threads. Every call raises DeviceUnreachableError while a fault keeps the device down.
    """

    id: str
    port_count: int
    input_count: int

    def read_circuits(self) -> dict[int, int]:
        """Every join: ingress port -> egress port."""
        ...

    def write(self, joins: Mapping[int, int | None]) -> None:
        """Join ingress ports to egress ports (``None``: to nothing), all or none; light has switched on return.

        Raises:
            DeviceRefusedError: a port is wrong or in use, or a fault makes the device refuse: answer with your
                protocol's error. With the fault, part of the change may have been made.
        """
        ...

    def read_ports(self) -> dict[int, PortReading]:
        """Every port."""
        ...

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable light through a port. Raises: as :meth:`write`."""
        ...

    def set_label(self, port: int, label: str) -> None:
        """Name a port. Raises: as :meth:`write`."""
        ...

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The power at each port's monitor in dBm; ``-inf`` for no light."""
        ...

    def read_temperature(self) -> float:
        """Temperature in degrees Celsius."""
        ...

    def read_progress(self) -> Progress | None:
        """The part of a change that a fault (``slow-commit``) has left for the device to make; ``None``: nothing."""
        ...

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The alarm that the fault ``alarm`` causes, and an alarm without a severity for each port that has failed."""
        ...


SimulatedDevice = SimulatedMesh | SimulatedSwitch

Twin = Callable[[SimulatedDevice, str], AbstractContextManager[int | str]]
"""``twin(device, listen)`` returns a context manager. Entering it starts serving the device's protocol at the address
``listen`` (``127.0.0.1``) only, on a free TCP port (bind to port 0), and returns that port. A twin that speaks HTTP
without TLS returns ``http://127.0.0.1:PORT`` instead: the driver's address then has that scheme. The context manager is
entered and left in one thread, which serves this twin only."""


def scheme_and_port(given: object, listen: str) -> tuple[str, int]:
    """The scheme (``http://``, or empty) and the TCP port from the port or address that a twin returned.

    Raises:
        ValueError: the value is neither a port nor an address.
    """
    scheme, port = "", given
    if isinstance(given, str):
        scheme, separator, place = given.partition("://")
        host, _, number = place.rpartition(":")
        if separator and scheme.isalnum() and host == listen and number.isdecimal():
            scheme, port = f"{scheme}://", int(number)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 2**16:
        raise ValueError(f"{given!r} is not a TCP port; a twin returns its port, or http://{listen}:PORT")
    return scheme, port
