"""The client of a daemon's socket: its newest observation, and orders to its autopilot.

A command that finds no daemon, or none with a fitting observation, reads the rack itself. Most commands on a machine
without a daemon import this module, so what only an answer needs (pydantic, the observation's types) is imported late.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from lumctl import __version__
from lumctl.devices.endpoints import private_runtime_folder
from lumctl.errors import LumctlError
from lumctl.inventory.model import Inventory
from lumctl.json_lines import JsonLines, ask, connect

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lumctl.health.observation import Observation

SCHEMA = f"lumctl/daemon-state/v1 {__version__}"
"""Both sides must be of one version: the fields are those of the program's own types."""
ORDER_SCHEMA = "lumctl/daemon/autopilot-order/v1"
SOCKET = "state.sock"
LOCK = "watch.lock"
MAX_AGE_S = 10.0
"""An older observation is not used."""
TIMEOUT_S = 2.0
LEFT_ALONE_S = 30.0
"""For how long :class:`ObservationClient` asks no daemon that did not answer."""
_MAX_BYTES = 256 * 1024 * 1024
_LEFT_OUT = {"snapshot": {"hosts": {"__all__": {"gpus": {"__all__": {"raw"}}}}}}
"""Leaves of nvidia-smi that no rule reads."""


def daemon_folder(inventory: Inventory, target: str) -> Path:
    """The folder of the daemon that watches an inventory and a target; it need not exist.

    Its name depends on the stores too: they hold the assignment, so a daemon with other stores is another daemon.

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


def daemon_sockets() -> Iterator[Path]:
    """The sockets of all daemons of this user, whatever they watch: for use when no inventory can be read."""
    try:
        folder = private_runtime_folder()
    except LumctlError:
        return
    yield from sorted(folder.glob(f"watch-*/{SOCKET}"))


def observation_of(
    inventory: Inventory, target: str, *, max_age_s: float = MAX_AGE_S, timeout_s: float = TIMEOUT_S
) -> "Observation | None":
    """The daemon's newest observation of this inventory.

    ``None`` at once if no daemon runs, or it has another version or another text of the inventory, or no observation
    within ``max_age_s``; ``None`` after ``timeout_s`` if it hangs.
    """
    deadline = time.monotonic() + timeout_s
    request = {"schema": SCHEMA, "digest": inventory.digest, "max_age_s": max_age_s}
    try:
        with JsonLines(connect(socket_path(inventory, target), timeout_s)) as lines:
            lines.send(request, timeout_s)
            length = int(lines.receive(deadline - time.monotonic())["length"])
            data = lines.read(length, deadline - time.monotonic()) if 0 < length <= _MAX_BYTES else b""
        return decode(data, inventory) if data else None
    except (LumctlError, OSError, ValueError, KeyError, TypeError):
        return None


class ObservationClient:
    """Asks repeatedly. A daemon that hangs costs its whole time-out, so it is not asked again for a while."""

    def __init__(
        self, ask_daemon: "Callable[[], Observation | None]", monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask_daemon
        self._monotonic = monotonic
        self._not_before = monotonic()

    def __call__(self) -> "Observation | None":
        """The daemon's newest observation; ``None`` as :func:`observation_of`."""
        began = self._monotonic()
        if began < self._not_before:
            return None
        seen = self._ask()
        ended = self._monotonic()
        if seen is None and ended - began >= TIMEOUT_S / 2:
            self._not_before = ended + LEFT_ALONE_S
        return seen


def send_order(path: Path, do: str, *, who: str = "", timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Order the daemon at a socket to ``stop`` or ``start`` its autopilot, or only ask for its ``status``.

    Raises:
        OSError: no daemon is there, or it does not answer in time.
        ValueError: the answer is invalid, or of another version.
    """
    answer = ask(path, {"schema": ORDER_SCHEMA, "do": do, "who": who[:200]}, timeout_s)
    if answer.get("schema") != ORDER_SCHEMA:
        raise ValueError("a daemon of another version")
    return answer


def encode(observation: "Observation") -> bytes:
    """An observation as JSON, without its inventory, which both sides have, and without fields at their defaults.

    JSON has no infinities, but no light is minus infinity: it is written as Python's ``json`` writes it.
    """
    model = _model()
    look = model.model_construct(**{name: getattr(observation, name) for name in model.model_fields})
    return look.model_dump_json(exclude=_LEFT_OUT, exclude_defaults=True).encode()


def decode(data: bytes, inventory: Inventory) -> "Observation":
    """The observation of this inventory.

    Raises:
        ValueError: the data is not an observation.
    """
    from lumctl.health.observation import Observation  # noqa: PLC0415 - see above

    model = _model()
    look = model.model_validate_json(data)
    return Observation(inventory=inventory, **{name: getattr(look, name) for name in model.model_fields})


@cache
def _model() -> "type[BaseModel]":
    """Made from the observation's own fields when first needed: it takes longer than to find that no daemon runs."""
    from dataclasses import fields  # noqa: PLC0415 - see above

    from pydantic import ConfigDict, create_model  # noqa: PLC0415 - see above

    from lumctl.health.observation import Observation  # noqa: PLC0415 - see above

    hints = get_type_hints(Observation)
    members: dict[str, Any] = {
        field.name: (hints[field.name], ...) for field in fields(Observation) if field.name != "inventory"
    }
    return create_model("Look", __config__=ConfigDict(ser_json_inf_nan="constants"), **members)
