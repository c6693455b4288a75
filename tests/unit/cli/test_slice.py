"""``lumctl slice``: bad input is one line with an exit code, and nothing is done."""

import json

import pytest

from lumctl.cli.main import run
from lumctl.inventory.load import example


@pytest.fixture
def slice_(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)

    def command(*words, inventory="torus64"):
        code = run(["slice", *words, "-i", str(example(inventory)), "--target", "sim"])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("plan", "0", "--job", "a"), 2, "'0' is not a shape of a slice"),
        (("plan", "4x-4", "--job", "a"), 2, "'4x-4' is not a shape of a slice"),
        (("plan", "8x8x8", "--job", "a"), 2, "a slice of 512 accelerators is larger than torus64, which has 64"),
        (("plan", "4", "--job", "train"), 2, "the name train is taken"),
        (("plan", "4", "--job", "no/name"), 2, "'no/name' cannot be a name"),
        (("plan", "4", "--job", "a", "--hosts", "h[1"), 2, "'h[1' has a bracket without its partner"),
        (("plan", "4", "--job", "a", "--hosts", "h99"), 2, "no host 'h99' in the inventory"),
        (("plan", "4", "--job", "a", "--model", "X1"), 2, "no accelerator is a 'X1'"),
        (("apply", "plan-00000000", "--yes"), 2, "has no plan 'plan-00000000'"),
        (("show", "a"), 2, "there is no slice 'a'"),
        (("release", "train", "--yes"), 2, "train is a job of"),
        (("release", "a", "--yes"), 2, "there is no slice 'a'"),
        (("rollback", "slice-0001", "--yes"), 2, "slice-0001"),
    ],
)
def test_bad_input_is_one_line(slice_, words, code, said):
    ended, out, err = slice_(*words)
    assert (ended, out) == (code, "")
    first, *rest = err.splitlines()
    assert said in first
    assert all(line.startswith("  hint: ") for line in rest)
    assert len(rest) <= 1


def test_a_rack_without_a_torus_is_told_apart(slice_):
    code, _, err = slice_("plan", "4", "--job", "a", inventory="rack64")
    assert code == 2
    assert "no rack of" in err
    assert "lumctl-inventory(5)" in err


def test_the_list_of_a_new_store_is_empty(slice_):
    code, out, _ = slice_("list", "-o", "json")
    document = json.loads(out)
    assert code == 0
    assert (document["schema"], document["slices"]) == ("lumctl/slices/v1", [])
    assert document["racks"] == [{"rack": "torus64", "accelerators": 64, "free": 52, "spares": 4}]
    assert slice_("list", "-o", "name") == (0, "", "")
