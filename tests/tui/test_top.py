"""The command itself."""

from lumctl.cli.main import run
from lumctl.errors import ExitCode


def test_without_a_terminal_it_names_the_way_that_needs_none(capsys):
    assert run(["top"]) == ExitCode.USAGE
    assert capsys.readouterr().err == ("lumctl: the dashboard needs a terminal\n  hint: lumctl status --watch\n")
