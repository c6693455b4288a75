"""What a shell is given after TAB: commands, options, ids of the inventory and of the stores; and never a message."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lumctl.cli import completion
from lumctl.cli.main import run
from lumctl.cli.manual.command_tree import PATH, command_tree
from lumctl.inventory.load import example, load_inventory

GOLDEN = Path(__file__).parents[2] / "system" / "golden" / "swap-8.sql"
LUMCTL = Path(sys.executable).with_name("lumctl")


@pytest.fixture
def inventory(tmp_path, monkeypatch):
    """A copy of the prototype's inventory, in force, with caches and stores of its own."""
    path = tmp_path / "rack.yaml"
    shutil.copy(example("prototype"), path)
    for name in ("LUMCTL_TARGET", "LUMCTL_STATE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("LUMCTL_INVENTORY", str(path))
    return path


def words(line):
    """The values for the last word of a line."""
    return [value for value, _ in completion.values(line.split(" "))]


def test_its_data_are_those_of_the_program():
    assert PATH.read_text(encoding="utf-8") == command_tree(), "run make man"


@pytest.mark.usefixtures("inventory")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sw", ["swap"]),
        ("swap rol", ["rollback"]),
        ("--target ", ["rack", "sim"]),
        ("--target sim st", ["status", "store", "study"]),
        ("status -o j", ["json"]),
        ("swap plan --fai", ["--failed"]),
        ("swap plan --failed s3", ["s3", "s3-gpu0"]),
        ("swap plan --failed s0-gpu0,s3-gpu", ["s0-gpu0,s3-gpu0"]),
        ("swap plan --spare s3", ["s3-gpu0"]),
        ("swap plan --avoid s3", ["s3", "s3-gpu0", "s3-gpu0-a", "s3-gpu0-b"]),
        ("health explain me", ["mesh"]),
        ("health rules gpu.un", ["gpu.unsteady"]),
        ("job show fi", ["finetune"]),
        ("job show finetune fi", []),
        ("inventory trust s0 s1", ["s1"]),
        ("sim fault s0-gpu0 gpu", ["gpu-lost"]),
        ("completion f", ["fish"]),
        ("inventory validate ", [completion.FILES]),
        ("nothing of the kind ", []),
        ("swap plan --even-if-healthy --failed s3-gpu0,", ["s3-gpu0,s1"]),
    ],
)
def test_words_are_completed(line, found):
    given = words(line)
    assert given == found or (len(found) == 1 and found[0] in given)


def test_a_changed_inventory_is_read_again(inventory):
    assert words("health explain s3-gpu0") == ["s3-gpu0", "s3-gpu0-a", "s3-gpu0-b"]
    inventory.write_text(inventory.read_text().replace("finetune", "pretrain"))
    assert words("job show ") == ["pretrain"]


def test_an_inventory_that_is_edited_while_it_is_read_is_read_again(inventory, monkeypatch):
    def read_before_an_edit(path):
        read = load_inventory(path)
        inventory.write_text(inventory.read_text().replace("finetune", "other"))
        return read

    with monkeypatch.context() as patched:
        patched.setattr("lumctl.inventory.load.load_inventory", read_before_an_edit)
        assert words("job show ") == ["finetune"]
    assert words("job show ") == ["other"]


@pytest.mark.usefixtures("inventory")
@pytest.mark.parametrize("unfit", ["[]", "7", "{}", '{"changed": CHANGED}', "{"])
def test_an_unfit_cache_is_made_again(tmp_path, unfit):
    words("job show ")
    (cache,) = (tmp_path / "XDG_CACHE_HOME" / "lumctl").glob("names-*.json")
    good = json.loads(cache.read_text())
    cache.write_text(unfit.replace("CHANGED", json.dumps(good["changed"])))
    assert words("job show ") == ["finetune"]
    assert json.loads(cache.read_text()) == good


