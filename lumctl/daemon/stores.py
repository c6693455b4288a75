"""The stores of an inventory as the daemon itself uses them: where files lie, where histories end, and late writes."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.model import Inventory
from lumctl.store import Store, StoreError, open_store


class Stores:
    """Kept open beside the site that looks, which may be opened anew at any time."""

    def __init__(self, inventory: Inventory, target: str) -> None:
        """Open the store of each rack.

        Raises:
            UsageError, RefusedError: one cannot be opened.
        """
        self._inventory, self._target = inventory, target
        self._stores: dict[str, Store] = {}
        try:
            for rack in inventory.racks:
                self._stores[rack] = open_store(inventory, rack, target)
        except BaseException:
            self.close()
            raise

    def files(self, rack: str) -> Path:
        """The folder for files that belong to the store of a rack."""
        return self._stores[rack].files

    def last_states(self) -> dict[tuple[str, str], State]:
        """The state in which the histories leave each component, by its id and kind."""
        return {key: state for store in self._stores.values() for key, state in store.last_states().items()}

    def write(self, rack: str, changes: Sequence[Transition]) -> None:
        """Add to the history of a rack; of a rack that was not there when the daemon began, the site alone does it.

        Raises:
            StoreError: the store has no room.
        """
        if rack not in self._stores:
            return
        try:
            self._stores[rack].add_transitions(changes)
        except StoreError:
            # One that was opened while the disk was full stays closed to writing: the next attempt needs another.
            self._stores[rack].close()
            self._stores[rack] = open_store(self._inventory, rack, self._target)
            raise

    def close(self) -> None:
        """Give back the databases."""
        for store in self._stores.values():
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
