"""Requests of the mesh controllers' line protocol."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import PucState
from lumctl.sim.meshes.controller import parse_request


def test_a_request_is_a_list_of_pairs():
    assert parse_request("[(3, '='), (17, 'x')]\n") == {3: PucState.BAR, 17: PucState.CROSS}
    assert parse_request("[]") == {}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "{1: 'x'}",
        "(1, 'x')",
        "[(1, 'y')]",
        "[(1,)]",
        "[('1', 'x')]",
        "[(True, 'x')]",
        "[(1.0, 'x')]",
        "[1]",
        "[(1, 'x'",
        "__import__('os').getcwd()",
        "[" * 5000,
        "\0",
    ],
)
def test_anything_else_is_refused(line):
    with pytest.raises(ValueError, match="pair"):
        parse_request(line)


@given(st.text(max_size=200))
def test_no_text_does_more_than_be_refused(line):
    with contextlib.suppress(ValueError):
        assert isinstance(parse_request(line), dict)


@given(st.dictionaries(st.integers(0, 500), st.sampled_from(PucState)))
def test_what_a_driver_writes_is_read(states):
    assert parse_request(repr([(puc, state.value) for puc, state in states.items()])) == states
