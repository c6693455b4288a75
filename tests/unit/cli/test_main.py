"""The root command: what it imports, how it fails, what it returns to the shell."""

import errno
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer

from lumctl import __version__
from lumctl.cli import main
from lumctl.cli.nouns import NOUNS, Noun
from lumctl.cli.verbs import noun_app, verb
from lumctl.devices.errors import DeviceUnreachableError, InconsistentError
from lumctl.errors import ExitCode, HalfDoneError, RefusedError, RolledBackError, UsageError
from lumctl.inventory.load import example

HEAVY = ("rich", "paramiko", "sqlalchemy", "textual", "pydantic", "yaml", "asyncio", "lumctl_smartlight", "lumctl.sim")


@pytest.fixture
def noun(monkeypatch):
    """Add a noun ``probe`` whose one verb ``act`` does what the test says."""

    def add(act):
        app = noun_app("A noun of this test.")

        @app.callback()
        def keep_the_verb() -> None: ...

        verb(app, "act")(act)
        monkeypatch.setitem(NOUNS, "probe", Noun("probe_of_this_test", "A noun of this test."))
        monkeypatch.setitem(sys.modules, "lumctl.cli.probe_of_this_test", SimpleNamespace(app=app))

    return add


def imported_by(*arguments):
    script = (
        "import sys; from lumctl.cli.main import run; status = run(sys.argv[1:]);"
        f"print(status, [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True, text=True)
    return done.stderr.strip()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    assert imported_by(*arguments) == "0 []"


@pytest.mark.parametrize("arguments", [["plugin", "list"], ["plugin", "--help"], ["nonsense"]])
def test_a_command_imports_only_what_it_needs(arguments):
    """Typer itself reads arguments with pydantic; everything else is ours to leave alone."""
    assert imported_by(*arguments).splitlines()[-1].split(" ", 1)[1] in {"[]", "['pydantic']"}


def test_help_names_every_noun_with_its_line(capsys):
    assert main.run(["--help"]) == ExitCode.DONE
    shown = " ".join(capsys.readouterr().out.split())
    for name, noun in NOUNS.items():
        assert f"{name} {noun.help}" in shown


def test_without_a_word_it_prints_help_on_stdout(capsys):
    assert main.run([]) == ExitCode.DONE
    said = capsys.readouterr()
    assert "Simulate:" in said.out + said.err


def test_the_version(capsys):
    assert main.run(["--version"]) == ExitCode.DONE
    assert capsys.readouterr().out == f"lumctl {__version__}\n"


def test_help_and_version_are_words_too(capsys):
    assert main.run(["version"]) == ExitCode.DONE
    assert capsys.readouterr().out == f"lumctl {__version__}\n"
    assert main.run(["help", "swap", "apply"]) == main.run(["swap", "apply", "--help"]) == ExitCode.DONE
    one, same = capsys.readouterr().out.split("Usage: ")[1:]
    assert one == same
    for words in (["help"], ["help", "help"]):
        assert main.run(words) == ExitCode.DONE
        assert "Simulate:" in capsys.readouterr().out
    for words in (["help", "version"], ["version", "--help"]):
        assert main.run(words) == ExitCode.DONE
        assert "Print the version." in capsys.readouterr().out
    assert main.run(["version", "-o", "json"]) == ExitCode.USAGE
    assert "version takes no arguments, but was given '-o json'" in capsys.readouterr().err
    assert main.run(["versoin"]) == ExitCode.USAGE
    assert "did you mean 'version'?" in capsys.readouterr().err


def test_verbs_are_in_the_order_of_use_each_with_its_whole_sentence(capsys):
    main.run(["swap", "--help"])
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.splitlines() if line[:3].strip()][:2] == ["plan", "apply"]
    assert "..." not in listed


