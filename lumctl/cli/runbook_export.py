"""``lumctl runbook export``: a runbook as a file: YAML to edit, JSON for scripts, Markdown for an incident's report."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import dump_json
from lumctl.cli.verbs import verb
from lumctl.context import Context
from lumctl.errors import UsageError
from lumctl.files import put
from lumctl.inventory.problems import nearest
from lumctl.printable import printable
from lumctl.runbook.document import Runbook
from lumctl.runbook.files import find_runbook, is_file
from lumctl.runbook.report import report
from lumctl.runbook.templates import template_of
from lumctl.runbook.yaml_text import dump, plain
from lumctl.store import Head

FORMATS = ("yaml", "json", "md")


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "export")(export)


def export(
    cx: Invocation,
    runbook: Annotated[str, typer.Argument(metavar="RUNBOOK", help="A run's id, or the path of a runbook file.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write it; - is standard output.")
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="yaml|md|json", help="YAML unless said; md for an incident's report.")
    ] = "yaml",
    as_template: Annotated[
        bool, typer.Option("--as-template", help="What was meant, with parameters, in place of what was done.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a runbook to a file, to be kept, edited or sent.

    With ``--as-template`` its steps become intents (swap this, roll that back) with parameters for the rack and the
    components: ``runbook replay FILE --set NAME=VALUE`` plans them again, for another accelerator or another rack.
    """
    if format_ not in FORMATS:
        near = nearest(format_, FORMATS)
        hint = f"did you mean {near}?" if near else f"one of: {', '.join(FORMATS)}"
        raise UsageError(f"format {format_!r} is not known", hint=hint)
    with Context(cx.inventory, cx.target) as context:
        found = find_runbook(context, runbook)
        document: dict[str, Any] = plain(found.document)
        if as_template:
            if not isinstance(found, Runbook):
                raise UsageError(f"{runbook} holds intents already")
            document = template_of(found)
        head = None if as_template or is_file(runbook) else context.store(found.rack).journal.head()
    text = _text(document, format_, head)
    if str(out) == "-":
        cx.out.text(text.rstrip())
        return
    path = out or Path(f"{document.get('id', 'runbook')}.{format_}")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="add --force to write over it, or name another with --out")
    put(path, text, mode=0o600)
    cx.out.text(str(path))


def with_head(document: dict[str, Any], head: Head | None) -> dict[str, Any]:
    """A runbook as data, with the end of its journal; unknown for a file."""
    return document if head is None else {**document, "journal_head": asdict(head)}


def _text(document: dict[str, Any], format_: str, head: Head | None) -> str:
    if format_ == "json":
        return dump_json(with_head(document, head)) + "\n"
    return printable(report(document, head), lines=True) if format_ == "md" else dump(document)
