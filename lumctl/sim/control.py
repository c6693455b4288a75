"""The control socket of a running simulator: faults, status, the bridge for a foreign sshd, and meshes read back."""

import contextlib
import json
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.types import PucState
from lumctl.errors import ExitCode, LumctlError, UsageError
from lumctl.sim.chassis.requests import managing_device, transponder_requests
from lumctl.sim.client import dbm_as_json
from lumctl.sim.hosts.commands import answer
from lumctl.sim.hosts.loop import HostLoop, Pipe
from lumctl.sim.service import SimulatedService, read_line
from lumctl.sim.world.faults import SimulatedFault
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.world import World

_BRIDGE_PATIENCE_S = 30.0
_MOST_READ = 64 * 1024


class _SocketPipe:
    """A connection as the input and output of a loop; another thread reads the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.came: deque[bytes] = deque()
        self.closed = threading.Event()
        self._connection = connection

    def read(self) -> bytes | None:
        return self.came.popleft() if self.came else None

    def write(self, data: bytes) -> None:
        self._connection.sendall(data)

    def close(self, exit_status: int) -> None:  # noqa: ARG002 - a socket has no way to say it
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)  # wakes the reader
        self.closed.set()


def carry(connection: socket.socket, open_loop: Callable[[Pipe], HostLoop]) -> None:
    """Serve one loop over a connection until either ends. The caller closes the connection."""
    pipe = _SocketPipe(connection)
    loop = open_loop(pipe)
    connection.settimeout(_BRIDGE_PATIENCE_S)
    while data := _received(connection):
        pipe.came.append(data)
        loop.wake()
    pipe.came.append(b"")
    loop.wake()
    pipe.closed.wait(_BRIDGE_PATIENCE_S)


def _received(connection: socket.socket) -> bytes:
    while True:
        try:
            return connection.recv(_MOST_READ)
        # The time limit is for sending. A client may be silent for as long as it likes.
        except TimeoutError:
            continue
        except OSError:
            return b""


Request = Mapping[str, Any]

_MOST_CONNECTIONS = 512
_MOST_BYTES = 64 * 1024
_PATIENCE_S = 30.0
_KINDS = {ExitCode.USAGE: "usage", ExitCode.UNREACHABLE: "unreachable", ExitCode.REFUSED: "refused"}


class Control:
    """Answers requests about one world.

    ``changed`` is called after faults were injected or cleared, ``open_loop`` opens a loop on a host, and ``end`` ends
    the simulator. ``pause`` waits for some seconds, or until the simulator ends.
    """

    def __init__(
        self,
        world: World,
        path: Path,
        *,
        status: Callable[[], dict[str, Any]],
        changed: Callable[[], None],
        open_loop: Callable[[str, Pipe], HostLoop],
        pause: Callable[[float], object],
        end: Callable[[], None],
    ) -> None:
        self._world = world
        self._status = status
        self._changed = changed
        self._open_loop = open_loop
        self._pause = pause
        self._end = end
        self.service = SimulatedService("control", self._serve, most=_MOST_CONNECTIONS, path=path)
        self._requests: dict[str, Callable[[Request], dict[str, Any]]] = {
            "status": lambda _: self._status(),
            "fault": self._fault,
            "clear": self._clear,
            "renew": self._renew,
            "resume": self._resume,
            "heard": lambda _: {"heard": self._world.lit_lanes()[0]},
            "answer": self._answer,
            "loop": self._loop,
            "writes": lambda r: {"writes": [asdict(each) for each in self._world.writes_after(int(r["after"]))]},
        }
        # A request about a mesh is answered with the faults of that mesh; other requests are answered without faults.
        self._of_meshes: dict[str, Callable[[Request], dict[str, Any]]] = {
            "mesh-identify": self._mesh_identify,
            "mesh-read": self._mesh_read,
            "mesh-write": self._mesh_write,
            "mesh-confirm": lambda r: {"disarmed": self._world.meshes.confirm(str(r["receipt"]))},
            "mesh-powers": self._mesh_powers,
            "mesh-temperature": lambda r: {"celsius": self._world.meshes.temperature(str(r["device"]))},
            "mesh-alarms": lambda r: {"alarms": [asdict(a) for a in self._world.meshes.alarms(str(r["device"]))]},
            "progress": self._progress,
            **transponder_requests(world),
        }
        self._requests |= self._of_meshes

    def answer_also(self, requests: Mapping[str, Callable[[Request], dict[str, Any]]]) -> None:
        """Answer additional requests about devices, each with the faults of its device."""
        self._of_meshes |= requests
        self._requests |= requests

    def _serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._talk, args=(connection,), name="control", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        ending = False
        try:
            with contextlib.suppress(OSError):
                connection.settimeout(_PATIENCE_S)
                line = read_line(connection, most=_MOST_BYTES)
                if line is not None:
                    ending, said, conduct = self._act(line)
                    self._pause(conduct.delay_s)
                    connection.sendall(conduct.shortened(json.dumps(said).encode() + b"\n"))
                    if host := said.get("loop"):
                        carry(connection, partial(self._open_loop, host))
        finally:
            # The client that requested the end waits until this connection closes; it closes when the process ends.
            if ending:
                self._end()
            else:
                self.service.done_with(connection)

    def _act(self, line: str) -> tuple[bool, dict[str, Any], Misbehaviour]:
        conduct = Misbehaviour()
        try:
            request = json.loads(line)
            do = request["do"]
            if do == "down":
                return True, {}, conduct
            if do in self._of_meshes:
                conduct = self._world.misbehaviour(managing_device(self._world.inventory, request))
            return False, self._requests[do](request), conduct
        except LumctlError as error:
            kind = _KINDS.get(error.exit_code, "")
            return False, {"error": {"kind": kind, "message": error.message, "hint": error.hint}}, conduct
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            said = f"not a request: {type(error).__name__}: {error}"[:200]
            return False, {"error": {"kind": "usage", "message": said, "hint": None}}, conduct

    def _fault(self, request: Request) -> dict[str, Any]:
        value = request.get("value")
        fault = self._world.inject(
            str(request["component"]), str(request["kind"]), None if value is None else float(value)
        )
        self._changed()
        return {"fault": fault_document(fault)}

    def _clear(self, request: Request) -> dict[str, Any]:
        healed = self._world.clear(request.get("component"))
        self._changed()
        return {"cleared": [fault_document(fault) for fault in healed]}

    def _renew(self, _request: Request) -> dict[str, Any]:
        self._world.renew()
        self._changed()
        return {}

    def _resume(self, request: Request) -> dict[str, Any]:
        self._world.resume(str(request["job"]), [str(each) for each in request["accelerators"]])
        return {}

    def _answering(self, request: Request) -> str:
        host = str(request["host"])
        if host not in self._world.inventory.hosts:
            raise UsageError(f"the inventory has no host {host!r}")
        if not self._world.answers(host):
            raise DeviceUnreachableError(f"{host} does not answer")
        return host

    def _loop(self, request: Request) -> dict[str, Any]:
        """Hand the connection over to a loop on a host: all further bytes in both directions belong to the loop."""
        return {"loop": self._answering(request)}

    def _answer(self, request: Request) -> dict[str, Any]:
        host = self._answering(request)
        given = answer(self._world, host, str(request["command"]), now=time.time())
        # JSON has no infinity, so null stands for never.
        return given._asdict() | {"delay_s": given.delay_s if given.delay_s < math.inf else None}

    def _mesh_identify(self, request: Request) -> dict[str, Any]:
        device = str(request["device"])
        return {"text": f"{device} ready, {len(self._world.meshes.states(device))} PUCs"}

    def _mesh_read(self, request: Request) -> dict[str, Any]:
        states = self._world.meshes.states(str(request["device"]))
        return {"states": "".join(states[puc].value for puc in range(len(states)))}

    def _mesh_write(self, request: Request) -> dict[str, Any]:
        changes = {int(puc): PucState(mark) for puc, mark in dict(request["changes"]).items()}
        revert = request.get("revert_after_s")
        self._world.meshes.write(
            str(request["device"]),
            changes,
            receipt=str(request["receipt"]),
            revert_after_s=None if revert is None else float(revert),
        )
        return {"text": f"ok {len(changes)} cells set"} | self._progress(request)

    def _progress(self, request: Request) -> dict[str, Any]:
        progress = self._world.progress(str(request["device"]))
        return {"progress": None if progress is None else asdict(progress)}

    def _mesh_powers(self, request: Request) -> dict[str, Any]:
        powers = self._world.meshes.powers(str(request["device"]), tuple(map(int, request["ports"])))
        return {"dbm": {port: dbm_as_json(power) for port, power in powers.items()}}


def fault_document(fault: SimulatedFault) -> dict[str, Any]:
    """A fault as the control socket and ``sim status -o json`` print it."""
    return asdict(fault)
