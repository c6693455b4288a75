"""``lumctl fabric matchings``: use a mesh as an all-to-all switch, with routes and proven bounds for each matching."""

import time
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.fabric_mesh import DeviceOption, LimitOption, MeshOption, subject
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.progress import progress
from lumctl.cli.verbs import verb
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.fabric.documents import circuit_document, states_document
from lumctl.fabric.matchings import AllToAllSearch
from lumctl.printable import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from lumctl.cli.fabric_mesh import NamedMesh
    from lumctl.fabric.matchings import AllToAll

_COLUMNS = (
    OutputColumn("MATCHING", "at", right=True),
    OutputColumn("CIRCUITS", "circuits", right=True),
    OutputColumn("PUCS", "pucs", right=True),
    OutputColumn("BOUND", "bound", right=True),
    OutputColumn("GAP", "gap", right=True),
    OutputColumn("PAIRS", "pairs", wide=True),
)
_MOST_PORTS = 256


def register(app: typer.Typer) -> None:
    """Add ``matchings`` to the commands of ``fabric``."""
    verb(app, "matchings")(command)


def command(
    cx: Invocation,
    ports: Annotated[
        str, typer.Option("--ports", metavar="COUNT|P,P,...", help="How many ports to connect, or a list of ports.")
    ],
    mesh: MeshOption = None,
    device: DeviceOption = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed that decides how the pairs are drawn.")] = 0,
    optimal: Annotated[
        bool,
        typer.Option(
            "--optimal", help="Prove a tighter bound for each matching by its linear relaxation. Takes longer."
        ),
    ] = False,
    tour: Annotated[
        bool,
        typer.Option(
            "--tour", help="Also print the order that switches through the matchings with the fewest changes."
        ),
    ] = False,
    limit: LimitOption = 60.0,
) -> int:
    """Find the smallest set of matchings that connects all pairs of ports, with routes for each.

    At least one matching less than there are ports is needed. If ports are crowded, a higher minimum is proven, and the
    true minimum may be higher still. BOUND is a lower bound for the PUCs (programmable unit cells) that the circuits of
    a matching pass, each circuit taken alone; with --optimal, a lower bound proven for all of them together.

    When the --limit has passed, or at Ctrl-C, the best set so far is printed; it may lack pairs; these are listed.
    """
    about = subject(cx, mesh, device)
    began = time.monotonic()
    with progress("drawing matchings", quiet=cx.out.quiet) as tell:
        search = AllToAllSearch(
            about.mesh,
            _ports(ports),
            condition=about.condition,
            rng=Random(seed),  # noqa: S311 - no secret
            limit_s=limit,
            tell=tell,
        )
        found, interrupted = _searched(search)
        if found.left and not found.matchings:
            raise RefusedError(
                f"time ran out before any of {counted(len(found.left), 'pairs')} had a route",
                hint=f"allow more time: lumctl fabric matchings {about.option} --ports {ports} --limit {4 * limit:g}",
            )
        seconds = time.monotonic() - began
        bounds = [each.bound for each in found.matchings]
        if optimal and not interrupted:
            interrupted = _tighten(about, found, bounds, limit, tell)
    document = _document(about, found, bounds) | {"seed": seed, "seconds": round(seconds, 4)}
    if tour and not interrupted:
        document["tour"] = _tour(about, found)
    if cx.out.structured:
        cx.out.document("matchings", document)
    else:
        _tell(cx, about, found, document)
    return ExitCode.INTERRUPTED if interrupted else ExitCode.DONE


def _searched(search: AllToAllSearch) -> "tuple[AllToAll, bool]":
    """The result of the search, and whether Ctrl-C ended the search.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed before anything was found.
    """
    try:
        return search.run(), False
    except KeyboardInterrupt:
        found = search.best()
        if found is None:
            raise
        return found, True


