"""From commands to pages: one for the program, one for each noun with all its verbs.

Nothing in a page depends on when or where it was made, so the pages are committed and a test holds them to the code.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from lumctl import __version__
from lumctl.cli.main import app
from lumctl.cli.manual import fixed_text
from lumctl.cli.manual.reference import REFERENCES, with_reference
from lumctl.cli.manual.roff import Lines, bold_code, entries, escape, page, prose, section, subsection, with_examples
from lumctl.cli.nouns import NOUNS

SOURCE = f"lumctl {__version__}"
NOT_COMMON = {"version", "install_completion", "show_completion"}
"""Options of the program itself, which no noun repeats."""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    root = typer.main.get_command(app)
    return {"lumctl.1": _root_page(root)} | {f"lumctl-{noun}.1": _noun_page(noun, root) for noun in NOUNS}


def write(folder: Path) -> None:
    """Write every command page, update the references in hand-written pages, and remove pages of removed commands."""
    made = pages()
    for path in folder.glob("*.1"):
        if path.name not in made:
            path.unlink()
    for name in REFERENCES:
        if (path := folder / name).exists():
            made[name] = with_reference(name, path.read_text(encoding="ascii"))
    for name, text in made.items():
        (folder / name).write_text(text, encoding="ascii")


def _root_page(root: Any) -> str:
    summary = str(root.help).rstrip(".")
    nouns = {f"lumctl-{name}(1)": noun.help for name, noun in NOUNS.items()}
    body = [
        *section("synopsis", [r"\fBlumctl\fR [OPTION...] COMMAND [ARGUMENT...]"]),
        *section("description", prose(fixed_text.ABOUT)),
        *section("commands", entries(nouns.items())),
        *section("options", ["What is said after the command wins over what is said before it.", *_options(root)]),
        *section("exit status", entries(fixed_text.EXIT_STATUS)),
        *section("environment", entries(fixed_text.ENVIRONMENT)),
        *section("files", entries(fixed_text.FILES)),
    ]
    return page("lumctl", summary[0].lower() + summary[1:], SOURCE, body, [*nouns, *fixed_text.BY_HAND])


def _noun_page(noun: str, root: Any) -> str:
    command = root.get_command(_context(root), noun)
    common = {param.name for param in root.params} - NOT_COMMON
    verbs = dict(_verbs(command, f"lumctl {noun}"))
    status = fixed_text.CHECK_STATUS if noun == "check" else fixed_text.EXIT_STATUS
    body = [
        *section("synopsis", ["\n.br\n".join(_synopsis(words, verb, common) for words, verb in verbs.items())]),
        *section("description", _description(NOUNS[noun].help, verbs, common)),
        *section("common options", _options(root, only=common)),
        *(line for title, text in fixed_text.MORE.get(noun, ()) for line in section(title, with_examples(text))),
        *section("exit status", entries(status)),
        *section("environment", [r"As in \fBlumctl\fR(1)."]),
        *section("files", [r"As in \fBlumctl\fR(1)."]),
    ]
    return page(f"lumctl-{noun}", NOUNS[noun].help.rstrip("."), SOURCE, body, ["lumctl(1)", *fixed_text.BY_HAND])


def _verbs(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Every command that can be typed below one, with the words that are typed; hidden ones are left out."""
    below = getattr(command, "commands", {})
    if not below or command.invoke_without_command:
        yield words, command
    for name, verb in below.items():
        if not verb.hidden:
            yield from _verbs(verb, f"{words} {name}")


def _description(summary: str, verbs: dict[str, Any], common: set[str | None]) -> Lines:
    if len(verbs) == 1:
        (verb,) = verbs.values()
        return [*prose(verb.help or summary), *_options(verb, without=common)]
    lines = [bold_code(summary)]
    for words, verb in verbs.items():
        lines += subsection(words, [*prose(verb.help or summary), *_options(verb, without=common)])
    return lines


def _synopsis(words: str, command: Any, common: set[str | None]) -> str:
    """How it is typed: what it needs, and whether it takes more."""
    own = [param for param in command.params if param.name not in common and not getattr(param, "hidden", False)]
    needed = [_typed(param) for param in own if param.param_type_name == "argument" or param.required]
    return " ".join([rf"\fB{escape(words)}\fR", *map(escape, needed), "[OPTION...]"])


def _typed(param: Any) -> str:
    if param.param_type_name == "option":
        return f"{param.opts[-1]} {param.metavar or param.name.upper()}"
    word = _argument(param) + ("..." if param.nargs == -1 else "")
    return word if param.required else f"[{word}]"


def _options(command: Any, *, only: set[str | None] | None = None, without: Iterable[str | None] = ()) -> Lines:
    """Arguments and options, each with its help as ``--help`` prints it."""
    context = _context(command)
    records = [
        (_argument(param) if param.param_type_name == "argument" else record[0], record[1])
        for param in command.params
        if (only is None or param.name in only) and param.name not in without
        if (record := param.get_help_record(context)) is not None
    ]
    return entries(records)


def _argument(param: Any) -> str:
    """The word that stands for an argument; some are declared with the brackets that the synopsis adds."""
    word = str(param.metavar or param.name.upper())
    return word[1:-1] if word.startswith("[") and word.endswith("]") else word


def _context(command: Any) -> Any:
    return command.context_class(command)
