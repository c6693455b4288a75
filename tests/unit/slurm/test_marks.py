"""What is ours in Slurm is known by its text, whatever others have written beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lumctl_slurm.cluster import SlurmNode
from lumctl_slurm.nodes import Held, Reason, without

NAMES = st.lists(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True), min_size=1, max_size=3)
WORDS = st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True)


@given(WORDS, NAMES, NAMES)
def test_a_reason_that_is_ours_is_read_as_it_was_written(run, failed, spares):
    reason = Reason(run, failed, spares)
    assert Reason.read(f"{reason} ") == reason
    assert Reason.read(f"see {reason}") is None


@pytest.mark.parametrize("text", ["", "none", "lumctl", "lumctl x: fan is loud", "not lumctl x: a replaced by b"])
def test_others_are_not(text):
    assert Reason.read(text) is None


@pytest.mark.parametrize("theirs", ["", "ask Ann first", "lumctl is great; really", "a; b"])
@pytest.mark.parametrize("requeued", [True, False])
def test_a_comment_keeps_what_others_wrote(theirs, requeued):
    held = Held("swap-0007", requeued)
    text = held.added_to(theirs)
    assert (Held.read(text), Held.read(theirs)) == (held, None)
    assert without(text) == theirs
    again = Held("swap-0008", requeued=True)
    assert Held.read(again.added_to(text)) == again
    assert without(again.added_to(text)) == theirs


@pytest.mark.parametrize(
    ("state", "reason", "drained"),
    [
        ("idle", "none", False),
        ("allocated*", "none", False),
        ("drained", "fan", True),
        ("draining*", "fan", True),
        ("down*", "Not responding", False),
        ("down", "board is out", True),
        ("down", "Node unexpectedly rebooted", False),
        ("maint", "till noon", True),
    ],
)
def test_a_node_that_slurm_itself_has_given_up_is_nobody_s(state, reason, drained):
    assert SlurmNode("n1", state, reason).drained is drained
