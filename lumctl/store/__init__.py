"""The database of a rack: assignment, leases, plans, runs, the journal, and the memory of health."""

import hashlib
import os
from pathlib import Path

from lumctl.inventory.model import Inventory
from lumctl.store.actions import ACTION_KINDS, Act
from lumctl.store.approvals import APPROVED, ASKED, REJECTED, SPENT, Approval
from lumctl.store.database import apart, open_engine
from lumctl.store.demands import CANCELLED, NEEDLESS, SERVED, WAITING, QueuedDemand
from lumctl.store.errors import StoreError, StoreHeldError, StoreUnreachableError
from lumctl.store.journal import Break, Head, JournalEntry
from lumctl.store.lease import Lease, LeaseHeldError, LeaseLostError
from lumctl.store.postgres import is_postgres as is_server
from lumctl.store.records import COMES_TO_REST_S, Record, StoredRun, ways_to_finish
from lumctl.store.store import Store

__all__ = [
    "ACTION_KINDS",
    "APPROVED",
    "ASKED",
    "CANCELLED",
    "COMES_TO_REST_S",
    "NEEDLESS",
    "REJECTED",
    "SERVED",
    "SPENT",
    "WAITING",
    "Act",
    "Approval",
    "Break",
    "Head",
    "JournalEntry",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
    "QueuedDemand",
    "Record",
    "Store",
    "StoreError",
    "StoreHeldError",
    "StoreUnreachableError",
    "StoredRun",
    "files_of",
    "open_store",
    "place_of",
    "state_folder",
    "store_at",
    "ways_to_finish",
]


def open_store(inventory: Inventory, rack: str, target: str) -> Store:
    """The store of a rack, or of its simulator: a simulator never shares a store with the rack that it simulates.

    Its place is the first of these that is set: ``$LUMCTL_STATE``, the rack's ``store:``,
    ``$XDG_STATE_HOME/lumctl/RACK``. The first two may be a folder or a database URL. A simulator's store is a folder
    inside that folder, a schema of its own in a PostgreSQL database, or a file next to an SQLite file; the rack's
    ``store:`` is not used for it.

    Raises:
        StoreError: the store's file is damaged, or contains runs of other racks and none of this one.
    """
    place = place_of(inventory, rack, target)
    store = store_at(place, files=files_of(inventory, rack, target), rack=rack)
    # Racks share a server's database on purpose, so another rack's runs say nothing there.
    if not is_server(place):
        try:
            _require_own(store, inventory, rack, target)
        except BaseException:
            store.close()
            raise
    return store


def _require_own(store: Store, inventory: Inventory, rack: str, target: str) -> None:
    """Refuse a file with runs of other racks and none of this one, unless the racks share it: it is the wrong file."""
    others = store.other_racks()
    sharing = {
        name for name in inventory.racks if place_of(inventory, name, target) == place_of(inventory, rack, target)
    }
    if others and not others & sharing:
        kept = ", ".join(sorted(others))
        raise StoreError(
            f"the store at {store.place} belongs to rack {kept} and contains nothing of rack {rack}",
            hint=(
                f"set the store of {rack}: `store:` in {inventory.path}, or $LUMCTL_STATE; if it is lost, give an "
                f"empty folder, then: lumctl store adopt {rack}"
            ),
        )


def files_of(inventory: Inventory, rack: str, target: str) -> Path:
    """The folder for files next to a rack's store. The store is not opened: its database may not exist any more."""
    place = place_of(inventory, rack, target)
    if "://" not in place:
        return Path(place).expanduser()
    folder = state_folder() / rack
    return folder if target == "rack" else folder / f"{target}-{_key(inventory)}"


def place_of(inventory: Inventory, rack: str, target: str) -> str:
    """The folder or database URL of a rack's store, as :func:`open_store` finds it; may hold a password."""
    default = str(state_folder() / rack)
    named = os.environ.get("LUMCTL_STATE")
    place = str(Path(named) / rack) if named and "://" not in named else named or inventory.racks[rack].store or default
    if target == "rack":
        return place
    if named and "://" in named:
        return apart(named, f"{target}_{_key(inventory)}")
    return f"{place if named else default}/{target}-{_key(inventory)}"


def _key(inventory: Inventory) -> str:
    """A key that differs between the simulators of different inventories."""
    return hashlib.sha256(str(inventory.path.resolve()).encode()).hexdigest()[:8]


def store_at(place: str, *, files: Path | None = None, rack: str = "", make: bool = True) -> Store:
    """The store at a folder or a database URL; ``files`` is the folder for the files of a store at a URL.

    Raises:
        StoreError: there is no store, and ``make`` is false.
    """
    if "://" in place:
        return Store(open_engine(place, make=make), files or state_folder(), rack, place)
    folder = Path(place).expanduser()
    return Store(open_engine(folder, make=make), folder, rack, str(folder.absolute()))


def state_folder() -> Path:
    """The user's folder for the program's state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "lumctl"
