"""``lumctl runbook verify`` and ``head``: whether the journal is what was written, also since its head was exported."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.change.plan import plan_digest
from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat, dump_json
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.errors import ExitCode, RefusedError, UsageError
from lumctl.files import put
from lumctl.runbook.yaml_text import text_of
from lumctl.store import Break, Head

SCHEMA = "lumctl/journal-head/v1"
_FORM: dict[str, type | tuple[type, ...]] = {"rack": str, "seq": int, "hash": str, "at": (int, float), "count": int}
_MAKE = "expected is what this wrote earlier: lumctl runbook head --out FILE"
_COLUMNS = (
    OutputColumn("RACK", "rack"),
    OutputColumn("ENTRIES", "count", right=True),
    OutputColumn("LAST", "seq", right=True),
    OutputColumn("AT", "time"),
    OutputColumn("HASH", "hash"),
)


def register(app: typer.Typer) -> None:
    """Add the commands to their noun."""
    verb(app, "verify")(verify)
    verb(app, "head")(head)


def head(
    cx: Invocation,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it to a file as well.")] = None,
) -> None:
    """Show where each rack's journal ends now: number, hash and time of its last entry, and how many entries it has.

    Keep it where a person who can change the store cannot change it: another machine, a ticket, a print-out. Later,
    ``runbook verify --head FILE`` shows with it whether the end of the journal was cut off, or an older copy or another
    journal was put in its place. The output of ``-o json`` can be kept in the same way, as can that of a run, such as
    ``swap apply``: its ``journal_head`` is the head at the run's end.
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
        cx.out.table(_COLUMNS, [{**row, "time": _time(row["at"]) if row["seq"] else "-"} for row in heads])


def verify(
    cx: Invocation,
    head: Annotated[
        Path | None,
        typer.Option("--head", metavar="FILE", help="What runbook head gave, or the JSON of a run."),
    ] = None,
) -> None:
    """Check the journal by its chain of hashes, and runs, plans and leases by the journal.

    Exits 5 if anything was changed after it was written. A person who can write the store can also rewrite it as a
    whole, or cut off its end: only ``--head``, with a head that was exported before, shows that.
    """
    exported = _read(head, str(cx.target)) if head else {}
    with Context(cx.inventory, cx.target) as context:
        racks = list(context.inventory.racks)
        unknown = sorted(exported.keys() - set(racks))
        if unknown:
            raise UsageError(f"{head} has a head of rack {unknown[0]}, which {cx.inventory.path} does not have")
        found = {rack: context.store(rack).verify(plan_digest, exported.get(rack)) for rack in racks}
    if cx.out.structured:
        cx.out.document("journal-verify", {"target": str(cx.target), **_document(found), "against": sorted(exported)})
    else:
        for rack, breaks in found.items():
            for each in breaks:
                cx.out.text(f"{rack}: BROKEN{f' at entry {each.seq}' if each.seq else ''}: {each.reason}")
            if not breaks:
                since = f", and continues from the head in {head}" if rack in exported else ""
                cx.out.text(f"{rack}: the journal is as it was written{since}")
    if any(found.values()):
        raise typer.Exit(ExitCode.REFUSED)


def _document(found: dict[str, tuple[Break, ...]]) -> dict[str, Any]:
    return {
        "intact": not any(found.values()),
        "breaks": {rack: asdict(breaks[0]) for rack, breaks in found.items() if breaks},
        "problems": [{"rack": rack, **asdict(each)} for rack, breaks in found.items() for each in breaks],
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def _read(path: Path, target: str) -> dict[str, Head]:
    """The heads in a file, by rack."""
    if not path.exists():
        raise UsageError(f"there is no file {path}", hint=_MAKE)
    try:
        document = json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a head of a journal: it is no JSON: {error}", hint=_MAKE) from error
    rows = _heads_in(document) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(_is_head(row) for row in rows):
        raise UsageError(f"{path} is not a head of a journal", hint=_MAKE)
    recorded = document.get("recorded")
    of = document.get("target", recorded.get("target") if isinstance(recorded, dict) else None)
    if of != target:
        raise RefusedError(f"{path} is of target {of}, this command is aimed at {target}", hint=f"add --target {of}")
    return {row["rack"]: Head(**{name: row[name] for name in _FORM}) for row in rows}


def _heads_in(document: dict[str, Any]) -> Any:
    """What an exported head holds, or what the data of a run says of where its journal ended."""
    if document.get("schema") == SCHEMA:
        return document.get("heads")
    return [document["journal_head"]] if "journal_head" in document else None


def _is_head(row: Any) -> bool:
    right = isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in _FORM.items())
    return right and row["seq"] >= 0
