"""``lumctl inventory``: check the description of the racks, and show it with everything resolved."""

from typing import Annotated, Any

import typer

from lumctl.cli import trust
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, UsageError
from lumctl.inventory.load import find_inventory, load_inventory
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.problems import InventoryError, Problem, nearest
from lumctl.inventory.tables import SECTIONS, as_data, rows_of
from lumctl.printable import counted

app = noun_app("Check and show the inventory; enrol its hosts' keys.")

_ONE = {"meshes": "mesh", "switches": "switch"}
_COLUMNS: dict[str, tuple[OutputColumn, ...]] = {
    "racks": (OutputColumn("RACK", "name"), OutputColumn("LOCATION", "location"), OutputColumn("STORE", "store")),
    "hosts": (
        OutputColumn("HOST", "name"),
        OutputColumn("RACK", "rack"),
        OutputColumn("ADDRESS", "address"),
        OutputColumn("ACCELERATORS", "accelerators", right=True),
        OutputColumn("USER", "user", wide=True),
        OutputColumn("PORT", "port", wide=True, right=True),
        OutputColumn("JUMP", "jump", wide=True),
        OutputColumn("SUDO", "sudo", wide=True),
    ),
    "accelerators": (
        OutputColumn("ACCELERATOR", "id"),
        OutputColumn("HOST", "host"),
        OutputColumn("MODEL", "model"),
        OutputColumn("GIB", "memory_gib", right=True),
        OutputColumn("ROLE", "role"),
        OutputColumn("INDEX", "index", wide=True, right=True),
        OutputColumn("PCI", "pci", wide=True),
        OutputColumn("UUID", "uuid", wide=True),
    ),
    "devices": (
        OutputColumn("DEVICE", "id"),
        OutputColumn("KIND", "kind"),
        OutputColumn("DRIVER", "driver"),
        OutputColumn("ADDRESS", "address"),
        OutputColumn("SHAPE", "shape"),
        OutputColumn("PUCS", "pucs", right=True),
        OutputColumn("PORTS", "ports", right=True),
        OutputColumn("USED", "used", right=True),
        OutputColumn("DB/PUC", "loss_per_puc_db", wide=True, right=True),
        OutputColumn("DB/PORT", "loss_per_port_db", wide=True, right=True),
        OutputColumn("SETTLE MS", "settle_ms", wide=True, right=True),
        OutputColumn("STUCK", "stuck", wide=True),
        OutputColumn("DAMAGED", "damaged", wide=True),
        OutputColumn("BLOCKED", "blocked", wide=True),
        OutputColumn("EXCESS DB", "excess", wide=True),
    ),
    "fibres": (
        OutputColumn("FIBRE", "name"),
        OutputColumn("FROM", "from"),
        OutputColumn("TO", "to"),
        OutputColumn("LOSS dB", "loss_db", right=True),
        OutputColumn("CAPACITY", "capacity", right=True),
    ),
    "transponders": (
        OutputColumn("TRANSPONDER", "id"),
        OutputColumn("ACCELERATOR", "accelerator"),
        OutputColumn("INTERFACE", "interface"),
        OutputColumn("DEVICE", "device"),
        OutputColumn("LANE", "lane"),
        OutputColumn("VERIFY", "verify"),
        OutputColumn("DRIVER", "driver", wide=True),
        OutputColumn("TX DBM", "tx_power_dbm", wide=True, right=True),
        OutputColumn("SENSITIVITY DBM", "rx_sensitivity_dbm", wide=True, right=True),
    ),
    "jobs": (
        OutputColumn("JOB", "name"),
        OutputColumn("RACK", "rack"),
        OutputColumn("RANKS", "ranks", right=True),
        OutputColumn("ACCELERATORS", "accelerators"),
        OutputColumn("LINKS", "links"),
        OutputColumn("CIRCUITS", "circuits", right=True),
    ),
}


