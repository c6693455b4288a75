"""``lumctl runbook``: runs as files that can be read, edited and replayed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change import from_document, to_document
from lumctl.change.plan import plan_digest
from lumctl.cli import runbook_export, runbook_lint, runbook_replay
from lumctl.cli.forgotten_target import tell_if_forgotten
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputColumn, OutputFormat, dump_json
from lumctl.cli.runbook_export import with_head
from lumctl.cli.swap_show import RUN_COLUMNS, readable_times, run_row
from lumctl.cli.verbs import noun_app, verb
from lumctl.context import Context
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.files import put
from lumctl.inventory.problems import nearest
from lumctl.runbook.diff import Unlike, counted, times, unlike
from lumctl.runbook.files import all_runs, find_runbook, is_file
from lumctl.runbook.yaml_text import dump, plain, text_of
from lumctl.store import Break, Head
from lumctl.time_text import moment_text

app = noun_app(NOUNS["runbook"].help)

KINDS = ("swap", "rollback", "fabric", "set", "adopt", "replay", "ack", "maintain", "policy")


@verb(app, "list", pages=True)
def list_(
    cx: Invocation,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND[,KIND...]", help=f"Only these: {', '.join(KINDS)}.")
    ] = None,
) -> None:
    """List runbooks, newest first: of every run, acknowledgement, maintenance window and policy change."""
    wanted = _kinds(kind) if kind is not None else None
    with Context(cx.inventory, cx.target) as context:
        rows = [run_row(run) for run in all_runs(context) if wanted is None or run.kind in wanted]
    if cx.out.structured:
        cx.out.document("runbooks", {"target": str(cx.target), "runbooks": rows})
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["run"] for row in rows])
    else:
        cx.out.table(RUN_COLUMNS, readable_times(rows))
        if not rows:
            cx.out.narrate(f"no run {f'of kind {kind} ' if kind else ''}on target {cx.target} yet")
            tell_if_forgotten(cx)


@verb(app, "show", pages=True)
def show(
    cx: Invocation,
    runbook: Annotated[str, typer.Argument(metavar="RUNBOOK", help="The id of a run, or the path of a runbook file.")],
) -> None:
    """Print a runbook as YAML, or with -o json as JSON; that of a run has ``journal_head``, the end of its journal."""
    with Context(cx.inventory, cx.target) as context:
        found = find_runbook(context, runbook)
        document = plain(found.document)
        head = None if is_file(runbook) else context.store(found.rack).journal.head()
    if cx.out.format is OutputFormat.JSON:
        document.pop("schema")
        cx.out.document("runbook", with_head(document, head))
    else:
        cx.out.text(dump(document).rstrip())


runbook_export.register(app)
runbook_lint.register(app)


def _kinds(text: str) -> set[str]:
    words = {word.strip() for word in text.split(",") if word.strip()}
    for word in sorted(words):
        if word not in KINDS:
            near = nearest(word, KINDS)
            hint = f"did you mean {near}?" if near else f"one of: {', '.join(KINDS)}"
            raise UsageError(f"{word!r} is not a known kind of run", hint=hint)
    return words


FEW = 20
"""Up to this many differences are listed in detail by default."""
IN_DETAIL = frozenset({"circuits", "steps", "outcomes", "cells"})
"""The parts that may have hundreds of differences."""
_COUNTS = (
    OutputColumn("PART", "part"),
    OutputColumn("DEVICE", "where"),
    OutputColumn("UNLIKE", "unlike", right=True),
    OutputColumn("ONLY A", "only_a", right=True),
    OutputColumn("ONLY B", "only_b", right=True),
)
_Name = Annotated[str, typer.Argument(help="A run, a runbook file, a plan or the file of a plan.")]


@verb(app, "diff", pages=True)
def diff(
    cx: Invocation,
    a: _Name,
    b: _Name,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 5 if they differ; without this option exit 0 even then.")
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


runbook_replay.register(app)


def _print(cx: Invocation, found: tuple[Unlike, ...]) -> None:
    many = [each for each in found if each.part in IN_DETAIL]
    if len(many) > FEW:
        cx.out.table(_COUNTS, [asdict(each) for each in counted(many)])
        cx.out.text()
        if cx.out.format is not OutputFormat.WIDE:
            _tell(cx, [each for each in found if each not in many])
            cx.out.narrate(f"{len(many)} differences are only counted; list each with -o wide")
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
    """The document of a run, a runbook file, a stored plan or a plan's file."""
    for rack in context.inventory.racks if name.startswith("plan-") else ():
        kept = context.store(rack).runs.plan(name)
        if kept is not None:
            return kept
    path = Path(name)
    if path.is_file():
        try:
            document = json.loads(text_of(path))
        except (ValueError, RecursionError):
            document = None  # a plan's file is always JSON; any other file is read as a runbook
        if isinstance(document, dict) and str(document.get("schema", "")).startswith("lumctl/plan/"):
            return to_document(from_document(document))
    document = plain(find_runbook(context, name).document)
    return dict(document)


