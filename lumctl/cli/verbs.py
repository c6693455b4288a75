"""How a command is declared: ``@verb(app)`` adds the options that every command takes and hands them on as one value.

    app = noun_app("Jobs, their ranks, and where each runs now.")

    @verb(app, "show")
    def show(cx: Invocation, job: Annotated[str, typer.Argument(metavar="JOB")]) -> None:
        '''Show one job.'''
        cx.out.record("job", {...})

A noun that is itself a command (``status``) declares one verb without a name: ``@verb(app)``.
"""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS, VERB_ORDER
from lumctl.errors import LumctlError

_COMMAND = re.compile(rf"\blumctl (?=(?:{'|'.join(NOUNS)})\b)")
_OPTIONS = (("inventory", "-i", ("-i ", "--inventory ")), ("target", "--target", ("--target ",)))


def completed(hint: str, given: Mapping[str, Any]) -> str:
    """The hint with ``-i`` and ``--target`` in each command that lacks them, if they were ``given`` as options."""
    first, *commands = _COMMAND.split(hint)
    return first + "".join(f"lumctl {_options(text, given)}{text}" for text in commands)


def _options(text: str, given: Mapping[str, Any]) -> str:
    lacking = [
        f"{option} {shlex.quote(str(given[name]))} "
        for name, option, spellings in _OPTIONS
        if given.get(name) and not any(spelling in text for spelling in spellings)
    ]
    return "".join(lacking)


_COMMON: tuple[tuple[str, Any, Any], ...] = (
    ("inventory", Annotated[str | None, typer.Option("-i", "--inventory", metavar="FILE",
                                                     help="The inventory to use.")], None),
    ("target", Annotated[str | None, typer.Option("--target", metavar="rack|sim",
                                                  help="What to act on; rack unless said.")], None),
    ("output", Annotated[str | None, typer.Option("-o", "--output", metavar="FORMAT",
                                                  help="table, wide, json, yaml or name.")], None),
    ("ascii_only", Annotated[bool, typer.Option("--ascii", help="No characters beyond ASCII.")], False),
    ("quiet", Annotated[bool, typer.Option("-q", "--quiet", help="No narration on stderr.")], False),
    ("verbose", Annotated[bool, typer.Option("-v", "--verbose", help="More narration on stderr.")], False),
)  # fmt: skip


class PlainCommand(TyperCommand):
    """A command whose text marks words of the shell with double backticks: for the manual, not for a terminal."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                # The name of the argument says it: RUN, not RUN <str>.
                parameter.display_type_rich = _no_type  # type: ignore[method-assign, assignment]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the text into the help, without the marks."""
        marked = self.help
        self.help = marked.replace("``", "") if marked else marked
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = marked


def _no_type(**_: Any) -> None:
    return None


class VerbGroup(TyperGroup):
    """The verbs of a noun in the order of use, each with its whole first sentence."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs; those of :data:`lumctl.cli.nouns.VERB_ORDER` first."""
        rank = {name: place for place, name in enumerate(VERB_ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: rank.get(name, len(rank)))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs into the help."""
        verbs = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(verb.help or "") + ".") for name, verb in verbs.items() if verb])


def first_sentence(text: str) -> str:
    """The first sentence of a help text, on one line, without its full stop."""
    line = " ".join(text.partition("\n\n")[0].replace("``", "").split())
    return line.partition(". ")[0].removesuffix(".")


def noun_app(help_text: str) -> typer.Typer:
    """A Typer application for one noun, in the project's style."""
    return typer.Typer(
        cls=VerbGroup,
        help=help_text,
        rich_markup_mode=None,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def verb(app: typer.Typer, name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as a command; its first parameter receives the :class:`Invocation`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        common = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for key, annotation, default in _COMMON
        ]
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        @wraps(function)
        def command(**given: Any) -> Any:
            ctx: typer.Context = given.pop("ctx")
            said = {key: given.pop(key) for key, _, _ in _COMMON}
            before = ctx.obj or {}
            try:
                return function(Invocation.compose(before, said), **given)
            except LumctlError as error:
                if error.hint:
                    error.hint = completed(error.hint, {key: said[key] or before.get(key) for key in said})
                raise

        keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        signature = inspect.Signature([context, *keyword_only, *common])
        command.__signature__ = signature  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        del command.__wrapped__
        app.command(name, **{"cls": PlainCommand, **settings})(command)
        return function

    return register
