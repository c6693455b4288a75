"""What an operator should know of a capture besides its verdicts.

That is which hosts it lacks, and which are not judged by the inventory at hand.
"""

from pathlib import Path

from lumctl.fleet.bundle.capture import ABOUT_CAPTURE, ABOUT_HOST, CaptureManifest, read_capture_manifest
from lumctl.fleet.bundle.files import open_capture
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory


def remarks(path: Path, inventory: Inventory | None) -> tuple[str, ...]:
    """All that there is to say, one sentence each.

    Raises:
        UsageError: the folder cannot be read, or holds nothing.
    """
    folder = open_capture(path)
    about = read_capture_manifest(folder.about) if folder.about is not None else None
    here = {folder.name} if folder.alone else set(folder.hosts)
    said: list[str] = []
    lacking = [host for host in about.hosts if host not in here] if about is not None and not folder.alone else []
    if lacking:
        said.append(f"hosts of this capture that are not in {path}: {', '.join(fold(lacking))}")
    if about is None and any((path / host / ABOUT_HOST).is_file() for host in folder.hosts):
        said.append(f"{path} has no {ABOUT_CAPTURE}: it is a part of a capture, or one that was not finished")
    if inventory is None:
        return tuple(said)
    if about is not None and is_of_another_rack(about, inventory):
        said.append(
            f"judged without {inventory.path}: this is a capture of {', '.join(about.racks)}, which is not in it"
        )
    elif strange := [host for host in sorted(here) if host not in inventory.hosts]:
        said.append(f"judged without {inventory.path}, for they are not in it: {', '.join(fold(strange))}")
    return tuple(said)


def is_of_another_rack(about: CaptureManifest | None, inventory: Inventory) -> bool:
    """Whether a capture says whose it is, and it is not of this inventory, whatever names its hosts share."""
    return about is not None and bool(about.racks) and set(about.racks).isdisjoint(inventory.racks)