def _seconds(value: float | None) -> str:
    return "not known" if value is None else f"{value:.2f} s"


SCHEMA = "lumctl/journal-head/v1"
_FORM: dict[str, type | tuple[type, ...]] = {"rack": str, "seq": int, "hash": str, "at": (int, float), "count": int}
_MAKE = "pass the file that was written earlier by: lumctl runbook head --out FILE"
_COLUMNS = (
    OutputColumn("RACK", "rack"),
    OutputColumn("ENTRIES", "count", right=True, gives_way=2),
    OutputColumn("LAST", "seq", right=True),
    OutputColumn("AT", "time", gives_way=1),
    OutputColumn("HASH", "hash"),
)


@verb(app, "verify")
def verify(
    cx: Invocation,
    head: Annotated[
        Path | None,
        typer.Option("--head", metavar="FILE", help="Output of runbook head, or the JSON of a run."),
    ] = None,
) -> None:
    """Check the journal by its chain of hashes, and runs, plans and leases by the journal.

    Exits 5 if anything was changed after it was written. Anyone who can write the store can also rewrite it completely,
    or cut off its end: only ``--head``, with a head that was exported earlier, detects that.
    """
    exported = _read(head, str(cx.target)) if head else {}
    with Context(cx.inventory, cx.target) as context:
        racks = list(context.inventory.racks)
        unknown = sorted(exported.keys() - set(racks))
        if unknown:
            raise UsageError(f"{head} contains a head of rack {unknown[0]}, which is not in {cx.inventory.path}")
        found = {rack: context.store(rack).verify(plan_digest, exported.get(rack)) for rack in racks}
    if cx.out.structured:
        cx.out.document(
            "journal-verify", {"target": str(cx.target), **_breaks_document(found), "against": sorted(exported)}
        )
    else:
        for rack, breaks in found.items():
            for each in breaks:
                cx.out.text(f"{rack}: BROKEN{f' at entry {each.seq}' if each.seq else ''}: {each.reason}")
            if not breaks:
                since = f", and continues from the head in {head}" if rack in exported else ""
                cx.out.text(f"{rack}: the journal is unchanged{since}")
    if any(found.values()):
        raise typer.Exit(ExitCode.REFUSED)


@verb(app, "head")
def head(
    cx: Invocation,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Also write it to a file.")] = None,
) -> None:
    """Show where each rack's journal ends now: number, hash and time of its last entry, and how many entries it has.

    Save it where those who can change the store cannot change it: another machine, a ticket, a print-out. Later,
    ``runbook verify --head FILE`` uses it to detect whether the end of the journal was cut off, or the journal was
    replaced by an older copy or another one. The output of ``-o json`` can be saved for the same purpose, as can that
    of a run, such as ``swap apply``: its ``journal_head`` is the head at the run's end.
    """
    with Context(cx.inventory, cx.target) as context:
        heads = [asdict(context.store(rack).journal.head()) for rack in context.inventory.racks]
    document = {"target": str(cx.target), "heads": heads}
    if out is not None:
        put(out, dump_json({"schema": SCHEMA, **document}) + "\n", mode=0o600)
    if cx.out.structured:
        cx.out.document("journal-head", document)
    elif cx.out.format is OutputFormat.NAME:
        cx.out.names([row["hash"] for row in heads])
    else:
        cx.out.table(_COLUMNS, [{**row, "time": moment_text(row["at"]) if row["seq"] else "-"} for row in heads])


def _breaks_document(found: dict[str, tuple[Break, ...]]) -> dict[str, Any]:
    return {
        "intact": not any(found.values()),
        "breaks": {rack: asdict(breaks[0]) for rack, breaks in found.items() if breaks},
        "problems": [{"rack": rack, **asdict(each)} for rack, breaks in found.items() for each in breaks],
    }


def _read(path: Path, target: str) -> dict[str, Head]:
    """Read the heads of journals in a file, by rack."""
    if not path.exists():
        raise UsageError(f"file {path} does not exist", hint=_MAKE)
    try:
        document = json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a head of a journal: it is not JSON: {error}", hint=_MAKE) from error
    rows = _heads_in(document) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(_is_head(row) for row in rows):
        raise UsageError(f"{path} is not a head of a journal", hint=_MAKE)
    # A runbook names its target under ``recorded``, all other documents at the top.
    recorded = document.get("recorded")
    of = document.get("target", recorded.get("target") if isinstance(recorded, dict) else None)
    if of != target:
        raise RefusedError(
            f"{path} is for target {of}, but this command uses target {target}", hint=f"add --target {of}"
        )
    return {row["rack"]: Head(**{name: row[name] for name in _FORM}) for row in rows}


def _heads_in(document: dict[str, Any]) -> Any:
    """The heads in a document: exported heads, or the end of the journal in a run's document; else ``None``."""
    if document.get("schema") == SCHEMA:
        return document.get("heads")
    return [document["journal_head"]] if "journal_head" in document else None


def _is_head(row: Any) -> bool:
    right = isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in _FORM.items())
    return right and row["seq"] >= 0
