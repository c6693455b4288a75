"""``lumctl runbook verify`` and ``head``: what was written is shown to be so, also on another day."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.inventory.load import example
from lumctl.store import store_at

LEFT = Path(__file__).parents[2] / "system" / "golden" / "swap-8.sql"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The store of a rack as a swap and its rollback have left it."""
    folder = tmp_path / "state" / "prototype"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "lumctl.db")) as database:
        database.executescript(LEFT.read_text(encoding="utf-8"))
    store_at(str(folder)).close()
    return folder


@pytest.fixture
def command(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setenv("LUMCTL_STATE", str(place.parent))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["-i", str(example("prototype")), "runbook", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    monkeypatch.chdir(tmp_path)
    return call


def edit(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / "lumctl.db")) as database, database:
        assert database.execute(statement).rowcount


def test_what_was_written_is_as_it_was_written(command: Command) -> None:
    assert command("verify") == (ExitCode.DONE, "prototype: the journal is unchanged\n", "")
    code, out, _ = command("verify", "-o", "json")
    assert code == ExitCode.DONE
    assert json.loads(out) == {
        "schema": "lumctl/journal-verify/v1",
        "target": "rack",
        "intact": True,
        "breaks": {},
        "problems": [],
        "against": [],
    }


def test_what_was_changed_is_named(command: Command, place: Path) -> None:
    edit(place, "UPDATE runs SET who = 'you' WHERE id = 'swap-0002'")
    edit(place, "UPDATE plans SET target = 'rack'")
    code, out, _ = command("verify")
    assert code == ExitCode.REFUSED
    assert "prototype: BROKEN: plan plan-" in out
    assert "prototype: BROKEN at entry 11: the who of swap-0002 differs from the journal\n" in out
    _, out, _ = command("verify", "-o", "json")
    document = json.loads(out)
    assert not document["intact"]
    assert len(document["problems"]) == 2
    assert document["breaks"]["prototype"] == {k: document["problems"][0][k] for k in ("seq", "reason")}


def test_a_head_can_be_kept_and_held_against_the_journal(command: Command, place: Path, tmp_path: Path) -> None:
    code, out, _ = command("head", "--out", "head.json")
    assert code == ExitCode.DONE
    assert "prototype" in out
    (kept,) = json.loads((tmp_path / "head.json").read_text())["heads"]
    assert (kept["rack"], kept["seq"], kept["count"]) == ("prototype", 43, 43)
    assert (tmp_path / "head.json").stat().st_mode & 0o777 == 0o600
    code, out, _ = command("verify", "--head", "head.json")
    assert (code, out) == (
        ExitCode.DONE,
        "prototype: the journal is unchanged, and continues from the head in head.json\n",
    )
    edit(place, "DELETE FROM journal WHERE seq = 43")
    assert command("verify")[0] == ExitCode.DONE
    code, out, _ = command("verify", "--head", "head.json")
    assert code == ExitCode.REFUSED
    assert "BROKEN at entry 43: it ends at entry 42, but had 43 entries" in out


def test_what_is_printed_as_json_is_a_head_too(command: Command, tmp_path: Path) -> None:
    (tmp_path / "printed.json").write_text(command("head", "-o", "json")[1])
    assert command("verify", "--head", "printed.json")[0] == ExitCode.DONE
    assert (
        command("head", "-o", "name")[1].strip()
        == json.loads((tmp_path / "printed.json").read_text())["heads"][0]["hash"]
    )


SCHEMA = '"schema": "lumctl/journal-head/v1"'
STRANGE = '{"rack": "r9", "seq": 0, "hash": "", "at": 0, "count": 0}'
BACK = STRANGE.replace('"seq": 0', '"seq": -1')
NO_HEAD = "is not a head of a journal"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, ExitCode.USAGE, "file head.json does not exist"),
        ("{", ExitCode.USAGE, NO_HEAD),
        ("[]", ExitCode.USAGE, NO_HEAD),
        (f'{{{SCHEMA}, "heads": [{{"rack": "x"}}]}}', ExitCode.USAGE, NO_HEAD),
        (f'{{{SCHEMA}, "target": "rack", "heads": [{BACK}]}}', ExitCode.USAGE, NO_HEAD),
        (f'{{{SCHEMA}, "target": "sim", "heads": []}}', ExitCode.REFUSED, "is for target sim"),
        (f'{{{SCHEMA}, "target": "rack", "heads": [{STRANGE}]}}', ExitCode.USAGE, "contains a head of rack r9, which"),
    ],
)
def test_what_is_no_head_of_this_store_is_refused(
    command: Command, tmp_path: Path, text: str | None, code: ExitCode, said: str
) -> None:
    if text is not None:
        (tmp_path / "head.json").write_text(text)
    found, _, told = command("verify", "--head", "head.json")
    assert (found, said in told) == (code, True), told
