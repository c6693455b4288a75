"""``lumctl fabric route``: find routes for circuits between ports, next to the live circuits."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.fabric_mesh import DeviceOption, LimitOption, MeshOption, NamedMesh, subject
from lumctl.cli.fabric_routes import (
    EXACT,
    optimal_document,
    rearranged_document,
    route_document,
    routes_beside_live,
    solver_is_installed,
)
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.progress import progress
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.errors import ExitCode, UsageError
from lumctl.fabric import Objective, circuit_losses
from lumctl.fabric.network.model import ends_of, network_of
from lumctl.fabric.network.routing import route_network
from lumctl.fabric.network.tracing import NetworkStates, network_changes, network_states
from lumctl.fabric.search import Unroutable
from lumctl.inventory.problems import nearest
from lumctl.inventory.wiring import circuits_of
from lumctl.printable import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lumctl.fabric import PortPair
    from lumctl.fabric.network.model import Ends
    from lumctl.fabric.network.tracing import NetworkRoute

_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("PUCS", "count", right=True),
    OutputColumn("LOSS dB", "loss_db", right=True),
    OutputColumn("MARGIN dB", "margin_db", right=True),
    OutputColumn("THROUGH", "through"),
)


def register(app: typer.Typer) -> None:
    """Add ``route`` to the commands of ``fabric``."""
    verb(app, "route")(command)


def command(
    cx: Invocation,
    demands: Annotated[
        list[str],
        typer.Argument(metavar="A:B...", help="Pairs of ports to connect: 3:17, or m0:3,m1:9 across devices."),
    ],
    mesh: MeshOption = None,
    device: DeviceOption = None,
    objective: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Objective: pucs (few), loss (of the worst route), crosstalk, or feasible (any routes).",
        ),
    ] = Objective.PUCS,
    optimal: Annotated[
        bool,
        typer.Option("--optimal", help="Find optimal routes, or prove that none exist. Needs lumctl[optimal]."),
    ] = False,
    may_move: Annotated[
        bool,
        typer.Option(
            "--may-move", help="If there is no room beside the existing circuits, move as few of them as possible."
        ),
    ] = False,
    limit: LimitOption = 60.0,
) -> int:
    """Find routes for circuits, all at once; nothing is written to any device.

    A circuit between two ports carries light in both directions; directed lanes need two circuits. MARGIN is the
    received power above the receiver's limit, between transponders of the inventory. On a device of the inventory the
    present circuits stay unchanged. Ports written with their devices, such as m0:3,m1:9, are connected through all
    devices and fibres of their rack. Exit code 5: no routes exist, or none were found; the message says which.

    When --limit is over, or at Ctrl-C, the best routes so far are printed, if there are any. --optimal begins with the
    routes that are found without it, so its result is never worse, and prints what is proven: the total of PUCs
    (programmable unit cells), or with --objective loss the loss of the worst circuit in dB, with the excess of single
    PUCs and ports.
    """
    wanted = _objective(objective)
    if _names_devices(demands):
        if mesh or device or optimal or wanted is not Objective.PUCS:
            raise UsageError(
                "across devices only loss can be the objective",
                hint="leave --mesh, --device, --objective, --optimal out",
            )
        return _across(cx, demands, limit)
    about = subject(cx, mesh, device)
    pairs = [pair_of(text) for text in demands]
    if optimal and may_move:
        raise UsageError("--optimal moves nothing", hint="leave out --may-move")
    began = time.monotonic()

    def left() -> float:
        return began + limit - time.monotonic()

    interrupted = False
    asked = f" --objective {wanted}" if wanted in EXACT and wanted is not Objective.PUCS else ""
    command = f"lumctl fabric route {about.option} {' '.join(demands)}{asked}"
    with (
        progress(f"routing {counted(len(pairs), 'circuits')}", quiet=cx.out.quiet) as tell,
        nullcontext() if may_move else _with_next_command(command, optimal_s=limit if optimal else None),
    ):
        if optimal:
            document, interrupted = optimal_document(about, pairs, wanted, limit, left, tell)
        elif may_move:
            document = rearranged_document(about, pairs, left)
        else:
            document = route_document(about, routes_beside_live(about, pairs, wanted, left))
    document["seconds"] = round(time.monotonic() - began, 4)
    if cx.out.structured:
        cx.out.document("route", document)
    else:
        _tell(cx, about, document)
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def _across(cx: Invocation, demands: "Sequence[str]", limit_s: float) -> int:
    """Find routes through several devices and print them hop by hop."""
    began = time.monotonic()
    ends = began + limit_s
    with progress(f"routing {counted(len(demands), 'circuits')}", quiet=cx.out.quiet):
        try:
            document = _network_document(cx, demands, lambda: ends - time.monotonic())
        except Unroutable as refused:
            # More time helps only if the time was up: the search may also have given up earlier.
            if not refused.proven and time.monotonic() >= ends:
                refused.hint = f"allow more time: lumctl fabric route {' '.join(demands)} --limit {4 * limit_s:g}"
            raise
    document["seconds"] = round(time.monotonic() - began, 4)
    if cx.out.structured:
        cx.out.document("route", document)
    else:
        cx.out.table(_NETWORK_COLUMNS, list(_network_rows(document)))
    return ExitCode.DONE


@contextmanager
def _with_next_command(prefix: str, *, optimal_s: float | None) -> Iterator[None]:
    """If a search gave up although routes may exist, add a hint with a command that finds them or excludes them.

    ``prefix`` is the command without ``--optimal``. ``optimal_s`` is the limit of a search that was already optimal.
    """
    try:
        yield
    except Unroutable as refused:
        if not refused.proven and optimal_s is not None:
            refused.hint = f"allow more time: {prefix} --optimal --limit {2 * optimal_s:g}"
        elif not refused.proven:
            install = "" if solver_is_installed() else "pip install 'lumctl[optimal]', then "
            refused.hint = f"find routes or prove that none exist: {install}{prefix} --optimal"
        raise


def _tell(cx: Invocation, about: NamedMesh, document: dict[str, Any]) -> None:
    rows = [
        {
            "id": "{}:{}".format(*circuit["ports"]),
            "count": len(circuit["pucs"]),
            "loss_db": f"{circuit['loss_db']:.2f}",
            "margin_db": f"{circuit['margin_db']:.2f}" if "margin_db" in circuit else None,
            "through": " ".join(
                f"{puc}{'x' if state == 'cross' else '='}"
                for puc, state in zip(circuit["pucs"], circuit["states"], strict=True)
            ),
        }
        for circuit in document["circuits"]
    ]
    cx.out.table(_COLUMNS, rows)
    cx.out.narrate(f"{_proven_words(document)}; {document['seconds']:.3g} s")
    for at, step in enumerate(document.get("steps", ()), start=1):
        a, b = step["circuit"]
        name = about.live.get((a, b), "new")
        cx.out.narrate(f"step {at}: {a}:{b} ({name}), {len(step['puc_changes'])} PUCs{', parked' * step['parked']}")


def _proven_words(document: dict[str, Any]) -> str:
    """The cost of the routes and what is proven about it: ``323 PUCs together, proven``."""
    together = f"{document['total_pucs']} PUCs together"
    found = document.get("optimal")
    if found is None:
        return f"{together}, lower bound {document['total_bound']}"
    if found["objective"] == Objective.LOSS:
        counted_value, bound = f"{found['value']:.2f} dB lost by the worst route", f"{found['bound']:.2f} dB"
    else:
        counted_value, bound = together, f"{found['bound']:g}"
    if found["status"] == "optimal":
        proven = "any routes were accepted" if found["objective"] == Objective.FEASIBLE else "proven"
    else:
        gap = "" if found["gap"] is None else f", gap {found['gap']:.1%}"
        proven = f"lower bound {bound}{gap}, not proven"
    return f"{counted_value}, {proven}" + ("" if counted_value == together else f"; {together}")


def pair_of(text: str) -> "PortPair":
    """Parse two ports, such as ``3:17``.

    Raises:
        UsageError: the text is not a pair of ports.
    """
    a, colon, b = text.partition(":")
    if not (colon and a.isdecimal() and b.isdecimal()):
        raise UsageError(f"{text!r} is not a pair of ports", hint="write it as 3:17")
    return int(a), int(b)


def _objective(word: str) -> Objective:
    if word in {each.value for each in Objective}:
        return Objective(word)
    near = nearest(word, [each.value for each in Objective])
    raise UsageError(
        f"{word!r} is not a known objective",
        hint=f"did you mean {near}?" if near else f"one of: {', '.join(Objective)}",
    )


_NETWORK_COLUMNS = (
    OutputColumn("CIRCUIT", "id"),
    OutputColumn("HOP", "hop"),
    OutputColumn("PUCS", "count", right=True),
    OutputColumn("THEN BY", "fibre"),
    OutputColumn("LOSS dB", "loss_db", right=True),
)


def _names_devices(demands: "Sequence[str]") -> bool:
    """Whether circuits name the devices of their ports, as in ``m0:3,m1:9``."""
    return any("," in demand for demand in demands)


def _network_document(cx: "Invocation", demands: "Sequence[str]", left: "Callable[[], float]") -> dict[str, Any]:
    """Routes through the devices of one rack, next to the recorded circuits, found in the time ``left`` (seconds)."""
    wanted = [ends_of(text) for text in demands]
    devices = cx.inventory.devices
    racks = {devices[place.device].rack for ends in wanted for place in ends if place.device in devices}
    if len(racks) > 1:
        raise UsageError(
            "the ports are in different racks",
            hint="put their devices in one rack of the inventory: a change holds the lease of one rack",
        )
    # Without a known device any rack will do: the search reports the unknown one.
    network = network_of(cx.inventory, next(iter(racks), next(iter(cx.inventory.racks))))
    states, live = _recorded(cx, set(network.devices))
    routes = route_network(network, wanted, states=states, live=live, left=left)
    changes = network_changes(network, states, routes)
    return {
        "circuits": [_network_route_document(found) for found in routes],
        "puc_changes": [
            {"device": device, "puc": puc, "to": state.word}
            for device, changed in changes.pucs.items()
            for puc, state in changed.items()
        ],
        "connect": {device: [list(pair) for pair in pairs] for device, pairs in changes.connect.items()},
        "disconnect": {device: [list(pair) for pair in pairs] for device, pairs in changes.disconnect.items()},
    }


def _recorded(cx: "Invocation", devices: set[str]) -> "tuple[NetworkStates, list[Ends]]":
    """The recorded states of the devices, and the ends of the jobs' circuits that those states carry."""
    with Context(cx.inventory, cx.target) as context:
        held = {each: known for each in devices if (known := context.known_cells(each))}
        made = circuits_of(context.inventory, context.assignment())
    carried = circuit_losses(cx.inventory, held, made)
    live = [(circuit.a.place, circuit.b.place) for circuit in made if circuit.id in carried]
    return network_states(cx.inventory, held), live


def _network_route_document(found: "NetworkRoute") -> dict[str, Any]:
    return {
        "ends": [str(found.path.start), str(found.path.exit)],
        "hops": [
            {
                "device": segment.device,
                "ports": list(segment.ports),
                "pucs": list(segment.pucs),
                "states": [state.word for _, state in found.passes(segment)],
            }
            for segment in found.path.segments
        ],
        "fibres": list(found.path.fibres),
        "loss_db": round(found.loss_db, 3),
    }


def _network_rows(document: dict[str, Any]) -> "Iterator[dict[str, str]]":
    """A row for each hop of each circuit, for :data:`_NETWORK_COLUMNS`."""
    for circuit in document["circuits"]:
        last = len(circuit["hops"]) - 1
        for at, hop in enumerate(circuit["hops"]):
            yield {
                "id": "{},{}".format(*circuit["ends"]) if at == 0 else " ",
                "hop": "{}:{}:{}".format(hop["device"], *hop["ports"]),
                "count": str(len(hop["pucs"])),
                "fibre": circuit["fibres"][at] if at < last else " ",
                "loss_db": f"{circuit['loss_db']:.2f}" if at == last else " ",
            }
