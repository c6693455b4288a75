"""A state as bytes: every kind of number comes back bit for bit, and nonsense is told as such."""

import json
from collections import OrderedDict

import pytest
import torch

from lumctl.errors import UsageError
from lumctl.training.torch.states import BrokenStateError, StateSnapshot, lay_out

KINDS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


def test_every_kind_of_number_and_every_shape_comes_back_through_json_and_bytes():
    numbers = {str(kind): (torch.randn(3, 5) * 7).to(kind) for kind in KINDS}
    tree = {
        "numbers": OrderedDict(numbers),
        "odd": [torch.tensor(1.5), torch.empty(0, 4), torch.randn(4, 6).t(), (1, "two", None, True, 0.1, float("inf"))],
        "state": {0: {"step": torch.tensor(3.0)}, 17: {}},
    }
    taken = StateSnapshot.take(tree, 3)
    again = StateSnapshot(3, json.loads(json.dumps(taken.meta)), taken.data.clone()).tree()
    assert list(again["state"]) == [0, 17]
    assert again["odd"][3] == tree["odd"][3]
    for name, tensor in numbers.items():
        assert again["numbers"][name].dtype is tensor.dtype
        assert torch.equal(again["numbers"][name], tensor)
    for ours, theirs in zip(tree["odd"][:3], again["odd"][:3], strict=True):
        assert ours.shape == theirs.shape
        assert torch.equal(ours, theirs)


def test_the_live_state_is_sent_as_the_same_bytes_that_a_snapshot_holds():
    tree = {"a": torch.randn(7), "b": torch.randn(3, 3).t(), "c": torch.tensor([True])}
    sent = b"".join(bytes(piece) for piece in lay_out(tree).pieces())
    again = StateSnapshot(0, lay_out(tree).meta, torch.frombuffer(bytearray(sent), dtype=torch.uint8)).tree()
    assert all(torch.equal(tree[name], again[name]) for name in tree)


def test_an_optimiser_that_is_given_a_kept_state_does_not_change_it():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([parameter])
    parameter.grad = torch.ones(3)
    optimizer.step()
    kept = StateSnapshot.take(optimizer.state_dict(), 1)
    before = kept.data.clone()
    optimizer.load_state_dict(kept.tree())
    optimizer.step()
    assert torch.equal(kept.data, before)


@pytest.mark.parametrize(
    "meta",
    [
        {"d": [["a", {"t": "float32", "shape": [4], "at": 0, "n": 1 << 40}]]},
        {"d": [["a", {"t": "float32", "shape": [4], "at": -16, "n": 16}]]},
        {"d": [["a", {"t": "load", "shape": [4], "at": 0, "n": 16}]]},
        {"d": [["a", {"t": "float32", "shape": [5], "at": 0, "n": 16}]]},
        {"l": []},
        {"x": 1},
    ],
)
def test_a_description_that_does_not_fit_its_bytes_is_refused(meta):
    with pytest.raises(BrokenStateError):
        StateSnapshot(0, meta, torch.zeros(64, dtype=torch.uint8)).tree()


@pytest.mark.parametrize("value", [object(), {1, 2}, torch.nn.Linear(1, 1), torch.eye(2).to_sparse()])
def test_what_cannot_be_handed_over_is_named(value):
    with pytest.raises(UsageError, match=r"state\.model\.odd is a "):
        lay_out({"model": {"odd": value}})
