"""Plug-ins' twins (see :mod:`lumctl.devices.twins`), each behind a relay that injects the faults of its device.

Each twin runs in its own thread. If it raises, hangs, or listens beyond loopback, only its own device does not answer.
"""

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from lumctl.devices.twins import GROUP, SimulatedDevice, scheme_and_port
from lumctl.devices.types import Alarm, PortReading, Progress, PucState
from lumctl.errors import UsageError
from lumctl.inventory.model import Device
from lumctl.offers import Offer, imported, offered
from lumctl.sim.service import SimulatedService
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.world import World

LISTEN = "127.0.0.1"
BEGINS_WITHIN_S = 10.0
_ENDS_WITHIN_S = 2.0
_MOST_CONNECTIONS, _MOST_READ = 32, 64 * 1024
_LISTENING = "0A"


def twins_for(drivers: set[str]) -> dict[str, list[Offer]]:
    """The twins that installed plug-ins offer for these drivers."""
    found: dict[str, list[Offer]] = {}
    for offer in offered(GROUP):
        if offer.name in drivers:
            found.setdefault(offer.name, []).append(offer)
    return found


class MeshOfWorld:
    """One mesh of a world, as passed to its twin."""

    def __init__(self, world: World, device: Device) -> None:
        self.id = device.id
        self.puc_count = device.geometry.puc_count if device.geometry else 0
        self._world = world

    def read_states(self) -> dict[int, PucState]:
        """The state of every PUC."""
        return self._world.meshes.states(self.id)

    def write(self, changes: Mapping[int, PucState]) -> None:
        """Set PUCs."""
        self._world.meshes.write(self.id, {puc: PucState(state) for puc, state in changes.items()})

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The power that leaves each port, in dBm."""
        return self._world.meshes.powers(self.id, ports)

    def read_progress(self) -> Progress | None:
        """The progress of a change that the device is still making, if any."""
        return self._world.progress(self.id)

    def read_temperature(self) -> float:
        """Temperature of the chip in degrees Celsius."""
        return self._world.meshes.temperature(self.id)

    def read_alarms(self) -> tuple[Alarm, ...]:
        """Its alarms."""
        return self._world.meshes.alarms(self.id)


class SwitchOfWorld:
    """One switch of a world, as passed to its twin."""

    def __init__(self, world: World, device: Device) -> None:
        self.id = device.id
        self.port_count, self.input_count = device.port_count, device.input_count
        self._world = world

    def read_circuits(self) -> dict[int, int]:
        """The connected ports: the egress port of each ingress port."""
        with self._world.switches.held(self.id) as state:
            return dict(state.joins)

    def write(self, joins: Mapping[int, int | None]) -> None:
        """Join ports, or part them (``None``)."""
        self._world.switches.write(self.id, dict(joins))

    def read_ports(self) -> dict[int, PortReading]:
        """The reading of every port."""
        with self._world.switches.held(self.id) as state:
            return {
                port: PortReading(port, port not in state.disabled, port in state.failed, state.labels.get(port, ""))
                for port in range(self.port_count)
            }

    def set_port(self, port: int, enabled: bool) -> None:
        """Enable or disable light through a port."""
        self._world.switches.set_port(self.id, port, on=enabled)

    def set_label(self, port: int, label: str) -> None:
        """Set the label of a port."""
        self._world.switches.set_label(self.id, port, label)

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The power at each port's monitor in dBm."""
        return self._world.switches.powers(self.id, ports)

    def read_progress(self) -> Progress | None:
        """The progress of a change that the device is still making, if any."""
        return self._world.progress(self.id)

    def read_temperature(self) -> float:
        """Temperature in degrees Celsius."""
        return self._world.switches.temperature(self.id)

    def read_alarms(self) -> tuple[Alarm, ...]:
        """Its alarms, including one for each failed port."""
        return self._world.switches.alarms(self.id)


def device_of(world: World, device: Device) -> SimulatedDevice:
    """A mesh or switch of a world, as passed to a twin."""
    return MeshOfWorld(world, device) if device.geometry else SwitchOfWorld(world, device)


