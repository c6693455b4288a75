"""Transfer of a state from one worker's memory to another's, over TCP.

The client proves that it knows the job's token by answering a challenge; the token itself is never sent. The client
requests a state in a line of JSON. The server describes the state in a line of JSON, and sends its raw bytes.
"""

import contextlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from lumctl.training.torch.states import Layout, StateSnapshot, memory
from lumctl.training.torch.stores import family_of

LONGEST_LINE = 64 * 1024 * 1024
"""The longest description, with one entry for each tensor."""
LONGEST_QUESTION = 4096
PATIENCE_S = 10.0
"""How long a peer may send nothing."""


class StateTransferError(Exception):
    """A state was not transferred; the current one is unchanged."""


class NotHereError(Exception):
    """This worker does not have the requested state."""


@dataclass(frozen=True, slots=True)
class WantedState:
    """A requested state, by steps done and rank."""

    done: int
    of: int | None


Find = Callable[[WantedState], Layout]


class StateServer:
    """Serves states while it is open. It is open while the worker is parked, so that no changing state is read.

    Threads of this class call ``find``, which returns a state or raises :class:`NotHereError`.
    """

    def __init__(self, address: str, token: str, find: Find) -> None:
        self._token, self._find = token, find
        self._listener = socket.create_server((address, 0), family=family_of(address))
        self.address: tuple[str, int] = (address, self._listener.getsockname()[1])
        self._change = threading.Condition()
        self._open = False
        self._serving: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, name="lumctl-states", daemon=True)
        self._accepting.start()

    def open(self) -> None:
        """Start to serve; from now on the state must not change."""
        with self._change:
            self._open = True

    def shut(self) -> None:
        """Stop serving. A transfer in progress is interrupted, and its client sees the connection end."""
        with self._change:
            self._open = False
            for connection in self._serving:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            # Only once no transfer reads the state any more may the caller change it.
            self._change.wait_for(lambda: not self._serving)

    def close(self) -> None:
        """Stop serving permanently."""
        self.shut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), name="lumctl-state", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError):
            connection.settimeout(PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            challenge = secrets.token_hex(32)
            _send(connection, {"challenge": challenge})
            asked = _line(connection, LONGEST_QUESTION)
            proof = str(asked.get("proof", ""))
            if not hmac.compare_digest(proof.encode(), proved(self._token, "state", challenge).encode()):
                _send(connection, {"error": "the token does not belong to this job"})
                return
            wanted = WantedState(int(asked["done"]), None if asked.get("of") is None else int(asked["of"]))
            with self._change:
                if not self._open:
                    _send(connection, {"error": "this worker is not parked"})
                    return
                self._serving.add(connection)
            try:
                self._send_state(connection, wanted)
            finally:
                with self._change:
                    self._serving.discard(connection)
                    self._change.notify_all()

    def _send_state(self, connection: socket.socket, wanted: WantedState) -> None:
        try:
            layout = self._find(wanted)
        except NotHereError as error:
            _send(connection, {"error": str(error)})
            return
        _send(connection, {"done": wanted.done, "bytes": layout.size, "meta": layout.meta})
        for piece in layout.pieces():
            connection.sendall(piece)


class Fetcher:
    """Fetches states. Any thread may call :meth:`cancel`, which ends a running fetch."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._connection: socket.socket | None = None
        self._changing = threading.Lock()

    def cancel(self) -> None:
        """Make a running :meth:`fetch` fail."""
        with self._changing:
            if self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)

    def fetch(
        self, source: tuple[str, int], wanted: WantedState, *, still: Callable[[], bool] = lambda: True
    ) -> StateSnapshot:
        """Fetch a complete state; ``still`` returns whether it is still needed.

        Raises:
            StateTransferError: the state was not transferred completely.
        """
        where = f"{source[0]}:{source[1]}"
        connection = socket.socket(family_of(source[0]))
        with self._changing:
            self._connection = connection
        try:
            if not still():  # a cancel after this line finds the connection
                raise StateTransferError("the request was withdrawn")
            connection.settimeout(PATIENCE_S)
            connection.connect(source)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._fetch(connection, wanted, where)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise StateTransferError(f"the worker at {where} did not send it completely: {error}") from error
        finally:
            with self._changing:
                self._connection = None
                connection.close()

    def _fetch(self, connection: socket.socket, wanted: WantedState, where: str) -> StateSnapshot:
        challenge = str(_line(connection, LONGEST_QUESTION)["challenge"])
        _send(connection, {"proof": proved(self._token, "state", challenge), "done": wanted.done, "of": wanted.of})
        header = _line(connection, LONGEST_LINE)
        if "error" in header:
            raise StateTransferError(f"the worker at {where} refuses to send it: {header['error']}")
        data = torch.empty(int(header["bytes"]), dtype=torch.uint8)
        _fill(connection, memory(data))
        return StateSnapshot(int(header["done"]), header["meta"], data)


def proved(token: str, purpose: str, challenge: str) -> str:
    """The answer to a challenge, which proves knowledge of the token; it is valid for one purpose only."""
    return hmac.new(token.encode(), f"{purpose}:{challenge}".encode(), "sha256").hexdigest()


def _fill(connection: socket.socket, room: memoryview) -> None:
    while room:
        count = connection.recv_into(room)
        if not count:
            raise ConnectionError(f"the connection ended {len(room)} bytes too early")
        room = room[count:]


def _send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def _line(connection: socket.socket, longest: int) -> dict[str, Any]:
    """Read one line, and no byte after it."""
    line = bytearray()
    while not line.endswith(b"\n"):
        ahead = connection.recv(65536, socket.MSG_PEEK)
        if not ahead:
            raise ConnectionError("it ended within a line")
        end = ahead.find(b"\n")
        line += connection.recv(end + 1 if end >= 0 else len(ahead))
        if len(line) > longest:
            raise ValueError("a line without an end")
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a line that is not an object")  # noqa: TRY004 - handled like any other invalid line
    return found