def _tell(cx: Invocation, about: "NamedMesh", found: "AllToAll", document: dict[str, Any]) -> None:
    cx.out.table(_COLUMNS, [_row(at, each) for at, each in enumerate(document["matchings"])])
    total, bound, count = document["total_pucs"], document["total_bound"], len(found.matchings)
    least = f"{found.least} at least"
    if not found.left:
        least = "proven" if count <= found.least else f"{least}, gap {_gap(count, found.least)}"
    cx.out.narrate(
        f"{about.mesh.name}, {len(found.ports)} ports: {counted(count, 'matchings')}, {least}; {total} PUCs, lower "
        f"bound {bound} ({_gap(total, bound)}); {document['seconds']:.2f} s"
    )
    if found.left:
        cx.out.narrate(
            f"incomplete: time ran out before {counted(len(found.left), 'pairs')} had routes, such as {{}}:{{}}; "
            "allow more time with --limit".format(*found.left[0])
        )
    for pair in found.unreachable:
        cx.out.narrate("no route exists from {} to {}, even alone".format(*pair))
    if "tour" in document:
        told = document["tour"]
        order = " ".join(map(str, told["order"]))
        cx.out.narrate(
            f"round robin in the order {order}: {told['changes']} PUC changes per round, lower bound {told['bound']}"
        )


def _ports(text: str) -> int | tuple[int, ...]:
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise UsageError(f"--ports: found {text!r}", hint="a number of ports, or port numbers separated by commas")
    numbers = tuple(int(word) for word in words)
    if len(numbers) > 1:
        return numbers
    if numbers[0] > _MOST_PORTS:
        raise UsageError(f"--ports: {numbers[0]} is more than any mesh can have", hint=f"{_MOST_PORTS} at most")
    return numbers[0]


def _tighten(
    about: "NamedMesh", found: "AllToAll", bounds: list[int], limit_s: float, tell: "Callable[[str], None]"
) -> bool:
    """Prove tighter bounds of the matchings one after the other, within ``limit_s``; return whether Ctrl-C ended it."""
    from lumctl.fabric.research.exact import lower_bound

    known, ends = about.condition, time.monotonic() + limit_s
    try:
        for at, matching in enumerate(found.matchings):
            tell(f"bound of matching {at + 1} of {len(found.matchings)}")
            pairs = [each.ports for each in matching.routes]
            left_s = max(ends - time.monotonic(), 0.0)
            proven = lower_bound(about.mesh, pairs, stuck=known.stuck, damaged=known.damaged, time_limit_s=left_s)
            # A relaxation that ran out of time may prove less than was known before.
            bounds[at] = max(bounds[at], int(proven.value))
    except KeyboardInterrupt:
        return True
    return False


def _document(about: "NamedMesh", found: "AllToAll", bounds: list[int]) -> dict[str, Any]:
    matchings = [
        {
            "circuits": [circuit_document(each, about.condition) for each in matching.routes],
            "pucs": matching.pucs,
            "bound": bound,
            "gap": matching.pucs / bound - 1,
        }
        for matching, bound in zip(found.matchings, bounds, strict=True)
    ]
    return {
        "mesh": about.spelled,
        "ports": list(found.ports),
        "lower_bound": found.least,
        "matchings": matchings,
        "unreachable": [list(pair) for pair in found.unreachable],
        "complete": not found.left,
        "left": [list(pair) for pair in found.left],
        "states": states_document(about.condition.stuck),
        "total_pucs": sum(matching.pucs for matching in found.matchings),
        "total_bound": sum(bounds),
    }


def _row(at: int, matching: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": str(at),
        "circuits": str(len(matching["circuits"])),
        "pucs": str(matching["pucs"]),
        "bound": str(matching["bound"]),
        "gap": _gap(matching["pucs"], matching["bound"]),
        "pairs": " ".join("{}:{}".format(*circuit["ports"]) for circuit in matching["circuits"]),
    }


def _gap(pucs: int, bound: int) -> str:
    return f"{pucs / bound - 1:.1%}" if bound else "-"


def _tour(about: "NamedMesh", found: "AllToAll") -> dict[str, Any]:
    from lumctl.fabric.research.tour import tour

    way = tour([each.states for each in found.matchings], states={**about.states, **about.condition.stuck})
    return {"order": list(way.order), "changes": way.per_round, "bound": way.bound, "first_round": way.first_round}
