"""Find an inventory, read it, and report all its errors at once."""

import hashlib
import os
import shlex
from collections.abc import Collection
from pathlib import Path

from lumctl.errors import LumctlError, UsageError
from lumctl.inventory.cables import resolve_fibres, resolve_power, resolve_transponders
from lumctl.inventory.devices import resolve_devices
from lumctl.inventory.document_reader import Doubts, Unsure, read_document
from lumctl.inventory.files import decoded, likely_inventories, read_bytes, writable_by_others
from lumctl.inventory.hosts import (
    check_reservations,
    check_ties,
    resolve_gateways,
    resolve_hosts,
    resolve_probes,
    resolve_racks,
)
from lumctl.inventory.job_lanes import check_lanes
from lumctl.inventory.jobs import resolve_fillers, resolve_jobs
from lumctl.inventory.model import Inventory, Thresholds
from lumctl.inventory.policy_resolution import resolve_policies, resolve_receivers, resolve_sharing
from lumctl.inventory.positions import MarkedDict, MarkedList, found, read_yaml
from lumctl.inventory.problems import Mark, Problems, listing, nearest
from lumctl.inventory.scope import Scope
from lumctl.inventory.torus_resolution import resolve_tori

EXAMPLES = (
    "prototype",
    "rack64",
    "switched",
    "ring4",
    "ring8",
    "mi300",
    "two-meshes",
    "switch-and-mesh",
    "four-meshes",
    "rails",
    "torus64",
)

_MOST_HINTS = 4
_PACKAGE = Path(__file__).resolve().parent.parent
# An installed package has the examples inside; in a checkout they are beside it.
_FOLDERS = (_PACKAGE / "examples", _PACKAGE.parent / "inventories")


def example(name: str) -> Path:
    """The file of an example inventory: one of :data:`EXAMPLES`.

    Raises:
        UsageError: there is no such example, or this installation lacks it.
    """
    if name not in EXAMPLES:
        near = nearest(name, EXAMPLES)
        raise UsageError(
            f"{name!r} is not an example inventory",
            hint=f"did you mean {near}?" if near else f"one of: {', '.join(EXAMPLES)}",
        )
    for folder in _FOLDERS:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return path
    raise UsageError(f"this installation of lumctl lacks the example inventory {name!r}", hint="install it again")


def find_inventory(path: str | None) -> Path:
    """The inventory to use: ``path``, ``$LUMCTL_INVENTORY``, ``./lumctl.yaml``, or the one in the user's settings.

    Raises:
        UsageError: no file was named and the usual places have none, or another user may have written the file.
    """
    named = path or os.environ.get("LUMCTL_INVENTORY")
    if named:
        return Path(named)
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    usual = (Path("lumctl.yaml"), settings / "lumctl" / "inventory.yaml")
    for candidate in usual:
        if candidate.is_file():
            if reason := writable_by_others(candidate):
                # The file's hooks and drivers run as this user, so a file that was not named must belong to this user.
                raise UsageError(
                    f"{candidate.absolute()} is not used, because it was not requested and {reason}",
                    hint=f"inspect it; to use it nevertheless: lumctl -i {shlex.quote(str(candidate.absolute()))}",
                )
            return candidate
    raise UsageError(
        f"no inventory found: neither -i/--inventory nor $LUMCTL_INVENTORY is set, and neither ./{usual[0]} nor "
        f"{usual[1]} exists",
        hint=_where_inventories_are(),
    )


def _where_inventories_are() -> str:
    """How to use an inventory of this folder that has another name; without one, how to write one, and the examples."""
    # Those without errors first: the commands of the hint must work.
    if here := sorted(likely_inventories(Path()), key=lambda path: not _is_valid(path)):
        # A name that begins with a dash could be taken as an option.
        words = [
            shlex.quote(f"./{path.name}" if path.name.startswith("-") else path.name) for path in here[:_MOST_HINTS]
        ]
        there = f"{listing(words)} of this folder {'looks' if len(words) == 1 else 'look'} like one"
        # An absolute path, because the variable is still set after a change of the folder.
        whole = shlex.quote(str(here[0].absolute()))
        return f"{there}: add -i {words[0]}, or for all commands: export LUMCTL_INVENTORY={whole}"
    try:
        shipped = example(EXAMPLES[0])
    except UsageError:
        return "write one: lumctl inventory init"
    return (
        f"write one: lumctl inventory init; or use an example of {shipped.parent}: add -i {shlex.quote(str(shipped))}"
    )


def _is_valid(path: Path) -> bool:
    try:
        load_inventory(path)
    except LumctlError:
        return False
    return True


def load_inventory(path: Path) -> Inventory:
    """The inventory at ``path``, resolved and checked.

    Raises:
        InventoryError: the file cannot be read or has errors; the exception lists all of them.
    """
    problems = Problems(path)
    inventory = read_inventory(path, problems)
    if problems or inventory is None:
        raise problems.error()
    return inventory


