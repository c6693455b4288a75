"""``lumctl inventory``: write and check the description of the racks, and show it with everything resolved."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli import inventory_init
from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import ExitCode, RefusedError, UnreachableError, UsageError
from lumctl.inventory.load import find_inventory, read_inventory
from lumctl.inventory.model import DeviceKind, Inventory
from lumctl.inventory.problems import Problem, Problems, nearest, require_known
from lumctl.inventory.tables import SECTIONS, as_data, rows_of
from lumctl.printable import counted

if TYPE_CHECKING:
    from lumctl.devices.endpoints import HostEndpoint
    from lumctl.fleet.enrol import HostKeyOffer

app = noun_app("Write, check and show the inventory; enrol its hosts' keys.")

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
        str | None,
        typer.Argument(metavar="FILE", help="The inventory; by default the one of -i or of the usual places."),
    ] = None,
) -> int:
    """Check an inventory and report all errors with their lines. Exits 2 if there is one.

    A driver that is not installed on this machine is an error here. Other commands use the rest of such an inventory.
    """
    from lumctl.devices.drivers import installed

    path = find_inventory(file or cx.inventory_path)
    problems = Problems(path)
    inventory = read_inventory(path, problems, {info.name for info in installed()})
    # Not a part of loading: the rules and sharing policies that it names are known above the inventory's room only.
    if inventory is not None and (inventory.policies or inventory.sharing.mark is not None):
        from lumctl.daemon.autopilot.policy import add_unsound

        add_unsound(inventory, problems)
    if problems or inventory is None:
        error = problems.error()
        if not cx.out.structured:
            raise error
        errors = [_error_data(problem) for problem in error.problems]
        found: dict[str, Any] = {"valid": False, "counts": None, "errors": errors, "warnings": []}
        cx.out.document("inventory-validation", {"file": str(path), **found})
        return ExitCode.USAGE
    counts = _counts(inventory)
    if cx.out.structured:
        found = {"valid": True, "counts": counts, "errors": [], "warnings": []}
        cx.out.document("inventory-validation", {"file": str(path), **found})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([str(path)])
    else:
        told = {noun: count for noun, count in counts.items() if count or noun not in {"switches", "fibres", "fillers"}}
        shown = [counted(count, noun, _ONE.get(noun, "")) for noun, count in told.items()]
        cx.out.text(f"{path}: {', '.join(shown)}: no errors")
    return ExitCode.DONE


@verb(app, "show", pages=True)
def show(
    cx: Invocation,
    component: Annotated[
        str | None, typer.Argument(metavar="COMPONENT", help="One rack, host, accelerator, device, lane or job.")
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
        "fillers": len(inventory.fillers),
    }


inventory_init.register(app)


_KEY_COLUMNS = (
    OutputColumn("HOST", "host"),
    OutputColumn("KEY", "result"),
    OutputColumn("TYPE", "type"),
    OutputColumn("FINGERPRINT", "fingerprint"),
    OutputColumn("NAME", "name", wide=True),
    OutputColumn("PROBLEM", "problem", wide=True),
)
_TIMEOUT_S = 5.0


@verb(app, "trust")
def trust(
    cx: Invocation,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="HOST", help="By default all hosts.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Fetch the hosts' SSH keys, show their fingerprints, and write the new ones to the known-hosts file."""
    from lumctl.fleet.enrol import HostKeyState, append_keys, fetch_offers, routes_by_distance

    rows: list[dict[str, Any]] = []
    unreachable = []
    try:
        # Jump hosts first: what lies behind one can only be asked once its key is enrolled.
        for routes in routes_by_distance(_endpoints(cx, hosts or [])):
            offers = fetch_offers(routes, timeout_s=_TIMEOUT_S)
            # Before any of these keys is written: a changed key may mean that another machine answers.
            _refuse_changed(offers)
            new = [offer for offer in offers if offer.standing is HostKeyState.NEW]
            if new:
                _ask(cx, new, yes=yes)
                for path in append_keys(new):
                    cx.out.narrate(f"wrote {path}")
            rows += [_row(offer) for offer in offers]
            unreachable += [offer for offer in offers if offer.problem]
    finally:
        # Also after an error: keys that were written before it stay written.
        _show(cx, rows)
    if unreachable:
        problems = [offer.problem.message for offer in unreachable if offer.problem]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        hint = "the other hosts are enrolled; run it again for the rest"
        if len(unreachable) == len(rows):
            hint = "no host answered; see their addresses: lumctl inventory show"
        raise UnreachableError(f"{problems[0]}{more}", hint=hint)


def _endpoints(cx: Invocation, names: list[str]) -> "list[HostEndpoint]":
    from lumctl.devices.endpoints import rack_endpoints, sim_endpoints

    at = sim_endpoints(cx.inventory) if cx.target is Target.SIM else rack_endpoints(cx.inventory)
    require_known("host", names, at.hosts)
    return [at.hosts[name] for name in names or at.hosts]


def _refuse_changed(offers: "list[HostKeyOffer]") -> None:
    from lumctl.fleet.ssh.host_keys import changed_hint, changed_message

    for offer in offers:
        if offer.known and offer.key:
            name = offer.route.key_name
            raise RefusedError(
                changed_message(offer.route.label, name, offer.key, offer.known), hint=changed_hint(name, offer.known)
            )


def _ask(cx: Invocation, new: "list[HostKeyOffer]", *, yes: bool) -> None:
    for offer in new:
        cx.out.narrate(f"{offer.route.label} ({offer.route.key_name}): {offer.key}")
    what = "this key" if len(new) == 1 else f"these {len(new)} keys"
    cx.confirm(f"enrol {what}?", yes=yes)


def _row(offer: "HostKeyOffer") -> dict[str, Any]:
    return {
        "host": offer.route.label,
        "result": "enrolled" if offer.standing == "new" else str(offer.standing),
        "type": offer.key.kind if offer.key else None,
        "fingerprint": offer.key.fingerprint if offer.key else None,
        "name": offer.route.key_name,
        "problem": offer.problem.message if offer.problem else None,
    }


def _show(cx: Invocation, rows: list[dict[str, Any]]) -> None:
    if cx.out.structured:
        cx.out.document("trust", {"hosts": rows})
    elif rows:
        cx.out.table(_KEY_COLUMNS, rows)