@pytest.mark.usefixtures("inventory")
def test_runs_and_plans_come_from_the_store_of_the_target(tmp_path):
    words("job show ")
    (cache,) = (tmp_path / "XDG_CACHE_HOME" / "lumctl").glob("names-*.json")
    stores = json.loads(cache.read_text())["stores"]
    place = Path(stores["sim"]["prototype"])
    place.parent.mkdir(parents=True)
    with sqlite3.connect(place) as database:
        database.executescript(GOLDEN.read_text(encoding="utf-8"))
    database.close()
    assert words("--target sim swap show ") == ["rollback-0003", "swap-0002", "fabric-0001"]
    assert words("--target sim swap rollback ") == ["rollback-0003", "fabric-0001"]
    assert words("--target sim swap resume ") == []
    assert words("swap rollback ") == []
    assert words("--target sim runbook export ") == ["rollback-0003", "swap-0002", "fabric-0001"]
    assert words("--target sim runbook export swap") == ["swap-0002"]
    assert words("--target sim runbook export my") == [completion.FILES]
    assert [about for _, about in completion.values(["swap", "show", "--target", "sim", "swap-"])] == [
        "undone: finetune: replace s1-gpu0 by s3-gpu0"
    ]
    (applied,) = words("--target sim fabric trace plan-")
    assert words("--target sim swap apply plan-") == []
    with sqlite3.connect(place) as database:
        database.execute("UPDATE plans SET digest = 'other'")
        database.execute("UPDATE runs SET state = 'half-done' WHERE id = 'swap-0002'")
    database.close()
    assert words("--target sim swap apply plan-") == [applied]
    assert words("--target sim slice apply plan-") == []
    assert words("--target sim job phases train --profile plan-") == []
    with sqlite3.connect(place) as database:
        database.execute("UPDATE plans SET body = json_set(body, '$.phases', json_array())")
    database.close()
    assert words("--target sim job phases train --profile plan-") == [applied]
    assert words("--target sim swap abort ") == ["swap-0002"]
    assert "swap-0002" in words("--target sim swap rollback ")


@pytest.mark.parametrize("trouble", ["rules: [", None])
def test_a_prompt_stays_clean_whatever_is_wrong(inventory, trouble):
    inventory.write_text(trouble) if trouble else inventory.unlink()
    ended = subprocess.run([LUMCTL, "__complete", "health", "explain", ""], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


# -- in real shells ---------------------------------------------------------------------------------------------------

BASH = """
source <({lumctl} completion bash)
COMP_WORDS=(lumctl swap plan --avoid s3-gpu0)
COMP_CWORD=4
_lumctl
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
FISH = '{lumctl} completion fish | source; complete -C "lumctl swap plan --avoid s3-gpu0"'
ZSH = """
compdef() {{ :; }}
source <({lumctl} completion zsh)
words=(lumctl swap plan --avoid s3-gpu0) CURRENT=5
_describe() {{ local name="${{@[-1]}}"; print -l -- "${{(P@)name}}" }}
_lumctl
"""


@pytest.mark.usefixtures("inventory")
@pytest.mark.parametrize(
    ("shell", "script"),
    [(("bash", "--norc"), BASH), (("zsh", "-f"), ZSH), (("fish", "--no-config"), FISH)],
    ids=["bash", "zsh", "fish"],
)
def test_in_a_real_shell(require_program, monkeypatch, shell, script):
    program, *options = shell
    monkeypatch.setenv("PATH", str(LUMCTL.parent), prepend=":")
    ended = subprocess.run(
        [require_program(program), *options, "-c", script.format(lumctl=LUMCTL)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [line.split("\t")[0].split(":")[0] for line in ended.stdout.splitlines()] == [
        "s3-gpu0",
        "s3-gpu0-a",
        "s3-gpu0-b",
    ], ended.stderr


def test_an_unknown_shell_is_refused(capsys):
    assert run(["completion", "zhs"]) == 2
    assert "did you mean zsh?" in capsys.readouterr().err