def read_inventory(path: Path, problems: Problems, drivers: Collection[str] | None = None) -> Inventory | None:
    """The inventory at ``path`` without its invalid parts, all errors of which are added to ``problems``.

    It is ``None`` if too little is left. ``drivers`` are the installed drivers: if given, the use of any other is an
    error. To load an inventory they are not needed: the commands for its other devices work.
    """
    content = read_bytes(path)
    if isinstance(content, str):
        problems.add(None, content, _file_meant(path))
        return None
    return _read(content, path, problems, drivers)


def _file_meant(path: Path) -> str | None:
    """Hints if the file cannot be read: the variable that names it, and an inventory beside it with a like name."""
    named = os.environ.get("LUMCTL_INVENTORY")
    hints = ["$LUMCTL_INVENTORY names this file"] if named and Path(named) == path else []
    try:
        path.stat()
    except FileNotFoundError:
        near = nearest(path.name, [each.name for each in likely_inventories(path.parent)])
        hints += [f"did you mean {shlex.quote(str(path.with_name(near)))}?"] if near else []
    except (OSError, ValueError):
        pass
    return "; ".join(hints) or None


def inventory_from(content: bytes, path: Path) -> Inventory:
    """The inventory in ``content``, read as if it were the file at ``path``, resolved and checked.

    Raises:
        InventoryError: the content has errors; the exception lists all of them.
    """
    problems = Problems(path)
    inventory = _read(content, path, problems)
    if problems or inventory is None:
        raise problems.error()
    return inventory


def _read(content: bytes, path: Path, problems: Problems, drivers: Collection[str] | None = None) -> Inventory | None:
    text = decoded(content, problems)
    if text is None:
        return None
    data = read_yaml(text, problems)
    if not isinstance(data, MarkedDict):
        if not problems:
            problems.add(Mark(1, 1), f"found {found(data)}, expected a mapping with the keys lumctl, racks, hosts, ...")
        return None
    if drivers is not None:
        _check_drivers(data, drivers, problems)
    return _resolve(data, path, content, problems)


def _check_drivers(data: MarkedDict, drivers: Collection[str], problems: Problems) -> None:
    """Report drivers that are not installed, also those of entries that are invalid for another reason."""
    defaults = data.get("defaults")
    entries = [defaults.get("transponder")] if isinstance(defaults, MarkedDict) else []
    for section in ("devices", "transponders"):
        entries += data[section] if isinstance(data.get(section), MarkedList) else []
    for entry in entries:
        if isinstance(entry, MarkedDict) and isinstance(driver := entry.get("driver"), str) and driver not in drivers:
            problems.unknown(entry.value_marks["driver"], "driver", driver, drivers, listed=True)


def _resolve(data: MarkedDict, path: Path, content: bytes, problems: Problems) -> Inventory | None:
    doubts = Doubts(Unsure(), Unsure())
    document = read_document(data, problems, doubts)
    if document is None:
        return None
    scope = Scope(path.parent.absolute(), problems, doubts)
    # In this order: each step refers to names that the steps before it define.
    resolve_racks(document, scope)
    resolve_hosts(document, scope)
    check_ties(scope)
    resolve_gateways(document, scope)
    resolve_devices(document, scope)
    resolve_power(document, scope)
    resolve_transponders(document, scope)
    fibres = resolve_fibres(document, scope)
    resolve_tori(document, scope, fibres)
    sound_jobs = resolve_jobs(document, scope)
    resolve_fillers(document, scope)
    check_reservations(document, scope)
    receivers = resolve_receivers(document.receivers, scope)
    thresholds = Thresholds(**document.thresholds.model_dump()) if document.thresholds else Thresholds()
    inventory = Inventory(
        path=path,
        digest=_digest(content, scope),
        racks=scope.racks,
        hosts=scope.hosts,
        accelerators=scope.accelerators,
        transponders=scope.transponders,
        devices=scope.devices,
        jobs=scope.jobs,
        thresholds=thresholds,
        probes=resolve_probes(document, thresholds, problems),
        fibres=fibres,
        receivers=receivers,
        policies=resolve_policies(document.policies, scope, receivers),
        sharing=resolve_sharing(document.sharing, scope),
        fillers=scope.fillers,
    )
    check_lanes(inventory, sound_jobs, problems)
    return inventory


def _digest(content: bytes, scope: Scope) -> str:
    """The SHA-256 of the file. If there are mesh files, it covers the file and the SHA-256 of each mesh file."""
    digest = hashlib.sha256(content)
    for mesh in scope.contents:
        digest.update(hashlib.sha256(mesh).digest())
    return digest.hexdigest()
