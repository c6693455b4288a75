"""The key-value store of a process group: one worker serves it, and the group's ranks publish their addresses in it.

PyTorch's ``TCPStore`` looks up the names of its peers: the client before it connects, the server for each connection.
When the name server is slow or lost, as in the failures that recovery is for, each look-up takes five seconds or more.
This store looks up nothing, serves only workers that prove to know the job's token, and its waits can be cancelled.

A client answers the challenge that the server sends first (see :func:`proved`) and names its generation. After that it
sends one request at a time: a line of JSON, ``{"do": WORD, ...}``. Values are in base64.
"""

import contextlib
import hmac
import json
import secrets
import selectors
import socket
import threading
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from lumctl.json_lines import MAX_BYTES, JsonLines
from lumctl.training.torch.state_transfer import proved
from lumctl.training.torch.stores import GivenUpError, family_of

if TYPE_CHECKING:
    # The public class has types only in the private module.
    from torch._C._distributed_c10d import Store
else:
    from torch.distributed import Store

PATIENCE_S = 10.0
"""How long a peer may take to connect, to read a reply or to send one that needs no wait."""
WAIT_S = 1800.0
"""How long a key may take to be published, unless the caller says otherwise; PyTorch's limit for collectives."""
_LONGEST_PROOF = 4096


@dataclass(eq=False, slots=True)
class _Client:
    """A connection to the server. ``keys`` are those of its generation, once it has proved that it knows the token."""

    connection: socket.socket
    challenge: str
    unread: bytearray = field(default_factory=bytearray)
    keys: "_Keys | None" = None


@dataclass(eq=False, slots=True)
class _Keys:
    """The values of one generation, and the requests that wait for some: by the key that each lacks first."""

    values: dict[str, bytes] = field(default_factory=dict)
    waiting: dict[str, list[tuple[_Client, list[str]]]] = field(default_factory=dict)


