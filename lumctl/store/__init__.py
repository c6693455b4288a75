"""The database of a rack: assignment, leases, plans, runs and the journal, and what health remembers."""

import hashlib
import os
from pathlib import Path

from lumctl.inventory.model import Inventory
from lumctl.store.actions import ACTION_KINDS
from lumctl.store.acts import Act
from lumctl.store.approvals import APPROVED, ASKED, REJECTED, SPENT, Approval
from lumctl.store.database import open_engine
from lumctl.store.errors import StoreError, StoreUnreachableError
from lumctl.store.journal import Break, Entry, Head
from lumctl.store.lease import Lease, LeaseHeldError, LeaseLostError
from lumctl.store.records import COMES_TO_REST_S, Record, Run, ways_to_finish
from lumctl.store.store import Store

__all__ = [
    "ACTION_KINDS",
    "APPROVED",
    "ASKED",
    "COMES_TO_REST_S",
    "REJECTED",
    "SPENT",
    "Act",
    "Approval",
    "Break",
    "Entry",
    "Head",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
    "Record",
    "Run",
    "Store",
    "StoreError",
    "StoreUnreachableError",
    "files_of",
    "open_store",
    "place_of",
    "state_folder",
    "store_at",
    "ways_to_finish",
]


def open_store(inventory: Inventory, rack: str, target: str) -> Store:
    """The store of a rack, or of its simulator: a simulator never shares a store with the rack it stands for.

    In this order: ``$LUMCTL_STATE``, the rack's ``store:``, ``$XDG_STATE_HOME/lumctl/RACK``. The first two may be a
    folder or a database URL; a simulator of a rack whose store is a URL keeps its own below the state folder.
    """
    return store_at(place_of(inventory, rack, target), files=state_folder() / rack, rack=rack)


def files_of(inventory: Inventory, rack: str, target: str) -> Path:
    """The folder for files beside a rack's store, without opening it: its database may be gone."""
    place = place_of(inventory, rack, target)
    return state_folder() / rack if "://" in place else Path(place).expanduser()


def place_of(inventory: Inventory, rack: str, target: str) -> str:
    """The folder or database URL of a rack's store, as :func:`open_store` finds it; may hold a password."""
    default = str(state_folder() / rack)
    named = os.environ.get("LUMCTL_STATE")
    place = str(Path(named) / rack) if named and "://" not in named else named or inventory.racks[rack].store or default
    if target == "rack":
        return place
    key = hashlib.sha256(str(inventory.path.resolve()).encode()).hexdigest()[:8]
    base = place if named and "://" not in named else default
    return f"{base}/{target}-{key}"


def store_at(place: str, *, files: Path | None = None, rack: str = "", make: bool = True) -> Store:
    """The store at a folder or a database URL; ``files`` is where a URL's store keeps its files.

    Without ``make`` one that is not there is not made: that is a ``StoreError``.
    """
    if "://" in place:
        return Store(open_engine(place, make=make), files or state_folder(), rack, place)
    folder = Path(place).expanduser()
    return Store(open_engine(folder, make=make), folder, rack, str(folder.absolute()))


def state_folder() -> Path:
    """The user's own folder for what the program keeps."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "lumctl"
