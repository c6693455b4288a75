"""Asks the daemon for its newest look. Whoever asks reads directly where the answer is ``None``."""

import hashlib
import json
import os
import socket
import time
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from lumctl import __version__
from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError
from lumctl.inventory.model import Inventory
from lumctl.site.observation import Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = f"lumctl/daemon-state/v1 {__version__}"
"""Both sides must be of one version: the fields are those of its own types."""
_LEFT_OUT = {"snapshot": {"hosts": {"__all__": {"gpus": {"__all__": {"raw"}}}}}}


def encode(observation: Observation) -> bytes:
    """All of an observation but its inventory; what is as its type has it anyway is left out, for most of it is."""
    look = _model().model_construct(**{name: getattr(observation, name) for name in _names()})
    return look.model_dump_json(exclude=_LEFT_OUT, exclude_defaults=True).encode()


def decode(data: bytes, inventory: Inventory) -> Observation:
    """The observation of this inventory.

    Raises:
        ValueError: this is none.
    """
    look = _model().model_validate_json(data)
    return Observation(inventory=inventory, **{name: getattr(look, name) for name in _names()})


@cache
def _names() -> tuple[str, ...]:
    return tuple(field.name for field in fields(Observation) if field.name != "inventory")


@cache
def _model() -> type[BaseModel]:
    """Made from the observation's own fields when first needed: it takes longer than to find that no daemon runs."""
    hints = get_type_hints(Observation)
    members: dict[str, Any] = {name: (hints[name], ...) for name in _names()}
    return create_model("Look", __config__=ConfigDict(ser_json_inf_nan="constants"), **members)


SOCKET = "state.sock"
LOCK = "watch.lock"


def daemon_folder(inventory: Inventory, target: str) -> Path:
    """The folder of the daemon of an inventory and a target; it need not exist.

    Where the stores are is part of its name: who runs where comes from them, so a daemon that uses other stores is not
    the one that is meant.

    Raises:
        UsageError, RefusedError: this user has no private runtime folder.
    """
    state = os.environ.get("LUMCTL_STATE")
    default = os.environ.get("XDG_STATE_HOME", "")
    stores = [state or rack.store or default for rack in inventory.racks.values()]
    named = "\0".join([str(inventory.path.resolve()), target, *stores])
    return private_runtime_folder() / f"watch-{hashlib.sha256(named.encode()).hexdigest()[:12]}"


def socket_path(inventory: Inventory, target: str) -> Path:
    """Where the daemon answers, if one runs."""
    return daemon_folder(inventory, target) / SOCKET


MAX_AGE_S = 10.0
"""A look that is older is no better than none."""
TIMEOUT_S = 2.0
LEFT_ALONE_S = 30.0
"""How long a daemon that hung is not asked again by those who ask all the time."""
ORDER_SCHEMA = "lumctl/daemon/autopilot-order/v1"
_MOST_BYTES = 256 * 1024 * 1024


def observation_of(
    inventory: Inventory, target: str, *, max_age_s: float = MAX_AGE_S, timeout_s: float = TIMEOUT_S
) -> "Observation | None":
    """The daemon's newest observation of this inventory.

    ``None`` at once if no daemon runs, has this text of the inventory, is of this version, or has looked within
    ``max_age_s``; ``None`` after ``timeout_s`` if it hangs.
    """
    try:
        path = socket_path(inventory, target)
        data = _ask(path, inventory.digest, max_age_s, time.monotonic() + timeout_s)
    except (LumctlError, OSError, ValueError, KeyError, TypeError):
        return None
    if not data:
        return None

    try:
        return decode(data, inventory)
    except ValueError:
        return None


class ObservationClient:
    """Asks again and again. A daemon that hangs costs a question its whole time-out: it is left alone for a while."""

    def __init__(
        self, ask: "Callable[[], Observation | None]", monotonic: "Callable[[], float]" = time.monotonic
    ) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._not_before = monotonic()

    def __call__(self) -> "Observation | None":
        """The daemon's newest look; ``None`` as of :func:`observation_of`."""
        began = self._monotonic()
        if began < self._not_before:
            return None
        seen = self._ask()
        ended = self._monotonic()
        if seen is None and ended - began >= TIMEOUT_S / 2:
            self._not_before = ended + LEFT_ALONE_S
        return seen


def _ask(path: Path, digest: str, max_age_s: float, deadline: float) -> bytes:
    """One request; the body of its answer, empty if the daemon has nothing that fits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        connection.connect(str(path))

        request = {"schema": SCHEMA, "digest": digest, "max_age_s": max_age_s}
        connection.sendall(json.dumps(request).encode() + b"\n")
        received = bytearray()
        while (end := received.find(b"\n")) < 0:
            received += _piece(connection, deadline)
        header: dict[str, Any] = json.loads(received[:end])
        length = int(header["length"])
        del received[: end + 1]
        while len(received) < length <= _MOST_BYTES:
            received += _piece(connection, deadline)
        return bytes(received[:length])


def _piece(connection: socket.socket, deadline: float) -> bytes:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the daemon did not answer in time")
    connection.settimeout(left)
    piece = connection.recv(1 << 20)
    if not piece:
        raise ConnectionError("the daemon hung up")
    return piece


def daemon_sockets() -> "Iterator[Path]":
    """The sockets of all daemons of this user, whatever they watch: for when no inventory can be read."""
    try:
        folder = private_runtime_folder()
    except LumctlError:
        return
    yield from sorted(folder.glob("watch-*/state.sock"))


def send_order(path: Path, do: str, *, who: str = "", timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Order the daemon at a socket to ``stop``, ``start``, or only tell its ``status``.

    Raises:
        OSError: no daemon is there, or it does not answer in time.
        ValueError: what it answers is no answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        connection.sendall(json.dumps({"schema": ORDER_SCHEMA, "do": do, "who": who[:200]}).encode() + b"\n")
        received = b""
        while b"\n" not in received:
            piece = connection.recv(_MOST_BYTES)
            if not piece:
                raise ConnectionError("the daemon hung up")
            received += piece
    answer = json.loads(received)
    if not isinstance(answer, dict) or answer.get("schema") != ORDER_SCHEMA:
        raise ValueError("a daemon of another version")
    return answer
