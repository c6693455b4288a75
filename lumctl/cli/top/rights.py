"""Whether anything may be changed from the dashboard: not where it was asked to only show, or the store says no."""

import os
from typing import TYPE_CHECKING

from lumctl.errors import LumctlError

if TYPE_CHECKING:
    from lumctl.inventory.model import Inventory

VARIABLE = "LUMCTL_READ_ONLY"


def why_read_only(inventory: "Inventory", target: str, *, asked: bool) -> str:
    """Why the dashboard only shows; empty where it may act.

    Nothing is applied without a line in the journal, so that whoever cannot write a rack's store cannot change the
    rack. A store that is merely out of reach says nothing of rights: it may come back.
    """
    if asked:
        return "read-only, as asked for: start lumctl top without --read-only to change anything"
    if os.environ.get(VARIABLE, "") not in {"", "0"}:
        return f"read-only, as ${VARIABLE} says: unset it to change anything"
    for rack in inventory.racks:
        if reason := _why_unwritable(inventory, rack, target):
            return reason
    return ""


def _why_unwritable(inventory: "Inventory", rack: str, target: str) -> str:
    from lumctl.store import StoreUnreachableError, open_store

    try:
        store = open_store(inventory, rack, target)
    except StoreUnreachableError:
        return ""
    except LumctlError as error:
        return f"read-only: {error.message}"
    try:
        reason = store.unwritable
    finally:
        store.close()
    return f"read-only: the store of {rack} cannot be written: {reason}" if reason else ""
