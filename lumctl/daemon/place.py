"""Where a daemon and those who ask it meet: a folder of this user alone, named after what is watched."""

import hashlib
import os
from pathlib import Path

from lumctl.devices.endpoints import private_runtime_folder
from lumctl.inventory.model import Inventory

SOCKET = "state.sock"
LOCK = "watch.lock"


def meeting_folder(inventory: Inventory, target: str) -> Path:
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
    return meeting_folder(inventory, target) / SOCKET
