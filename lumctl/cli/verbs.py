"""Declaring commands: ``@verb(app)`` adds the common options and passes their values as one :class:`Invocation`.

    app = noun_app("Jobs, their ranks, and where each runs now.")

    @verb(app, "show")
    def show(cx: Invocation, job: Annotated[str, typer.Argument(metavar="JOB")]) -> None:
        '''Show one job.'''
        cx.out.document("job", {...})

A noun that is itself a command (``status``) declares one verb without a name: ``@verb(app)``. Options that only some
commands share are here as well.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from lumctl.cli.forgotten_target import simulator_meant
from lumctl.cli.hints import completed
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import VERB_ORDER
from lumctl.cli.output import OutputFormat
from lumctl.cli.pager import paged
from lumctl.errors import LumctlError, UsageError


def aimed(cx: Invocation, text: str) -> str:
    """The text with this command's ``-i`` and ``--target`` added to each command in it that lacks them."""
    return completed(text, {"inventory": cx.inventory_path, "target": cx.target_option})


_COMMON: tuple[tuple[str, Any, Any], ...] = (
    ("inventory", Annotated[str | None, typer.Option("-i", "--inventory", metavar="FILE",
                                                     help="The inventory to use.")], None),
    ("target", Annotated[str | None, typer.Option("--target", metavar="rack|sim",
                                                  help="The target to act on; by default the rack.")], None),
    ("output", Annotated[str | None, typer.Option("-o", "--output", metavar="FORMAT",
                                                  help="table, wide, json, yaml or name.")], None),
    ("ascii_only", Annotated[bool, typer.Option("--ascii", help="No characters beyond ASCII.")], False),
    ("quiet", Annotated[bool, typer.Option("-q", "--quiet", help="No narration on stderr.")], False),
    ("verbose", Annotated[bool, typer.Option("-v", "--verbose", help="More narration on stderr.")], False),
)  # fmt: skip


YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation; for unattended use.")]
StoppedOption = Annotated[bool, typer.Option("--job-is-stopped", help="Confirm that jobs without a hook are stopped.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show exactly what would be done, but do nothing.")]
"""Options of the commands that change a rack."""


def kept_text(text: str | None) -> str | None:
    """The text of an option in a form that can be stored: bytes that are not UTF-8 become replacement characters."""
    return None if text is None else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _with_formats(formats: Sequence[str]) -> Any:
    """The option ``-o`` for a command with formats of its own."""
    words = "|".join((*formats, *OutputFormat))
    *before, last = words.split("|")
    return Annotated[str | None, typer.Option("-o", "--output", metavar=words, help=f"{', '.join(before)} or {last}.")]


class PlainCommand(TyperCommand):
    """A command whose help ends with an example, and omits the double backticks that mark shell words in the manual."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                # The argument's name is enough: RUN, not RUN <str>.
                parameter.display_type_rich = _no_type  # type: ignore[method-assign, assignment]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the text into the help, without the marks."""
        marked = self.help
        self.help = marked.replace("``", "") if marked else marked
        try:
            super().format_help_text(ctx, formatter)
        finally:
            # Restored, because the manual is made from the same text and needs the marks.
            self.help = marked

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example into the help, on one line however long it is: it is there to be copied."""
        from lumctl.cli.examples import EXAMPLES

        if example := EXAMPLES.get(ctx.command_path.partition(" ")[2]):
            with formatter.section("Example"):
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _no_type(**_: Any) -> None:
    return None


class VerbGroup(TyperGroup):
    """The verbs of a noun in the order of use, each with the first sentence of its help."""

    instead: ClassVar[Mapping[str, str]] = {}
    """Words that are no verbs of the noun but are often tried, each with a hint that names the commands to use."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a verb.

        Raises:
            UsageError: the word is one of :attr:`instead`.
        """
        if args and args[0] in self.instead:
            given = {**(ctx.obj or {}), **_targets_among(args)}
            raise UsageError(
                f"{ctx.info_name} has no command {args[0]!r}", hint=completed(self.instead[args[0]], given)
            )
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs; first those in :data:`lumctl.cli.nouns.VERB_ORDER`."""
        rank = {name: place for place, name in enumerate(VERB_ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: rank.get(name, len(rank)))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs into the help."""
        verbs = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(verb.help or "") + ".") for name, verb in verbs.items() if verb])


def _targets_among(args: Sequence[str]) -> dict[str, str]:
    """The values of ``-i`` and ``--target`` among words that no command has parsed."""
    words = [part for word in args for part in (word.split("=", 1) if word.startswith("--") else [word])]
    names = {"-i": "inventory", "--inventory": "inventory", "--target": "target"}
    return {names[word]: value for word, value in pairwise(words) if word in names}


def first_sentence(text: str) -> str:
    """The first sentence of a help text, on one line, without its full stop."""
    line = " ".join(text.partition("\n\n")[0].replace("``", "").split())
    return line.partition(". ")[0].removesuffix(".")


def noun_app(help_text: str, verbs: type[VerbGroup] = VerbGroup) -> typer.Typer:
    """A Typer application for one noun, in the project's style."""
    return typer.Typer(
        cls=verbs,
        help=help_text,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def verb(
    app: typer.Typer, name: str | None = None, *, formats: Sequence[str] = (), pages: bool = False, **settings: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as a command; its first parameter receives the :class:`Invocation`.

    ``formats`` are the command's own values of ``-o``; see :attr:`Output.own_format`. With ``pages``, output for people
    goes through the pager if it is longer than the screen.
    """
    options = tuple(
        (key, _with_formats(formats) if key == "output" and formats else annotation, default)
        for key, annotation, default in _COMMON
    )

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        common = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for key, annotation, default in options
        ]
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        @wraps(function)
        def command(**given: Any) -> Any:
            ctx: typer.Context = given.pop("ctx")
            cx: Invocation | None = None
            said = {key: given.pop(key) for key, _, _ in _COMMON}
            before = ctx.obj or {}
            try:
                cx = Invocation.compose(before, said, formats)
                with paged() if pages and cx.out.for_people else nullcontext():
                    return function(cx, **given)
            except LumctlError as error:
                if error.hint:
                    error.hint = completed(error.hint, {key: said[key] or before.get(key) for key in said})
                said_already = "--target sim" in f"{error.message} {error.hint}"
                if cx is not None and not said_already and (meant := simulator_meant(cx, error)):
                    error.hint = "; ".join(filter(None, [meant, error.hint]))
                raise

        # Keyword-only: a parameter without a default may then stand after one that has a default.
        keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        signature = inspect.Signature([context, *keyword_only, *common])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        app.command(name, **{"cls": PlainCommand, **settings})(command)
        return function

    return register