class StoreServer:
    """Serves the stores of this worker's groups in a thread of its own, for as long as the worker lives.

    The keys of a generation are dropped as soon as a worker of a later one connects.
    """

    def __init__(self, address: str, token: str) -> None:
        self._token = token
        self._listener = socket.create_server((address, 0), family=family_of(address))
        self.address: tuple[str, int] = (address, self._listener.getsockname()[1])
        self._generations: dict[int, _Keys] = {}
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="lumctl-store", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and end all connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        with self._ready, self._listener:
            while True:
                for key, _ in self._ready.select():
                    if key.data is not None:
                        self._receive(key.data)
                    elif not self._accept():
                        self._drop_all()
                        return

    def _accept(self) -> bool:
        """Accept a connection; false once the server is closed."""
        try:
            connection, _ = self._listener.accept()
        except ConnectionAbortedError:
            return True
        except OSError:
            return False
        connection.settimeout(PATIENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = _Client(connection, secrets.token_hex(32))
        self._ready.register(connection, selectors.EVENT_READ, client)
        self._reply(client, {"challenge": client.challenge})
        return True

    def _receive(self, client: _Client) -> None:
        try:
            piece = client.connection.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        client.unread += piece
        longest = MAX_BYTES if client.keys is not None else _LONGEST_PROOF
        if not piece or len(client.unread) > longest:
            self._drop(client)
            return
        while (end := client.unread.find(b"\n")) >= 0:
            line = bytes(client.unread[:end])
            del client.unread[: end + 1]
            try:
                self._answer(client, json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self._drop(client)  # not a worker of this job
                return

    def _answer(self, client: _Client, request: dict[str, Any]) -> None:
        if client.keys is None:
            if not hmac.compare_digest(str(request["proof"]), proved(self._token, "store", client.challenge)):
                self._reply(client, {"error": "the token does not belong to this job"})
                raise ValueError("a stranger")
            client.keys = self._keys_of(int(request["generation"]))
            return
        if request["do"] == "wait":
            self._wait(client, client.keys, list(request["keys"]))
        else:
            self._reply(client, {"found": self._carried_out(client.keys, request)})

    def _keys_of(self, generation: int) -> _Keys:
        for earlier in [each for each in self._generations if each < generation]:
            del self._generations[earlier]
        return self._generations.setdefault(generation, _Keys())

    def _carried_out(self, keys: _Keys, request: dict[str, Any]) -> Any:
        values = keys.values
        found: Any = None
        match request["do"]:
            case "set":
                for key, value in request["values"].items():
                    self._set(keys, key, b64decode(value))
            case "add":
                found = int(values.get(request["key"], b"0")) + int(request["amount"])
                self._set(keys, request["key"], b"%d" % found)
            case "append":
                self._set(keys, request["key"], values.get(request["key"], b"") + b64decode(request["value"]))
            case "compare":
                key, expected = request["key"], b64decode(request["expected"])
                if values.get(key, b"") == expected:
                    self._set(keys, key, b64decode(request["desired"]))
                found = b64encode(values.get(key, expected)).decode()
            case "check":
                found = all(key in values for key in request["keys"])
            case "delete":
                found = values.pop(request["key"], None) is not None
            case "list":
                found = list(values)
            case unknown:
                raise ValueError(f"no request: {unknown!r}")
        return found

    def _set(self, keys: _Keys, key: str, value: bytes) -> None:
        keys.values[key] = value
        for client, wanted in keys.waiting.pop(key, ()):
            self._wait(client, keys, wanted)

    def _wait(self, client: _Client, keys: _Keys, wanted: list[str]) -> None:
        """Reply with the values once all are published."""
        lacking = next((key for key in wanted if key not in keys.values), None)
        if lacking is None:
            self._reply(client, {"found": [b64encode(keys.values[key]).decode() for key in wanted]})
        else:
            keys.waiting.setdefault(lacking, []).append((client, wanted))

    def _reply(self, client: _Client, message: dict[str, Any]) -> None:
        try:
            client.connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        except OSError:
            with contextlib.suppress(OSError):  # the next receive finds the end, and drops the client
                client.connection.shutdown(socket.SHUT_RDWR)

    def _drop(self, client: _Client) -> None:
        self._ready.unregister(client.connection)
        client.connection.close()

    def _drop_all(self) -> None:
        for each in list(self._ready.get_map().values()):
            if each.data is not None:
                self._drop(each.data)


class RemoteStore(Store):
    """The store of one generation, from another worker's server or this one's. Any thread may call any method.

    Every method raises ``DistNetworkError`` if the server cannot be reached, and :class:`GivenUpError` after
    :meth:`cancel`. A request that waits has a connection of its own, so it delays no other.
    """

    def __init__(self, server: tuple[str, int], generation: int, token: str) -> None:
        super().__init__()
        self._server, self._generation, self._token = server, generation, token
        self._within_s = WAIT_S
        self._idle: list[JsonLines] = []
        self._connections: set[socket.socket] = set()
        self._cancelled = False
        self._changing = threading.Lock()

    def cancel(self) -> None:
        """End all requests, and all later ones, with an error."""
        with self._changing:
            self._cancelled = True
            for each in self._connections:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections; the store is of no use after that."""
        self.cancel()
        with self._changing:
            for each in self._connections:
                each.close()
            self._connections.clear()
            self._idle.clear()

    def set(self, key: str, value: str | bytes) -> None:
        """Publish a value."""
        self.multi_set([key], [value])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Publish several values."""
        self._ask("set", values={key: _sent(value) for key, value in zip(keys, values, strict=True)})

    def get(self, key: str) -> bytes:
        """A value, once it is published."""
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Several values, once all are published."""
        return self._values(keys, self._within_s)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are published.

        Raises:
            DistStoreError: the time-out has passed.
        """
        self._values(keys, self._within_s if timeout is None else timeout.total_seconds())

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a key may take to be published."""
        self._within_s = timeout.total_seconds()

    def add(self, key: str, amount: int) -> int:
        """Add to a counter; its new value."""
        return int(self._ask("add", key=key, amount=amount))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a value."""
        self._ask("append", key=key, value=_sent(value))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are published."""
        return bool(self._ask("check", keys=list(keys)))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Replace a value if it is the expected one, or if both are missing; the value after that."""
        return b64decode(self._ask("compare", key=key, expected=_sent(expected), desired=_sent(desired)))

    def delete_key(self, key: str) -> bool:
        """Delete a value; whether there was one."""
        return bool(self._ask("delete", key=key))

    def list_keys(self) -> list[str]:
        """All keys."""
        return list(map(str, self._ask("list")))

    def num_keys(self) -> int:
        """The number of values."""
        return len(self.list_keys())

    def clone(self) -> "RemoteStore":
        """The same store, with connections of its own."""
        return RemoteStore(self._server, self._generation, self._token)

    def _values(self, keys: Sequence[str], within_s: float) -> list[bytes]:
        try:
            return list(map(b64decode, self._ask("wait", within_s, keys=list(keys))))
        except TimeoutError:
            raise dist.DistStoreError(f"no rank has set {', '.join(keys)} within {within_s:g} s") from None

    def _ask(self, word: str, within_s: float | None = None, **what: Any) -> Any:
        """The answer to a request. Raises ``TimeoutError`` if it waits for longer than ``within_s``."""
        line = self._line()
        try:
            line.send({"do": word, **what}, PATIENCE_S)
            answer = line.receive(PATIENCE_S if within_s is None else within_s)
            if "error" in answer:
                raise ConnectionError(answer["error"])
            found = answer["found"]
        except (OSError, ValueError, KeyError) as error:
            self._forget(line.stream)
            if within_s is not None and isinstance(error, TimeoutError):
                raise
            raise self._failure(error) from error
        with self._changing:
            self._idle.append(line)
        return found

    def _line(self) -> JsonLines:
        """A connection that no request uses, an idle one or a new one."""
        with self._changing:
            if self._cancelled:
                raise GivenUpError("the group is abandoned")
            if self._idle:
                return self._idle.pop()
            connection = socket.socket(family_of(self._server[0]))
            self._connections.add(connection)  # a cancel after this line finds it
        try:
            connection.settimeout(PATIENCE_S)
            connection.connect(self._server)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line = JsonLines(connection)
            proof = proved(self._token, "store", str(line.receive(PATIENCE_S)["challenge"]))
            line.send({"proof": proof, "generation": self._generation}, PATIENCE_S)
        except (OSError, ValueError, KeyError) as error:
            self._forget(connection)
            raise self._failure(error) from error
        return line

    def _forget(self, connection: Any) -> None:
        with self._changing:
            self._connections.discard(connection)
        connection.close()

    def _failure(self, error: Exception) -> RuntimeError:
        if self._cancelled:
            return GivenUpError("the group is abandoned")
        host, port = self._server
        return dist.DistNetworkError(f"the store at {host}:{port} does not answer: {error}")


def _sent(value: str | bytes) -> str:
    """A value as it is sent; PyTorch gives bytes of its own as text."""
    return b64encode(value.encode("latin-1") if isinstance(value, str) else bytes(value)).decode()