class PlugInTwin:
    """One device behind the twin that a plug-in ships for its driver.

    Drivers connect to ``service``, a relay that delays, cuts or refuses connections according to the device's faults.
    """

    def __init__(
        self,
        device: SimulatedDevice,
        offers: list[Offer],
        conduct: Callable[[], Misbehaviour],
        pause: Callable[[float], object],
    ) -> None:
        self.service = SimulatedService(f"twin {device.id}", self._serve, most=_MOST_CONNECTIONS)
        self.failure: str | None = None
        """Why the device does not answer; ``None`` while its twin serves it."""
        self._device = device
        self._offers = offers
        self._conduct = conduct
        self._pause = pause
        self._scheme, self._port = "", 0
        self._lock = threading.Lock()
        self._begun, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"twin {device.id}", daemon=True)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"twin {self._offers[0].name!r} of {' and '.join(offer.origin for offer in self._offers)}"

    @property
    def address(self) -> str:
        """The device's address for its driver: the address of the relay, with the scheme that the twin states."""
        return f"{self._scheme}{self.service.address}"

    def begin(self) -> None:
        """Start the twin without waiting."""
        self._thread.start()

    def await_begun(self, deadline: float) -> None:
        """Wait until the twin serves or fails, at most until ``deadline`` (monotonic); then open its relay."""
        in_time = self._begun.wait(max(0.0, deadline - time.monotonic()))
        with self._lock:
            # Under the lock: a twin that begins just now must not be given up.
            if not in_time and not self._begun.is_set():
                self.failure = f"{self.name} did not start in time"
                self._end.set()
        if self.failure is None:
            self.service.open()

    def close(self) -> None:
        """Stop the twin; one that does not stop is abandoned and ends with the process."""
        self._end.set()
        self.service.close()
        if self._thread.is_alive():
            # A twin that failed may hang, so it is not waited for.
            self._thread.join(_ENDS_WITHIN_S if self.failure is None else 0.0)

    def _run(self) -> None:
        """Run the twin from start to end."""
        try:
            with self._made() as given:
                scheme, port = scheme_and_port(given, LISTEN)
                _require_local(port)
                with self._lock:
                    self._scheme, self._port = scheme, port
                    self._begun.set()
                self._end.wait()
        except UsageError as error:
            self._fail(error.message)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - third-party code may raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split())
            self._fail(f"{self.name} failed: {said}")

    def _made(self) -> contextlib.AbstractContextManager[int | str]:
        if len(self._offers) > 1:
            raise UsageError(f"{self.name}: two packages offer it; uninstall one of them")
        twin = imported(GROUP, self._offers[0], "twin")
        if not callable(twin):
            raise UsageError(f"{self.name} is not callable")
        made = twin(self._device, LISTEN)
        if not isinstance(made, contextlib.AbstractContextManager):
            raise UsageError(f"{self.name} returned {type(made).__name__}, not a context manager")
        return made

    def _fail(self, why: str) -> None:
        with self._lock:
            if not self._begun.is_set() and self.failure is None:
                self.failure = why
            self._begun.set()

    def _serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._relay, args=(connection,), name=self.service.name, daemon=True).start()

    def _relay(self, connection: socket.socket) -> None:
        try:
            with (
                contextlib.suppress(OSError),
                socket.create_connection((LISTEN, self._port), _ENDS_WITHIN_S) as twin,
            ):
                twin.settimeout(None)
                for side in (connection, twin):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                asked = threading.Event()
                answers = threading.Thread(
                    target=self._answer, args=(twin, connection, asked), name=self.service.name, daemon=True
                )
                answers.start()
                _carry(connection, twin, asked.set)
                answers.join()
        finally:
            self.service.done_with(connection)

    def _answer(self, twin: socket.socket, connection: socket.socket, asked: threading.Event) -> None:
        """Forward answers with the device's faults applied; a greeting is forwarded complete and in time."""
        with contextlib.suppress(OSError):
            while data := twin.recv(_MOST_READ):
                if asked.is_set():
                    # What follows without another request still belongs to this answer.
                    asked.clear()
                    conduct = self._conduct()
                    self._pause(conduct.delay_s)
                    if conduct.cuts:
                        connection.sendall(conduct.shortened(data))
                        break
                connection.sendall(data)
        # This also wakes the thread that reads from the client.
        for side in (connection, twin):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


def _carry(source: socket.socket, sink: socket.socket, came: Callable[[], object]) -> None:
    """Forward bytes until end of file, and forward the end of file."""
    with contextlib.suppress(OSError):
        while data := source.recv(_MOST_READ):
            came()
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _require_local(port: int) -> None:
    """Check that a twin listens on loopback only.

    Raises:
        ValueError: the twin listens beyond loopback.
    """
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                address, _, number = local.partition(":")
                if state == _LISTENING and int(number, 16) == port and not _is_loopback(address):
                    raise ValueError(f"it listens on port {port} beyond loopback: bind to {LISTEN}")


def _is_loopback(address: str) -> bool:
    """Whether an address from the kernel's tables (4-byte words, each in native byte order) is loopback."""
    words = [bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)]
    found = ipaddress.ip_address(b"".join(words))
    inner = getattr(found, "ipv4_mapped", None)
    return (inner or found).is_loopback
