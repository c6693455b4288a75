"""``lumctl runbook lint``: report all errors of a runbook file at once."""

import re
from pathlib import Path
from typing import Annotated

import typer

from lumctl.cli.invocation import Invocation
from lumctl.cli.verbs import verb
from lumctl.errors import ExitCode, UsageError
from lumctl.printable import counted
from lumctl.runbook.lint import lint
from lumctl.runbook.parameters import given_values
from lumctl.runbook.yaml_text import text_of

_RUN = re.compile(r"(?:[^/]+/)?[a-z]+-\d+")
"""The form of a run's id, with or without its rack."""
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value; may be repeated.")
]


def register(app: typer.Typer) -> None:
    """Add the command to its noun."""
    verb(app, "lint")(command)


def command(
    cx: Invocation,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A runbook file.")],
    set_: SetOption = None,
) -> None:
    """Check a runbook file against the inventory: all problems with their lines. Exits 2 if there is one.

    Problems are unknown keys and values or values of the wrong kind, names that the inventory lacks, steps that write
    without being verified or confirmed afterwards, and steps whose preconditions cannot hold.
    """
    if not file.exists():
        raise UsageError(f"file {file} does not exist", hint=_how_to_make(str(file)))
    problems = lint(text_of(file), str(file), cx.inventory, given_values(set_ or []))
    if cx.out.structured:
        rows = [
            {
                "file": problem.file,
                "line": problem.mark.line if problem.mark else None,
                "column": problem.mark.column if problem.mark else None,
                "message": problem.message,
                "hint": problem.hint,
            }
            for problem in problems
        ]
        cx.out.document("runbook-lint", {"file": str(file), "problems": rows})
    else:
        for problem in problems:
            cx.out.text(str(problem))
        if not problems:
            cx.out.narrate(f"{file}: no errors")
    if problems:
        cx.out.narrate(f"{file}: {counted(len(problems), 'problems')}")
        raise typer.Exit(ExitCode.USAGE)


def _how_to_make(name: str) -> str:
    """The command that writes a file of the expected kind."""
    if _RUN.fullmatch(name):
        return f"lint reads a file; to write one from a run: lumctl runbook export {name} --out FILE"
    return "lint reads a runbook file; to write one: lumctl runbook export RUN --out FILE"
