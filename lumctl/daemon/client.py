"""The client of a daemon's socket: its newest observation, and orders to its autopilot.

A command that finds no daemon, or none with a fitting observation, reads the rack itself. Most commands import this
module, even without a daemon. So it imports late what only an answer needs: pydantic and the observation's types.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from lumctl import __version__
from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError
from lumctl.inventory.model import Inventory
from lumctl.json_lines import JsonLines, ask, connect

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

    from lumctl.fleet.readings import HostSnapshot
    from lumctl.health.observation import Observation

SCHEMA = f"lumctl/daemon-state/v1 {__version__}"
"""The schema includes the version, because the fields are those of the program's own types."""
ORDER_SCHEMA = "lumctl/daemon/autopilot-order/v1"
SOCKET = "state.sock"
LOCK = "watch.lock"
MAX_AGE_S = 10.0
"""The maximum age of an observation that is used."""
TIMEOUT_S = 2.0
LEFT_ALONE_S = 30.0
"""How long :class:`ObservationClient` waits before it contacts a daemon that did not answer again."""
_MAX_BYTES = 256 * 1024 * 1024
_LEFT_OUT = {"__all__": {"gpus": {"__all__": {"raw"}}}}
"""The fields of nvidia-smi's output that no rule reads."""
_HOSTS_AT_ONCE = 32
"""Validating is one call into C that holds the interpreter's lock: 31 ms for a thousand accelerators. A dashboard would
answer no key meanwhile, so the hosts, which are most of it, are encoded in lines of this many."""


def daemon_folder(inventory: Inventory, target: str) -> Path:
    """The folder of the daemon that watches an inventory and a target; it need not exist.

    The folder's name depends on the stores too: they hold the assignment, so other stores mean another daemon.

    Raises:
        UsageError, RefusedError: this user has no private runtime folder.
    """
    state = os.environ.get("LUMCTL_STATE")
    default = os.environ.get("XDG_STATE_HOME", "")
    stores = [state or rack.store or default for rack in inventory.racks.values()]
    named = "\0".join([str(inventory.path.resolve()), target, *stores])
    return private_runtime_folder() / f"watch-{hashlib.sha256(named.encode()).hexdigest()[:12]}"


def socket_path(inventory: Inventory, target: str) -> Path:
    """The socket at which the daemon answers, if one runs."""
    return daemon_folder(inventory, target) / SOCKET


