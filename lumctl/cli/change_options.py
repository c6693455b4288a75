"""The options that every command has that changes a rack."""

from typing import Annotated

import typer

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask; for unattended use.")]
StoppedOption = Annotated[bool, typer.Option("--job-is-stopped", help="Say that jobs without a hook are stopped.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show exactly what would be done, and do nothing.")]
