"""The twin of a mesh controller: the plain line protocol over TCP, one request per connection, nothing read back."""

import ast
import contextlib
import socket
import threading
from collections.abc import Callable

from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.sim.service import SimulatedService, read_line
from lumctl.sim.world.world import World

SMARTLIGHT_DRIVER = "smartlight"
"""The driver of the meshes that this protocol serves."""
_MOST_CONNECTIONS = 16
_MOST_BYTES = 64 * 1024
_PATIENCE_S = 30.0
_PARSING = threading.Lock()
"""Held while a request is parsed: CPython 3.11 fails with SystemError if several threads build syntax trees at once."""


class MeshController:
    """Serves one mesh; it answers when the change is made.

    ``pause`` waits for some seconds, or until the simulator ends.
    """

    def __init__(
        self,
        world: World,
        device: str,
        puc_count: int,
        pause: Callable[[float], object],
    ) -> None:
        self._world = world
        self._device = device
        self._puc_count = puc_count
        self._pause = pause
        self.service = SimulatedService(f"mesh {device}", self._serve, most=_MOST_CONNECTIONS)

    def _serve(self, connection: socket.socket) -> None:
        threading.Thread(target=self._talk, args=(connection,), name=f"mesh {self._device}", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                connection.settimeout(_PATIENCE_S)
                connection.sendall(f"{self._device} ready, {self._puc_count} PUCs\n".encode())
                line = read_line(connection, most=_MOST_BYTES)
                if line is not None:
                    conduct = self._world.misbehaviour(self._device)
                    answer = f"{self._act(line)}\n".encode()
                    self._pause(conduct.delay_s)
                    connection.sendall(conduct.shortened(answer))
                    # In this protocol the end of the stream is the end of the answer.
                    connection.shutdown(socket.SHUT_WR)
        finally:
            self.service.done_with(connection)

    def _act(self, line: str) -> str:
        try:
            changes = parse_request(line)
            self._world.meshes.write(self._device, changes)
        except LumctlError as error:
            return f"error: {error.message}"
        except ValueError as error:
            return f"error: {error}"
        return f"ok {len(changes)} cells set"


def parse_request(line: str) -> dict[int, PucState]:
    """Parse a request: a Python literal list of (PUC, mark) pairs.

    Raises:
        ValueError: the line is not such a list.
    """
    try:
        with _PARSING:
            pairs = ast.literal_eval(line.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError("not a list of (puc, state) pairs") from None
    match pairs:
        case list():
            return dict(map(_pair, pairs))
        case _:
            raise ValueError("not a list of (puc, state) pairs")


def _pair(pair: object) -> tuple[int, PucState]:
    match pair:
        case (int(puc), "=" | "x" as mark) if not isinstance(puc, bool):
            return puc, PucState(mark)
        case _:
            raise ValueError(f"not a (puc, '=' or 'x') pair: {pair!r}"[:200])
