"""``lumctl store``: where a store is and what named it, and moving it, with what to do next."""

import json
from pathlib import Path

import pytest

from lumctl.cli import main
from lumctl.errors import ExitCode
from lumctl.inventory.load import example
from lumctl.store import store_at


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "rack.yaml"
    rack = "  prototype:\n"
    file.write_text(example("prototype").read_text().replace(rack, f"{rack}    store: old\n", 1))
    monkeypatch.setenv("LUMCTL_INVENTORY", str(file))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("LUMCTL_STATE", "LUMCTL_TARGET"):
        monkeypatch.delenv(name, raising=False)
    return file


@pytest.fixture
def kept(tmp_path: Path, inventory: Path) -> Path:
    """The folder of the rack's store, in which something is journalled."""
    del inventory
    store = store_at(str(tmp_path / "old"), rack="prototype")
    store.journal.remark("said", {}, at=1.0, who="me")
    store.close()
    return tmp_path / "old"


def test_a_store_is_copied_and_what_is_next_is_told(kept, tmp_path, capsys, monkeypatch):
    new = tmp_path / "new"
    assert main.run(["store", "copy", "--to", str(new), "-o", "json"]) == ExitCode.DONE
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (document["schema"], document["entries"], document["store"]) == ("lumctl/store-copy/v1", 1, str(new))
    assert f"next: `store: {new}` under racks, prototype in " in said.err
    assert main.run(["store", "copy", "--to", str(new)]) == ExitCode.REFUSED
    assert "already contains journal of rack prototype" in capsys.readouterr().err
    assert main.run(["store", "status", "-o", "json"]) == ExitCode.DONE
    (row,) = json.loads(capsys.readouterr().out)["stores"]
    assert (row["store"], row["named_by"], row["state"], row["entries"]) == (str(kept), "store:", "ok", 1)
    monkeypatch.setenv("LUMCTL_STATE", "/dev/null/nowhere")
    assert main.run(["store", "status", "-o", "json"]) == ExitCode.UNREACHABLE
    (row,) = json.loads(capsys.readouterr().out)["stores"]
    assert (row["named_by"], row["state"]) == ("$LUMCTL_STATE", "failed")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--to", "mysql://db/racks"), "--to: found a database URL that begins with mysql://"),
        (("--to", "postgresql://me:hunter2@db/racks"), "--to: found a database URL with a password in it"),
        (("--to", "x", "--target", "sim"), "the store of a simulator is not copied"),
        (("prototyp", "--to", "x"), "no rack 'prototyp' in the inventory"),
    ],
)
def test_what_cannot_be_copied_is_told(inventory, capsys, words, says):
    assert inventory.exists()
    assert main.run(["store", "copy", *words]) == ExitCode.USAGE
    told = capsys.readouterr()
    assert says in told.err
    assert "hunter2" not in told.out + told.err


def test_a_store_that_was_moved_is_shown_as_such(kept, tmp_path, capsys, monkeypatch):
    new = tmp_path / "new"
    assert main.run(["store", "copy", "--to", str(new)]) == ExitCode.DONE
    said = capsys.readouterr().err
    assert f"WARNING: both {kept} and {new} can be used now" in said
    assert "run this again with --retire" in said
    assert main.run(["store", "copy", "--to", str(new), "--retire"]) == ExitCode.DONE
    said = capsys.readouterr()
    assert f"{new} already had a copy; its journal is unbroken" in said.out
    assert f"{kept} is retired" in said.err
    assert main.run(["store", "status", "-o", "json"]) == ExitCode.REFUSED
    (row,) = json.loads(capsys.readouterr().out)["stores"]
    assert (row["state"], row["moved_to"], row["entries"]) == ("moved", str(new), 2)
    assert main.run(["runbook", "verify"]) == ExitCode.DONE
    (tmp_path / "moved").mkdir()
    new.rename(tmp_path / "moved" / "prototype")
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "moved"))
    assert main.run(["store", "status"]) == ExitCode.DONE
