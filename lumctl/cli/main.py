"""The entry point: the root command, its lazily loaded nouns, and the one place that turns errors into exit codes."""

import gc
import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lumctl.cli.nouns import GROUPS, NOUNS
from lumctl.descriptors import separate_streams
from lumctl.errors import ExitCode, LumctlError
from lumctl.printable import printable
from lumctl.process_exit import begin_exit, register_last_handler

if TYPE_CHECKING:
    from typer import _click as click

_BETWEEN_SEARCHES = 100_000
"""Garbage collection starts when this many more objects were created than freed. Python's default of 700 is reached by
the answers of a few hosts, and each full collection then visits every connection and every reading: hundreds of
thousands of objects, hardly any of them in a cycle."""


def search_seldom() -> None:
    """Make garbage collection rare, for a program that keeps many objects; objects outside cycles are freed at once."""
    gc.set_threshold(_BETWEEN_SEARCHES)


class LazyNouns(TyperGroup):
    """A group whose commands are imported on use, not when help is printed."""

    def list_commands(self, ctx: "click.Context") -> list[str]:  # noqa: ARG002
        return list(NOUNS)

    def get_command(self, ctx: "click.Context", cmd_name: str) -> "click.Command | None":  # noqa: ARG002
        noun = NOUNS.get(cmd_name)
        if noun is None:
            return None
        app = import_module(f"lumctl.cli.{noun.module}").app
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: "click.Context", formatter: "click.HelpFormatter") -> None:  # noqa: ARG002
        for title, nouns in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, noun.help) for name, noun in nouns.items()])
        with formatter.section("Help"):
            formatter.write_dl([("help [COMMAND...]", "Help for a command."), ("version", "The version.")])

    def resolve_command(
        self, ctx: "click.Context", args: list[str]
    ) -> "tuple[str | None, click.Command | None, list[str]]":
        """Suggest the nearest noun for an unknown word, without importing every noun to find it."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
            if args[0] in {"help", "-h", "--help"}:
                typer.echo(ctx.get_help())
                raise typer.Exit
        if args[:1] == ["version"]:
            if {"-h", "--help"} & set(args):
                typer.echo("Usage: lumctl version\n\n  Print the version.")
                raise typer.Exit
            if args[1:]:
                ctx.fail(f"version takes no arguments, but was given {' '.join(args[1:])!r}")
            _print_version(wanted=True)
        if args and args[0] not in NOUNS and not args[0].startswith("-"):
            from lumctl.inventory.problems import nearest

            near = nearest(args[0], [*NOUNS, "help", "version"])
            ctx.fail(f"no command {args[0]!r}" + (f"; did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=LazyNouns,
    help="Operate racks of accelerators joined by a programmable optical fabric.",
    rich_markup_mode=None,
    add_completion=False,  # see lumctl.cli.completion, which answers in a tenth of the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from lumctl import __version__

        typer.echo(f"lumctl {__version__}")
        raise typer.Exit


@app.callback(no_args_is_help=True)
def root(
    ctx: typer.Context,
    inventory: Annotated[
        str | None, typer.Option("-i", "--inventory", metavar="FILE", help="The inventory to use.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="rack|sim", help="The target to act on; by default the rack.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FORMAT", help="table, wide, json, yaml or name.")
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="No characters beyond ASCII.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No narration on stderr.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More narration on stderr.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Store the options before the noun; those after it override them."""
    del version
    ctx.obj = {
        "inventory": inventory,
        "target": target,
        "output": output,
        "ascii_only": ascii_only,
        "quiet": quiet,
        "verbose": verbose,
    }


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; every error is printed here as one line, with a hint."""
    try:
        # Not standalone: Typer would print errors and exit by itself, with its own exit codes.
        result: Any = typer.main.get_command(app).main(
            args=list(arguments) if arguments is not None else None, prog_name="lumctl", standalone_mode=False
        )
        # Here, because a reader that is gone shows only when the buffer is written.
        sys.stdout.flush()
    except LumctlError as error:
        return report(error)
    except KeyboardInterrupt:
        result = ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit) as end:
        result = _report_broken_pipe(end)
    except Exception as error:  # noqa: BLE001 - the last resort: one line for the user, the traceback on request
        return _report_unexpected(error)
    if result == ExitCode.INTERRUPTED:  # also Typer's own answer to Ctrl-C
        print("lumctl: interrupted", file=sys.stderr)
    return result if isinstance(result, int) else ExitCode.DONE


def report(error: LumctlError) -> int:
    """Print a domain error as one line, its hint as another, and return its exit code."""
    print(printable(f"lumctl: {error.message}", lines=True), file=sys.stderr)
    if error.hint:
        print(printable(f"  hint: {error.hint}", lines=True), file=sys.stderr)
    return error.exit_code


def _report_broken_pipe(end: BaseException) -> int:
    """Find out which pipe broke, our output or a socket: Typer exits with 1 for both."""
    cause = end if isinstance(end, BrokenPipeError) else end.__context__
    if isinstance(cause, BrokenPipeError) and _reader_is_gone():
        # The interpreter flushes stdout once more at exit, which would fail again and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    return _report_unexpected(cause if isinstance(cause, Exception) else RuntimeError(f"exit {end}"))


def _reader_is_gone() -> bool:
    """Whether the reader of stdout is gone (``lumctl status | head``); this is not an error, but printing must end."""
    watch = select.poll()
    # Without a mask poll reports errors and hang-ups only: a pipe whose reader is gone gives POLLERR.
    watch.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))


def _report_unexpected(error: Exception) -> int:
    from typer._click.exceptions import ClickException

    if isinstance(error, ClickException):
        error.show()
        return ExitCode.DONE if type(error).__name__ == "NoArgsIsHelpError" else ExitCode.USAGE
    if type(error).__name__ == "Abort":
        print("lumctl: interrupted; nothing was done", file=sys.stderr)
        return ExitCode.INTERRUPTED
    if os.environ.get("LUMCTL_TRACEBACK"):
        raise error
    print(printable(f"lumctl: unexpected {type(error).__name__}: {error}", lines=True), file=sys.stderr)
    print("  hint: this is a bug; run again with LUMCTL_TRACEBACK=1 and report its output", file=sys.stderr)
    return ExitCode.UNEXPECTED


def main() -> None:
    """Run the console script ``lumctl``."""
    register_last_handler()
    search_seldom()
    with suppress(OSError, AttributeError):  # lumctl was started without stdout or stderr
        separate_streams()
    code: int = ExitCode.UNEXPECTED
    try:
        code = run()
    finally:
        begin_exit(code)
    sys.exit(code)
