"""``lumctl inventory`` as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lumctl.cli.main import run
from lumctl.inventory.load import example

Write = Callable[[str | bytes], Path]
RACK64 = str(example("rack64"))


def test_validate_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "validate", RACK64]) == 0
    counts = "1 rack, 16 hosts, 64 accelerators, 128 lanes, 4 meshes, 2 jobs"
    assert capsys.readouterr().out == f"{RACK64}: {counts}: no errors\n"


def test_validate_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "validate", RACK64, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lumctl/inventory-validation/v1"
    assert document["valid"] is True
    assert document["counts"]["lanes"] == 128
    assert document["errors"] == []


def test_errors_on_stderr(small: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(small.replace("model:", "modell:").replace("eth3", "eth2"))
    assert run(["inventory", "validate", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"lumctl: {path}:8:9: key 'modell' is not known; did you mean 'model'?")


def test_independent_errors_are_told_in_one_pass(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    text = example("rack64").read_text()
    for right, wrong in (
        ("memory_gib: 80", "memory_gibs: 80"),
        ("- h[01-08]-gpu1\n", "- h[01-08]-gpu9\n"),
        ("driver: smartlight", "driver: smartligt"),
        ("columns: 9, rows: 9", "columns: 9, rows: 9, rws: 3"),
    ):
        text = text.replace(right, wrong, 1)
    text += "policies:\n  - {name: x, rules: [gpu.lst], how: notify}\nsharing: {policy: besst}\n"
    assert run(["inventory", "validate", str(write(text))]) == 2
    told = [line.partition(": ")[2].partition("; ")[0] for line in capsys.readouterr().err.splitlines()[1:]]
    assert told == [
        "key 'memory_gibs' is not known",
        "driver 'smartligt' is not known",
        "key 'rws' is not known",
        "accelerator 'h01-gpu9' is not known",
        "rule 'gpu.lst' is not known",
        "sharing policy 'besst' is not known",
    ]


def test_errors_as_json(small: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(small.replace("modl", "model").replace("kind: mesh", "kind: mash"))
    assert run(["inventory", "validate", str(path), "-o", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["valid"] is False
    assert document["errors"] == [
        {
            "file": str(path),
            "line": 13,
            "column": 11,
            "message": "found 'mash', expected mesh, switch, chassis or power",
            "hint": "did you mean 'mesh'?",
        }
    ]


def test_show_folds_long_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "show", "-i", RACK64]) == 0
    shown = capsys.readouterr().out
    assert "h[01-15]-gpu[0-3]" in shown
    assert len(shown.splitlines()) < 40


def test_show_wide_has_a_row_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "show", "-i", RACK64, "-o", "wide"]) == 0
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("h07-gpu2")]) == 3


def test_show_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "show", "-i", RACK64, "-o", "name"]) == 0
    names = capsys.readouterr().out.split()
    assert len(names) == len(set(names)) == 1 + 16 + 64 + 4 + 128 + 2


def test_show_as_json_is_resolved(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "show", "-i", str(example("prototype")), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lumctl/inventory/v1"
    assert document["transponders"][0]["lane"] == {"device": "mesh", "tx": 12, "rx": 18}
    assert document["jobs"][0]["links"] == [{"kind": "ring", "ranks": [0, 1, 2]}]


def test_show_one_component(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "show", "-i", RACK64, "h16-gpu2"]) == 0
    assert "ROLE         spare" in capsys.readouterr().out
    assert run(["inventory", "show", "-i", RACK64, "rail3", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [device["id"] for device in document["devices"]] == ["rail3"]
    assert document["hosts"] == []


def test_show_unknown_component_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inventory", "show", "-i", RACK64, "rial3"]) == 2
    assert "did you mean rail3?" in capsys.readouterr().err
