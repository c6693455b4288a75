"""The rules that ship: complete, in agreement with the code, and never harsher than the field's knowledge."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

import lumctl.health
from lumctl.health.rulebook import rulebook
from lumctl.health.states import State

BOOK = rulebook()


def state_of_xid(number):
    return BOOK.verdicts["gpu.xid", BOOK.xid_actions.get(number, "unknown")].state


@pytest.mark.parametrize("verdict", BOOK.verdicts.values(), ids=lambda v: f"{v.rule}/{v.case}")
def test_every_line_has_origin_and_advice(verdict):
    assert verdict.origin
    assert verdict.advice
    assert not verdict.advice.endswith(".")


def test_every_data_file_is_read():
    names = {entry.name for entry in (files("lumctl.health") / "rules").iterdir() if entry.name.endswith(".yaml")}
    assert names == {
        "device.yaml",
        "expected.yaml",
        "fabric.yaml",
        "gpu.yaml",
        "gravity.yaml",
        "host.yaml",
        "link.yaml",
        "machine.yaml",
        "nvlink.yaml",
        "nvlink_xids.yaml",
        "port.yaml",
        "recovery_action.yaml",
        "settings.yaml",
        "sxid.yaml",
        "xid.yaml",
    }
    families = {rule.split(".")[0] for rule in BOOK.rules()}
    assert families == {"gpu", "host", "link", "circuit", "device", "incident"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", BOOK.edition)


def test_every_rule_of_the_data_is_used_by_the_code_and_the_other_way_round():
    sources = "".join(path.read_text() for path in Path(lumctl.health.__file__).parent.rglob("*.py"))
    named = set(re.findall(r'"((?:gpu|host|link|circuit|device|incident)\.[a-z-]+)"', sources))
    assert named == set(BOOK.rules())


@pytest.mark.parametrize("number", [46, 62, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158])
def test_an_xid_that_asks_for_reset_or_restart_fails_the_gpu(number):
    assert state_of_xid(number) is State.FAILED


@pytest.mark.parametrize("number", [8, 13, 31, 43, 45, 63, 92, 94, 137])
def test_the_faults_of_programs_do_not_touch_the_gpu(number):
    assert state_of_xid(number) is State.OK


@pytest.mark.parametrize("number", [1, 61, 173, 999])
def test_an_unknown_xid_warns_and_never_fails(number):
    assert state_of_xid(number) is State.DEGRADED


def test_no_xid_stands_under_two_actions():
    import yaml

    document = yaml.safe_load((files("lumctl.health") / "rules" / "xid.yaml").read_text())
    numbers = [number for listed in document["actions"].values() for number in listed]
    assert len(numbers) == len(set(numbers))
    assert set(document["actions"]) | {"unknown"} == set(document["rules"]["gpu.xid"])
    assert set(document["meanings"]) <= set(numbers)
