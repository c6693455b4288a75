"""``lumctl runbook diff``: what two runbooks, or a runbook and a plan, do not have in common."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change import from_document, to_document
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.errors import ExitCode
from lumctl.runbook.diff import Unlike, counted, times, unlike
from lumctl.runbook.files import find_runbook
from lumctl.runbook.yaml_text import plain, text_of

FEW = 20
"""Up to this many differences are listed in detail by default."""
IN_DETAIL = frozenset({"circuits", "steps", "outcomes", "cells"})
"""The parts of which there may be hundreds."""
_COUNTS = (
    OutputColumn("PART", "part"),
    OutputColumn("DEVICE", "where"),
    OutputColumn("UNLIKE", "unlike", right=True),
    OutputColumn("ONLY A", "only_a", right=True),
    OutputColumn("ONLY B", "only_b", right=True),
)
_Name = Annotated[str, typer.Argument(help="A run, a runbook file, a plan or a plan's file.")]


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "diff")(command)


def command(
    cx: Invocation,
    a: _Name,
    b: _Name,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 5 where they are not the same; 0 otherwise, as without it.")
    ] = False,
) -> None:
    """Compare two runs, runbook files or plans: steps, circuits, cells, placement, outcomes and durations.

    If many circuits, steps or cells differ, it counts them by device, and lists each with -o wide.
    """
    with Context(cx.inventory, cx.target) as context:
        one, other = _document(context, a), _document(context, b)
    found, took = unlike(one, other), times(one, other)
    if cx.out.structured:
        seconds = [{"what": what, "a": mine, "b": theirs} for what, mine, theirs in took]
        told = {
            "a": a,
            "b": b,
            "same": not found,
            "summary": [asdict(each) for each in counted(found)],
            "differences": [asdict(each) for each in found],
            "seconds": seconds,
        }
        cx.out.document("runbook-diff", told)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names(list(dict.fromkeys(each.part for each in found)))
    else:
        _print(cx, found)
        for what, mine, theirs in took:
            cx.out.narrate(f"{what}: {_seconds(mine)} and {_seconds(theirs)}")
        if not found:
            cx.out.narrate(f"{a} and {b} are the same")
    if found and exit_code:
        raise typer.Exit(ExitCode.REFUSED)


def _print(cx: Invocation, found: tuple[Unlike, ...]) -> None:
    many = [each for each in found if each.part in IN_DETAIL]
    if len(many) > FEW:
        cx.out.table(_COUNTS, [asdict(each) for each in counted(many)])
        cx.out.text()
        if cx.out.format is not OutputFormat.WIDE:
            _tell(cx, [each for each in found if each not in many])
            cx.out.narrate(f"{len(many)} differences are counted; each of them: add -o wide")
            return
    _tell(cx, found)


def _tell(cx: Invocation, found: Sequence[Unlike]) -> None:
    for part in dict.fromkeys(each.part for each in found):
        cx.out.text(part)
        for each in (each for each in found if each.part == part):
            cx.out.text(f"    {each.what}")
            if each.a is not None:
                cx.out.text(f"  - {each.a}")
            if each.b is not None:
                cx.out.text(f"  + {each.b}")


def _document(context: Context, name: str) -> dict[str, Any]:
    """The document of a run, a runbook file, a kept plan or a plan's file."""
    for rack in context.inventory.racks if name.startswith("plan-") else ():
        kept = context.store(rack).runs.plan(name)
        if kept is not None:
            return kept
    path = Path(name)
    if path.is_file():
        try:
            document = json.loads(text_of(path))
        except (ValueError, RecursionError):
            document = None  # a plan's file is JSON, whatever its name; anything else is read as a runbook
        if isinstance(document, dict) and str(document.get("schema", "")).startswith("lumctl/plan/"):
            return to_document(from_document(document))
    document = plain(find_runbook(context, name).document)
    return dict(document)


def _seconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3f} s"