def has_died(inventory: Inventory, target: str) -> bool:
    """Whether the daemon of an inventory left its socket behind: it was killed, and no other was started since."""
    try:
        path = socket_path(inventory, target)
        if not path.is_socket():
            return False
        connect(path, TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except (LumctlError, OSError):
        return False
    return False


def daemon_sockets() -> Iterator[Path]:
    """The sockets of all daemons of this user, for use when no inventory can be read."""
    try:
        folder = private_runtime_folder()
    except LumctlError:
        return
    yield from sorted(folder.glob(f"watch-*/{SOCKET}"))


def observation_of(
    inventory: Inventory, target: str, *, max_age_s: float = MAX_AGE_S, timeout_s: float = TIMEOUT_S
) -> "Observation | None":
    """The daemon's newest observation of this inventory.

    ``None`` at once if no daemon runs, if its version or its text of the inventory differs, or if its observation is
    older than ``max_age_s``. ``None`` after ``timeout_s`` if the daemon hangs.
    """
    deadline = time.monotonic() + timeout_s
    request = {"schema": SCHEMA, "digest": inventory.digest, "max_age_s": max_age_s}
    try:
        with JsonLines(connect(socket_path(inventory, target), timeout_s)) as lines:
            lines.send(request, timeout_s)
            length = int(lines.receive(deadline - time.monotonic())["length"])
            data = lines.read(length, deadline - time.monotonic()) if 0 < length <= _MAX_BYTES else b""
        return decode(data, inventory) if data else None
    # Also for a daemon that ends now or answers nonsense: the command then reads the rack itself.
    except (LumctlError, OSError, ValueError, KeyError, TypeError):
        return None


class ObservationClient:
    """Asks the daemon repeatedly. A daemon that hangs costs a whole time-out, so it is left alone for a while."""

    def __init__(
        self, ask_daemon: "Callable[[], Observation | None]", monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask_daemon
        self._monotonic = monotonic
        self._not_before = monotonic()

    def __call__(self) -> "Observation | None":
        """The daemon's newest observation; ``None`` in the same cases as :func:`observation_of`."""
        began = self._monotonic()
        if began < self._not_before:
            return None
        seen = self._ask()
        ended = self._monotonic()
        # A quick None costs nothing; only a daemon that hangs is left alone.
        if seen is None and ended - began >= TIMEOUT_S / 2:
            self._not_before = ended + LEFT_ALONE_S
        return seen


def send_order(path: Path, do: str, *, who: str = "", timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Order the daemon at a socket to ``stop`` or ``start`` its autopilot, or ask for its ``status``.

    Raises:
        OSError: no daemon listens there, or it does not answer in time.
        ValueError: the answer is invalid, or of another version.
    """
    answer = ask(path, {"schema": ORDER_SCHEMA, "do": do, "who": who[:200]}, timeout_s)
    if answer.get("schema") != ORDER_SCHEMA:
        raise ValueError("a daemon of another version")
    return answer


def encode(observation: "Observation") -> bytes:
    """An observation as lines of JSON, without its inventory, which both sides have, and without default values.

    The first line lacks the hosts' readings; those are in the other lines. JSON has no infinities, but the power of no
    light is minus infinity: it is written as Python's ``json`` writes it.
    """
    look, hosts = _models()
    parts = {name: getattr(observation, name) for name in look.model_fields}
    read = list(observation.snapshot.hosts.items())
    parts["snapshot"] = replace(observation.snapshot, hosts={})
    # Without validation: these are the program's own objects.
    lines = [look.model_construct(**parts).model_dump_json(exclude_defaults=True).encode()]
    for begin in range(0, len(read), _HOSTS_AT_ONCE):
        some = dict(read[begin : begin + _HOSTS_AT_ONCE])
        lines.append(hosts.dump_json(some, exclude=_LEFT_OUT, exclude_defaults=True))
    return b"\n".join(lines)


def decode(data: bytes, inventory: Inventory) -> "Observation":
    """The observation in JSON data, for this inventory.

    Raises:
        ValueError: the data is not an observation.
    """
    from lumctl.health.observation import Observation  # noqa: PLC0415 - see above

    look, hosts = _models()
    first, *others = data.split(b"\n")
    found = look.model_validate_json(first)
    parts = {name: getattr(found, name) for name in look.model_fields}
    read = {name: host for line in others for name, host in hosts.validate_json(line).items()}
    parts["snapshot"] = replace(parts["snapshot"], hosts=read)
    return Observation(inventory=inventory, **parts)


@cache
def _models() -> "tuple[type[BaseModel], TypeAdapter[dict[str, HostSnapshot]]]":
    """The pydantic models of an observation and of hosts' readings.

    They are made on first use: that takes longer than finding no daemon.
    """
    from dataclasses import fields  # noqa: PLC0415 - see above

    from pydantic import ConfigDict, TypeAdapter, create_model  # noqa: PLC0415 - see above

    from lumctl.fleet.readings import HostSnapshot  # noqa: PLC0415 - see above
    from lumctl.health.observation import Observation  # noqa: PLC0415 - see above

    hints = get_type_hints(Observation)
    members: dict[str, Any] = {
        field.name: (hints[field.name], ...) for field in fields(Observation) if field.name != "inventory"
    }
    settings = ConfigDict(ser_json_inf_nan="constants")
    look = create_model("Look", __config__=settings, **members)
    return look, TypeAdapter(dict[str, HostSnapshot], config=settings)
