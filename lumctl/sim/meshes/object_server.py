"""The twin behind a vendor-style object of a mesh: couplings and phases over XML-RPC, on its own socket.

The protocol between the vendor's object and its device is not public. This protocol is lumctl's own; only the object's
methods (see :mod:`lumctl.sim.meshes.object_client`) are like the vendor's.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, dumps, loads

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.sim.service import SimulatedService
from lumctl.sim.world.world import World

OBJECT_DRIVER = "smartlight-object"
"""The driver of the meshes that this server serves."""
_MOST_CONNECTIONS = 16
_MOST_BYTES = 256 * 1024
_PATIENCE_S = 30.0
_COUPLING = {PucState.BAR: 0.0, PucState.CROSS: 1.0}


class ObjectServer:
    """Serves one mesh on the socket at ``path``. ``pause`` is that of a mesh controller.

    Its cells are only in bar or cross. Phases are stored and shown, without effect on light.
    """

    def __init__(self, world: World, device: str, pause: Callable[[float], object], path: Path) -> None:
        self._world = world
        self._device = device
        self._pause = pause
        self._phases: dict[int, float] = {}
        self._methods: dict[str, Callable[..., Any]] = {
            each.__name__: each
            for each in (self.get_puc_states, self.set_puc_states, self.get_output_power, self.get_temp, self.reset)
        }
        self.service = SimulatedService(f"mesh {device}", self._serve, most=_MOST_CONNECTIONS, path=path)

    def get_puc_states(self) -> list[list[float]]:
        """PUC, coupling and phase of every cell."""
        states = self._world.meshes.states(self._device)
        return [[puc, _COUPLING[state], self._phases.get(puc, 0.0)] for puc, state in states.items()]

    def set_puc_states(self, settings: list[list[float]]) -> None:
        """Set cells: PUC, coupling (0 or 1) and phase of each."""
        wanted = {int(puc): (float(coupling), float(phase)) for puc, coupling, phase in settings}
        self._world.meshes.write(self._device, {puc: _state(coupling) for puc, (coupling, _) in wanted.items()})
        self._phases |= {puc: phase for puc, (_, phase) in wanted.items()}

    def get_output_power(self, ports: list[int]) -> list[float]:
        """Power that leaves each port in dBm; ``-inf`` for no light."""
        return list(self._world.meshes.powers(self._device, tuple(map(int, ports))).values())

    def get_temp(self) -> float:
        """Temperature of the chip in degrees Celsius."""
        return self._world.meshes.temperature(self._device)

    def reset(self) -> None:
        """Put every cell into bar."""
        self.set_puc_states([[puc, 0.0, 0.0] for puc in self._world.meshes.states(self._device)])

    def answer(self, request: bytes) -> tuple[bytes, bool]:
        """The answer to a request, and whether the answer is cut off."""
        conduct = self._world.misbehaviour(self._device)
        answer = self._done(request)
        self._pause(conduct.delay_s)
        return answer.encode(), conduct.cuts

    def _done(self, request: bytes) -> str:
        """Perform a request; every error is returned as an XML-RPC fault."""
        try:
            arguments, method = loads(request)
            return dumps((self._methods[str(method)](*arguments),), methodresponse=True, allow_none=True)
        except LumctlError as error:
            return dumps(Fault(1, error.message))
        except Exception as error:  # noqa: BLE001 - a request may be anything
            return dumps(Fault(2, f"{type(error).__name__}: {error}"[:200]))

    def _serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._talk, args=(connection,), name=f"mesh {self._device}", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                _Handler(connection, self)
        finally:
            self.service.done_with(connection)


class _Handler(BaseHTTPRequestHandler):
    """One request of HTTP/1.0: the connection ends after the answer."""

    timeout = _PATIENCE_S

    def __init__(self, connection: socket.socket, mesh: ObjectServer) -> None:
        self._mesh = mesh
        super().__init__(connection, "", mesh)  # type: ignore[arg-type]  # it only hands on the address and server

    def do_POST(self) -> None:
        """Answer; the base class calls this by its name."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self.send_error(413)
            return
        answer, cut = self._mesh.answer(self.rfile.read(int(length)))
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2] if cut else answer)

    def log_message(self, *_: Any) -> None:
        """Log nothing: the output belongs to the simulator."""


def _state(coupling: float) -> PucState:
    for state, ideal in _COUPLING.items():
        if coupling == ideal:
            return state
    raise ValueError(f"a coupling of {coupling:g} is not possible: the cells of this twin are in bar (0) or cross (1)")
