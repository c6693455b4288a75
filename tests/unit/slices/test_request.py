"""What is asked of a slice: shapes and names, and each mistake in one line."""

import pytest

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.slice_records import shape_of, slice_record, with_slices
from lumctl.slices.request import SliceRequest, read_shapes, require_request


@pytest.fixture(scope="module")
def torus64():
    return load_inventory(example("torus64"))


def test_shapes_are_read():
    assert read_shapes("4x4x2") == ((4, 4, 2),)
    assert read_shapes("8x2") == ((8, 2, 1),)
    assert (4, 2, 2) in read_shapes("16")
    assert all(x * y * z == 16 for x, y, z in read_shapes("16"))


@pytest.mark.parametrize("text", ["0", "4x0x2", "-4", "4x-1", "", "x", "4x", "4x4x4x4", "4 x 4", "four", "1e3", "٤x٤"])
def test_what_is_no_shape_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="is not a shape of a slice") as error:
        read_shapes(text)
    assert "4x4x2" in error.value.hint


def asked(shape="4", job="tenant", **more):
    return SliceRequest(read_shapes(shape), (job,), (), **more)


def test_all_racks_with_a_torus_are_examined(torus64):
    assert require_request(torus64, asked()).racks == ("torus64",)
    assert require_request(torus64, asked(hosts=("h01",))).racks == ("torus64",)


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        (asked(job="a b"), UsageError, "'a b' cannot be a name"),
        (asked(job="../a"), UsageError, "cannot be a name"),
        (asked(job="train"), UsageError, "the name train is taken"),
        (asked(job="h01-gpu0"), UsageError, "the name h01-gpu0 is taken"),
        (asked(job="x1"), UsageError, "the name x1 is taken"),
        (asked(job="first"), RefusedError, "there is a slice first already"),
        (asked(hosts=("h99",)), UsageError, "no host 'h99' in the inventory"),
        (asked(model="H100"), UsageError, "no accelerator is a 'H100'"),
        (asked("65"), UsageError, "a slice of 65 accelerators is larger than torus64, which has 64"),
        (asked("4x4x5"), UsageError, "larger than torus64"),
    ],
)
def test_each_mistake_is_one_line(torus64, request_, kind, message):
    ranks = ("h01-gpu0",)
    inventory = with_slices(torus64, {"first": ranks, shape_of("first"): slice_record((1, 1, 1), ranks)})
    with pytest.raises(kind, match=message) as error:
        require_request(inventory, request_)
    assert "\n" not in error.value.message


def test_a_rack_without_a_torus_has_no_slices():
    with pytest.raises(LumctlError, match="has a `torus:`"):
        require_request(load_inventory(example("rack64")), asked())
