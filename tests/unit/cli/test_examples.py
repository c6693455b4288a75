"""The example of each command: the command accepts it, and its help ends with it."""

import re
import shlex
from typing import Any

import pytest
import typer

from lumctl.cli.examples import EXAMPLES
from lumctl.cli.main import app, run
from lumctl.cli.nouns import NOUNS

ROOT: Any = typer.main.get_command(app)
OF_NOUNS: dict[str, Any] = {noun: ROOT.get_command(None, noun) for noun in NOUNS}
COMMANDS = {
    f"{noun} {verb}".strip(): command
    for noun, of_noun in OF_NOUNS.items()
    for verb, command in getattr(of_noun, "commands", {"": of_noun}).items()
    if not command.hidden
}


def test_every_command_has_an_example():
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("words", EXAMPLES)
def test_the_command_line_of_an_example_is_accepted(words):
    """By the parser of its command, which refuses unknown options, wrong values and missing or superfluous words."""
    without_shell = re.sub(r"^ssh \w+ | > [\w.]+$|^source <\(|\)$", "", EXAMPLES[words])
    assert not set("*?[{$!&;|<>~`") & set(re.sub(r"'[^']*'", "", without_shell)), "a shell changes it"
    typed = shlex.split(without_shell)
    named = ["lumctl", *words.split()]
    assert typed[: len(named)] == named
    COMMANDS[words].make_context(words, typed[len(named) :])


@pytest.mark.parametrize("words", ["swap plan", "check", "collective check"])
def test_the_help_of_a_command_ends_with_its_example_on_one_line(words, capsys):
    assert run([*words.split(), "--help"]) == 0
    assert capsys.readouterr().out.endswith(f"\n\nExample:\n  {EXAMPLES[words]}\n")
