"""Whatever a host prints, a parser gives what it can read and raises nothing."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumctl.devices.formats.ethtool import parse_ethtool_module
from lumctl.devices.formats.lldp import parse_lldp
from lumctl.fleet.parsers.kernel_log import parse_kernel_log
from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi
from lumctl.fleet.parsers.nvlink import parse_nvlink
from lumctl.fleet.parsers.sysfs import parse_infiniband, parse_interfaces

PARSERS = {
    ".xml": [lambda text: parse_nvidia_smi(text, 1.0)],
    ".json": [parse_lldp],
    ".log": [parse_kernel_log],
    ".tsv": [lambda text: parse_infiniband(text, 1.0)],
    ".txt": [
        lambda text: parse_ethtool_module(text, 1.0),
        lambda text: parse_infiniband(text, 1.0),
        lambda text: parse_interfaces(text, 1.0),
        lambda text: parse_nvidia_smi(text, 1.0),
        parse_nvlink,
        parse_kernel_log,
        parse_lldp,
    ],
}
ANSWERS = sorted((Path(__file__).parent / "answers").iterdir())


@st.composite
def mutilated(draw, original):
    """A text with some of its bytes cut out, swapped or put in."""
    data = original
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
        match draw(st.sampled_from(["cut", "keep", "swap", "insert"])):
            case "cut":
                data = data[:start] + data[end:]
            case "keep":
                data = data[start:end]
            case "swap":
                data = data[end:] + data[start:end] + data[:start]
            case "insert":
                data = data[:start] + draw(st.binary(max_size=12)) + data[start:]
    return data.decode("utf-8", draw(st.sampled_from(["replace", "surrogateescape"])))


def check(original, suffix, draw):
    text = draw(mutilated(original))
    for parse in PARSERS[suffix]:
        parse(text)


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_our_own_answers(path, data):
    check(path.read_bytes(), path.suffix, data.draw)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_captures(captures, data):
    path = data.draw(st.sampled_from(sorted(path for path in captures.iterdir() if path.suffix in PARSERS)))
    check(path.read_bytes(), path.suffix, data.draw)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_at_all(text):
    for parsers in PARSERS.values():
        for parse in parsers:
            parse(text)
