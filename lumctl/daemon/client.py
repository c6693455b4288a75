"""Asks the daemon for its newest look. Whoever asks reads directly where the answer is ``None``."""

import json
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumctl.daemon.place import socket_path
from lumctl.errors import LumctlError
from lumctl.inventory.model import Inventory

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.site.observation import Observation

MAX_AGE_S = 10.0
"""A look that is older is no better than none."""
TIMEOUT_S = 2.0
LEFT_ALONE_S = 30.0
"""How long a daemon that hung is not asked again by those who ask all the time."""
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
    from lumctl.daemon.wire import decode  # noqa: PLC0415 - pydantic's models are built only when there is something

    try:
        return decode(data, inventory)
    except ValueError:
        return None


class Asking:
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
        from lumctl.daemon.wire import SCHEMA  # noqa: PLC0415 - as above

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
