"""What is said of a capture besides its verdicts."""

import json

import pytest

from lumctl.context.capture import observe_capture, remarks
from lumctl.fleet.bundle.capture import ABOUT_CAPTURE, ABOUT_HOST, CAPTURE_SCHEMA
from lumctl.inventory.load import example, load_inventory

NET = "/sys/class/net/lo/operstate\tunknown\n"


@pytest.fixture
def inventory():
    """The four-server example: its rack is ``prototype``, its hosts are s0 to s3."""
    return load_inventory(example("prototype"))


@pytest.fixture
def folder(tmp_path):
    """A capture of s0 and s1."""
    for host in ("s0", "s1"):
        (tmp_path / "capture" / host).mkdir(parents=True)
        (tmp_path / "capture" / host / "net.tsv").write_text(NET)
    return tmp_path / "capture"


def about(folder, **more):
    manifest = {"schema": CAPTURE_SCHEMA, "taken_at": 1.0, "racks": ["prototype"], "hosts": ["s0", "s1"], **more}
    (folder / ABOUT_CAPTURE).write_text(json.dumps(manifest))


def test_of_a_whole_capture_of_this_rack_there_is_nothing_to_say(folder, inventory):
    about(folder)
    assert remarks(folder, inventory) == remarks(folder, None) == ()


def test_hosts_that_are_not_there_any_more(folder, inventory):
    about(folder, hosts=["s0", "s1", "s2", "s3"])
    assert remarks(folder, inventory) == (f"hosts of this capture that are not in {folder}: s[2-3]",)


def test_hosts_that_the_inventory_does_not_have(folder, inventory):
    (folder / "h07").mkdir()
    assert remarks(folder, inventory) == (f"judged without {inventory.path}, because they are not in it: h07",)
    assert remarks(folder, None) == ()


def test_a_capture_that_was_not_finished(folder, inventory):
    (folder / "s0" / ABOUT_HOST).write_text("{}")
    (said,) = remarks(folder, inventory)
    assert "was not finished" in said


def test_another_rack_whose_hosts_bear_the_same_names_is_not_judged_by_this_inventory(folder, inventory):
    about(folder)
    assert set(observe_capture(folder, inventory).report.accelerators) == {"s0-gpu0", "s1-gpu0"}
    about(folder, racks=["basement"])
    assert observe_capture(folder, inventory).report.accelerators == {}
    (said,) = remarks(folder, inventory)
    assert said == f"judged without {inventory.path}: this is a capture of basement, which is not in it"