@verb(app, "validate")
def validate(
    cx: Invocation,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The inventory; else as -i or the usual places say.")
    ] = None,
) -> int:
    """Check an inventory and report all errors with their lines. Exits 2 if there is one."""
    path = find_inventory(file or cx.inventory_path)
    try:
        inventory = load_inventory(path)
        if inventory.policies:
            from lumctl.daemon.autopilot.policy import require_sound

            require_sound(inventory)
    except InventoryError as error:
        if not cx.out.structured:
            raise
        errors = [_error_data(problem) for problem in error.problems]
        found: dict[str, Any] = {"valid": False, "counts": None, "errors": errors, "warnings": []}
        cx.out.document("inventory-validation", {"file": str(path), **found})
        return ExitCode.USAGE
    counts, warnings = _counts(inventory), _warnings(inventory)
    for warning in warnings:
        cx.out.narrate(f"warning: {warning}")
    if cx.out.structured:
        found = {"valid": True, "counts": counts, "errors": [], "warnings": warnings}
        cx.out.document("inventory-validation", {"file": str(path), **found})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([str(path)])
    else:
        told = {noun: count for noun, count in counts.items() if count or noun not in {"switches", "fibres"}}
        shown = [counted(count, noun, _ONE.get(noun, "")) for noun, count in told.items()]
        cx.out.text(f"{path}: {', '.join(shown)}: no errors")
    return ExitCode.DONE


@verb(app, "show")
def show(
    cx: Invocation,
    component: Annotated[
        str | None, typer.Argument(metavar="[COMPONENT]", help="One rack, host, accelerator, device, lane or job.")
    ] = None,
) -> None:
    """Show the inventory with every folded name, default and reference resolved."""
    inventory = cx.inventory
    data = as_data(inventory)
    if component is not None:
        _show_component(cx, inventory, data, component)
    elif cx.out.structured:
        cx.out.document("inventory", data)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row[SECTIONS[section]] for section in SECTIONS for row in data[section]])
    else:
        written = [section for section in SECTIONS if section != "fibres" or inventory.fibres]
        for number, section in enumerate(written):
            cx.out.text(f"\n{section}" if number else section)
            folded = cx.out.format is not OutputFormat.WIDE
            cx.out.table(_COLUMNS[section], rows_of(inventory, section, folded=folded))


def _show_component(cx: Invocation, inventory: Inventory, data: dict[str, Any], name: str) -> None:
    found = {
        section: [row for row in data[section] if row[key] == name]
        for section, key in SECTIONS.items()
        if any(row[key] == name for row in data[section])
    }
    if not found:
        near = nearest(name, [row[key] for section, key in SECTIONS.items() for row in data[section]])
        raise UsageError(
            f"the inventory {inventory.path} has no {name!r}",
            hint=f"did you mean {near}?" if near else "lumctl inventory show -o name lists all components",
        )
    if cx.out.structured:
        empty: dict[str, Any] = {section: [] for section in SECTIONS}
        cx.out.document("inventory", {"path": data["path"], "digest": data["digest"], **empty, **found})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([name])
    else:
        for section in found:
            rows = [row for row in rows_of(inventory, section, folded=False) if row[SECTIONS[section]] == name]
            every = [OutputColumn(column.heading, column.key) for column in _COLUMNS[section]]
            width = max(len(column.heading) for column in every)
            for column in every:
                value = rows[0][column.key]
                cx.out.text(f"{column.heading:<{width}}  {'-' if value in (None, '') else value}")


def _warnings(inventory: Inventory) -> list[str]:
    """What is no error, for the file may be checked on another machine than the one that uses it."""
    from lumctl.devices.drivers import not_installed

    return [f"driver {name!r}: {text}; {advice}" for name, (text, advice) in not_installed(inventory).items()]


def _error_data(problem: Problem) -> dict[str, Any]:
    line, column = problem.mark or (None, None)
    return {
        "file": problem.file,
        "line": line,
        "column": column,
        "message": problem.message,
        "hint": problem.hint,
    }


def _counts(inventory: Inventory) -> dict[str, int]:
    kinds = [device.kind for device in inventory.devices.values()]
    return {
        "racks": len(inventory.racks),
        "hosts": len(inventory.hosts),
        "accelerators": len(inventory.accelerators),
        "lanes": len(inventory.transponders),
        "meshes": kinds.count(DeviceKind.MESH),
        "switches": kinds.count(DeviceKind.SWITCH),
        "fibres": len(inventory.fibres),
        "jobs": len(inventory.jobs),
    }


trust.register(app)