def test_an_unknown_word_is_met_with_the_nearest(capsys):
    assert main.run(["pluign", "list"]) == ExitCode.USAGE
    assert "did you mean 'plugin'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (DeviceUnreachableError("x"), 3),
        (RefusedError("x"), 5),
        (RolledBackError("x", run="swap-0001"), 6),
        (HalfDoneError("x", run="swap-0001"), 7),
        (InconsistentError("x"), 7),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code_and_no_traceback(noun, capsys, monkeypatch, error, code):
    monkeypatch.delenv("LUMCTL_TRACEBACK", raising=False)

    def act(_cx):
        raise error

    noun(act)
    assert main.run(["probe", "act"]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("lumctl: ")
    assert "Traceback" not in said.err


def test_a_hint_is_a_second_line(noun, capsys):
    def act(_cx):
        raise UsageError("this is wrong", hint="do that")

    noun(act)
    main.run(["probe", "act"])
    assert capsys.readouterr().err == "lumctl: this is wrong\n  hint: do that\n"


def test_a_verb_may_choose_its_exit_code(noun):
    def act(_cx):
        raise typer.Exit(4)

    noun(act)
    assert main.run(["probe", "act"]) == ExitCode.UNHEALTHY


@pytest.mark.parametrize(
    ("arguments", "target", "wanted"),
    [
        (["probe", "act"], None, "rack table"),
        (["probe", "act"], "sim", "sim table"),
        (["--target", "sim", "-o", "json", "probe", "act"], None, "sim json"),
        (["probe", "act", "--target", "sim", "-o", "json"], None, "sim json"),
        (["--target", "rack", "-o", "yaml", "probe", "act", "--target", "sim"], None, "sim yaml"),
    ],
)
def test_what_is_said_after_the_noun_wins(noun, capsys, monkeypatch, arguments, target, wanted):
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    if target:
        monkeypatch.setenv("LUMCTL_TARGET", target)
    noun(lambda cx: cx.out.text(f"{cx.target} {cx.out.format}"))
    assert main.run(arguments) == ExitCode.DONE
    assert capsys.readouterr().out == f"{wanted}\n"


@pytest.mark.parametrize("arguments", [["--target", "sin"], ["-o", "jsn"]])
def test_a_wrong_choice_is_met_with_the_nearest(noun, capsys, arguments):
    noun(lambda cx: cx.out.text("never"))
    assert main.run(["probe", "act", *arguments]) == ExitCode.USAGE
    assert "did you mean" in capsys.readouterr().err


@pytest.mark.parametrize("buffering", [["-u"], []], ids=["at each print", "at the end"])
def test_a_reader_that_goes_away_is_no_error(buffering):
    command = [sys.executable, *buffering, "-m", "lumctl", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == ExitCode.DONE


def test_the_broken_pipe_of_a_device_is_not_taken_for_one_of_ours(noun, capfd):
    def act(_cx):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    noun(act)
    assert main.run(["probe", "act"]) == ExitCode.UNEXPECTED
    assert "unexpected BrokenPipeError" in capfd.readouterr().err


@pytest.mark.parametrize("words", [["check"], ["device", "set"], ["watch"]])
def test_marks_for_the_manual_do_not_reach_the_terminal(capsys, words):
    assert main.run([*words, "--help"]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert "Usage:" in shown
    assert "`" not in shown


def test_the_program_does_not_search_all_that_lives_for_cycles_again_and_again():
    script = (
        "import atexit, gc; from lumctl.cli.main import main;"
        "atexit.register(lambda: print(gc.get_threshold()[0])); main()"
    )
    done = subprocess.run([sys.executable, "-c", script, "--version"], check=True, capture_output=True, text=True)
    assert int(done.stdout.splitlines()[-1]) >= 100_000


def test_a_named_inventory_that_everybody_may_write_is_used_with_a_warning(tmp_path, capsys):
    path = tmp_path / "rack.yaml"
    path.write_text(example("prototype").read_text())
    path.chmod(0o644)
    assert main.run(["-i", str(path), "device", "list", "-o", "name"]) == 0
    assert capsys.readouterr().err == ""
    path.chmod(0o666)
    assert main.run(["-i", str(path), "device", "list", "-o", "name"]) == 0
    assert f"another user can change what this command does: every user may write {path}" in capsys.readouterr().err


def test_an_error_commands_no_terminal(capsys):
    assert main.report(UsageError("\x1b]52;c;aGk=\x07 is not known", hint="\u202e")) == 2
    assert capsys.readouterr().err == "lumctl: \\x1b]52;c;aGk=\\x07 is not known\n  hint: \\u202e\n"
