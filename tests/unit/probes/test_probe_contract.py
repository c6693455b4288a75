"""The probes that come with lumctl keep the contract, and the contract finds probes that do not."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lumctl_amd import AmdSmi
from lumctl_gaudi import HlSmi

from lumctl.fleet.probe_api import CommandOutput, KernelLine
from lumctl.fleet.testing import ProbeContract
from lumctl.fleet.testing.contract import broken_by

TEMPLATE = Path(__file__).parents[3] / "plugins" / "template" / "probe"


class TestAmdSmi(ProbeContract):
    probe = AmdSmi


class TestHlSmi(ProbeContract):
    probe = HlSmi


@pytest.fixture(scope="module")
def example():
    sys.path.insert(0, str(TEMPLATE))
    try:
        from lumctl_example_probe.probe import ExampleProbe
    finally:
        sys.path.remove(str(TEMPLATE))
    return ExampleProbe


def wrong(example, **changes):
    changes = {"api_version": 1, "__module__": example.__module__, **changes}
    return type("Wrong", (example,), changes)


def reader(example, change):
    """The example's parser, with its report changed."""
    return staticmethod(lambda outputs, taken_at: change(example.read(outputs, taken_at), outputs))


def each(report, **fields):
    return replace(report, accelerators=tuple(replace(one, **fields) for one in report.accelerators))


def kelvin(report, _outputs):
    return each(report, temperature_c=323.0)


WRONG = {
    "raises on what is cut": ("cut", lambda _report, outputs: __import__("json").loads(outputs["status"].text)),
    "in Kelvin": ("units", kelvin),
    "in bytes": ("units", lambda report, _: each(report, memory_used_mib=1024.0 * 2**20)),
    "hides what is unread": ("dropped-lines", lambda report, _: each(report, unread={}, temperature_c=40.0)),
    "lists what a cut answer lacks": ("cut", lambda report, _: replace(report, problem="")),
    "calls a fault well": ("fixtures", lambda report, _: each(report, vendor_values={"broken_lanes": 0.0})),
    "declares nothing of a value": ("fixtures", lambda report, _: each(report, vendor_values={"other": 1.0})),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_parser_breaks_its_rule(example, case):
    rule, change = WRONG[case]
    assert not broken_by(example, rule)
    assert broken_by(wrong(example, read=reader(example, change)), rule)


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("declaration", {"name": "Example Probe"}),
        ("declaration", {"proven": "not stated"}),
        ("declaration", {"kernel_lines": (KernelLine("halted", r"\bcore"),)}),
        ("rules", {"kernel_lines": (KernelLine("halted", "core halted"), KernelLine("other", "core lost"))}),
        ("fixtures", {"fixtures": "nowhere"}),
    ],
)
def test_a_wrong_declaration_breaks_its_rule(example, rule, changes):
    assert not broken_by(example, rule)
    assert broken_by(wrong(example, **changes), rule)


def test_slow_times_and_shell_syntax_are_refused(example):
    (command,) = example.commands
    assert broken_by(wrong(example, commands=(replace(command, every_s=60.0),)), "times")
    assert broken_by(wrong(example, commands=(replace(command, run="example-smi | tee x"),)), "declaration")


def test_a_value_with_the_name_of_a_reading_s_field_is_refused(example):
    values = {**example.values, "temperature_c": "degrees"}
    assert broken_by(wrong(example, values=values), "declaration")


def test_one_page_comes_without_brackets_and_a_damaged_list_is_no_health():
    folder = Path(sys.modules[AmdSmi.__module__].__file__).parent / "fixtures" / "hot-and-pages"
    outputs = {each.name: CommandOutput(0, (folder / each.file).read_text()) for each in AmdSmi.commands}
    first = AmdSmi.read(outputs, 1.0).accelerators[0]
    assert first.vendor_values["pending_pages"] == 1
    assert not first.unread
    cut = {**outputs, "bad-pages": CommandOutput(0, outputs["bad-pages"].text[:-9])}
    assert AmdSmi.read(cut, 1.0).accelerators[0].unread
    absent = {name: output for name, output in outputs.items() if name != "bad-pages"}
    assert not AmdSmi.read(absent, 1.0).accelerators[0].unread
