"""Slices where two racks have a torus: each lies in one of them, in the one where it fits best."""

import re

import pytest
import yaml
from fake_torus import FakeRack

from lumctl.errors import RefusedError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.slices.documents import report_document, slices_document
from lumctl.slices.moves import plan_moves_of
from lumctl.slices.planning import plan_slice
from lumctl.slices.request import SliceRequest, read_shapes

OTHER = (("torus64", "torus-b"), ("h[", "k["), ("m[", "n["), (r"\bm(\d)", r"n\1"), (r"^([xyz])(\d|\[)", r"b\1\2"))


def renamed(part):
    """The same part of another rack."""
    if isinstance(part, dict):
        return {renamed(key): renamed(value) for key, value in part.items()}
    if isinstance(part, list):
        return [renamed(each) for each in part]
    for old, new in OTHER if isinstance(part, str) else ():
        part = re.sub(old if "\\" in old or "^" in old else re.escape(old), new, part)
    return "k16" if part == "h16" else part


@pytest.fixture(scope="module")
def inventory(tmp_path_factory):
    written = yaml.safe_load(example("torus64").read_text())
    for section in ("hosts", "devices"):
        for each in written[section]:
            each["rack"] = "torus64"
    for section in ("hosts", "devices", "fibres", "transponders"):
        written[section] += renamed(written[section])
    written["racks"]["torus-b"] = renamed(written["racks"]["torus64"])
    path = tmp_path_factory.mktemp("racks") / "two.yaml"
    path.write_text(yaml.safe_dump(written, sort_keys=False))
    return load_inventory(path)


@pytest.fixture
def racks(inventory):
    return FakeRack(inventory)


def planned(racks, shape, *jobs, **asked):
    return plan_slice(racks, SliceRequest(read_shapes(shape), jobs, (), **asked))


def test_the_rack_is_chosen_where_a_slice_lies_best(racks):
    # In the first rack, a job of the inventory is in the way of such a box.
    plan = planned(racks, "4x4x3", "large")
    assert plan.rack == "torus64"
    assert planned(racks, "56", "larger").rack == "torus-b"
    racks.carry_out(plan)
    second = planned(racks, "4x4x2", "second")
    assert second.rack == "torus-b"
    assert {row["host"][0] for row in second.slices.placement} == {"k"}
    racks.carry_out(second)
    assert {each["rack"]: each["free"] for each in slices_document(racks)["racks"]} == {"torus64": 4, "torus-b": 28}
    report = report_document(racks)
    assert report["overall"]["free"] == 32
    assert [each["free"] for each in report["racks"]] == [4, 28]


def test_a_slice_lies_in_one_rack_and_a_refusal_speaks_of_all(racks):
    racks.carry_out(planned(racks, "4x4x2", "a"))
    racks.carry_out(planned(racks, "4x4x2", "b"))
    assert len({racks.inventory.accelerators[name].rack for name in racks.placed["a"]}) == 1
    with pytest.raises(RefusedError, match="in any of 2 racks"):
        planned(racks, "50", "c")
    with pytest.raises(UsageError, match="a slice of 65 accelerators is larger than"):
        planned(racks, "65", "c")


def test_hosts_choose_the_rack(racks):
    assert planned(racks, "2x2x1", "a", hosts=("k03",)).rack == "torus-b"
    assert planned(racks, "2x2x1", "a", hosts=("h03",)).rack == "torus64"


def test_moves_are_proposed_rack_by_rack(racks):
    found = plan_moves_of(racks, (), most=2)
    assert [each.rack for each in found] == ["torus64", "torus-b"]
    assert [each.rack for each in plan_moves_of(racks, ["torus-b"], most=2)] == ["torus-b"]
    with pytest.raises(UsageError, match="'torus-c' is no rack with a `torus:`"):
        plan_moves_of(racks, ["torus-c"], most=2)
