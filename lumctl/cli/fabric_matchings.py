"""``lumctl fabric matchings``: a mesh as an all-to-all switch, every matching routed and proven."""

import time
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.fabric_mesh import DeviceOption, MeshOption, subject
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn
from lumctl.cli.verbs import verb
from lumctl.errors import UsageError
from lumctl.fabric.documents import circuit_document, states_document
from lumctl.fabric.matchings import all_to_all

if TYPE_CHECKING:
    from lumctl.cli.fabric_mesh import NamedMesh
    from lumctl.fabric.matchings import AllToAll, Matching

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
        str, typer.Option("--ports", metavar="COUNT|P,P,...", help="How many ports to connect, or which.")
    ],
    mesh: MeshOption = None,
    device: DeviceOption = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Decides how the pairs are drawn.")] = 0,
    optimal: Annotated[
        bool,
        typer.Option(
            "--optimal", help="Prove a tighter bound for each matching, by its linear relaxation. Takes longer."
        ),
    ] = False,
    tour: Annotated[
        bool, typer.Option("--tour", help="Also the order in which to switch through them with the fewest changes.")
    ] = False,
) -> None:
    """Find the smallest set of matchings that connects all pairs of ports, with routes for each.

    At least as many matchings are needed as there are ports, less one. BOUND is the least number of PUCs that the
    circuits of a matching pass, each taken alone; with --optimal, the least that is proven for all together.
    """
    about = subject(cx, mesh, device)
    began = time.perf_counter()
    found = all_to_all(about.mesh, _ports(ports), condition=about.condition, rng=Random(seed))  # noqa: S311 - no secret
    seconds = time.perf_counter() - began
    bounds = [_bound(cx, about, each, at, len(found.matchings)) if optimal else each.bound
              for at, each in enumerate(found.matchings)]  # fmt: skip
    document = _document(about, found, bounds) | {"seed": seed, "seconds": round(seconds, 4)}
    if tour:
        document["tour"] = _tour(about, found)
    if cx.out.structured:
        cx.out.document("matchings", document)
        return
    cx.out.table(_COLUMNS, [_row(at, each) for at, each in enumerate(document["matchings"])])
    total, bound = document["total_pucs"], document["total_bound"]
    cx.out.narrate(
        f"{about.mesh.name}, {len(found.ports)} ports: {len(found.matchings)} matchings, {found.least} at least; "
        f"{total} PUCs, {bound} at least ({_gap(total, bound)}); {seconds:.2f} s"
    )
    for pair in found.unreachable:
        cx.out.narrate("there is no way for {}:{}, even alone".format(*pair))
    if tour:
        told = document["tour"]
        order = " ".join(map(str, told["order"]))
        cx.out.narrate(
            f"round robin in the order {order}: {told['changes']} PUC changes a round, {told['bound']} at least"
        )


def _ports(text: str) -> int | tuple[int, ...]:
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise UsageError(f"--ports: found {text!r}", hint="a number of ports, or port numbers separated by commas")
    numbers = tuple(int(word) for word in words)
    if len(numbers) > 1:
        return numbers
    if numbers[0] > _MOST_PORTS:
        raise UsageError(f"--ports: {numbers[0]} are more than any mesh is asked for", hint=f"{_MOST_PORTS} at most")
    return numbers[0]


def _bound(cx: Invocation, about: "NamedMesh", matching: "Matching", at: int, count: int) -> int:
    from lumctl.fabric.research.exact import lower_bound

    cx.out.narrate(f"bound of matching {at + 1} of {count}")
    known = about.condition
    pairs = [each.ports for each in matching.routes]
    return int(lower_bound(about.mesh, pairs, stuck=known.stuck, damaged=known.damaged).value)


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
