"""A probe that misbehaves costs its own accelerators, and is named with the call."""

import threading

import pytest

from lumctl.containment import Culprit
from lumctl.fleet.contained_probe import ContainedProbe, MainCommand, Outputs
from lumctl.fleet.probe_api import AcceleratorProbe, GpuReading, KernelLine, ProbeCommand, ProbeReport
from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.readings import ProbeStatus

GIVEN = GpuReading(1.0, "0000:17:00.0")


def taken(read, gathered=None, **options):
    kinds = (KernelLine("halted", "core halted"),)
    probe = type("Probe", (AcceleratorProbe,), {
        "api_version": 1, "name": "acme", "commands": (ProbeCommand("status", "acme-smi", "acme.txt"),),
        "kernel_lines": kinds, "minor_pattern": r"acme(\d+):", "read": staticmethod(read),
    })  # fmt: skip
    contained = ContainedProbe(probe, Culprit("probe", "acme", "acme-lab 2.5"), **options)
    gathered = gathered or Gathered(gpus=(GIVEN,))
    return MainCommand(contained, Outputs()), gathered, contained


def raises(*_given):
    raise RuntimeError("oops")


@pytest.mark.parametrize(
    "read",
    [
        raises,
        lambda *_given: None,
        lambda *_given: ProbeReport((GIVEN, GIVEN)),
        lambda *_given: ProbeReport((GpuReading(1.0, "somewhere"),)),
        lambda *_given: ProbeReport((GpuReading(1.0, "0000:17:00.0", temperature_c=float("nan")),)),
        lambda *_given: ProbeReport((GpuReading(1.0, "0000:17:00.0", vendor_values={"undeclared": 1.0}),)),
    ],
)
def test_nonsense_leaves_no_accelerator_and_names_the_plugin(read):
    taker, gathered, _ = taken(read)
    status, detail = taker.take(ProbeAnswer(0, "text"), 5.0, gathered)
    assert status is ProbeStatus.FAILED
    assert detail.startswith("probe 'acme' of acme-lab 2.5: read ")
    assert gathered.gpus == ()


def test_a_late_probe_is_given_up_and_left_alone():
    free, calls = threading.Event(), []

    def hangs(*_given):
        calls.append(1)
        free.wait()

    taker, gathered, _ = taken(hangs, within_s=0.01)
    try:
        assert "has not returned" in taker.take(ProbeAnswer(0, "text"), 5.0, gathered)[1]
        assert "is not called for now" in taker.take(ProbeAnswer(0, "text"), 6.0, gathered)[1]
        assert len(calls) == 1
    finally:
        free.set()


def test_a_good_report_names_its_source_and_time():
    taker, gathered, _ = taken(lambda *_given: ProbeReport((GpuReading(1.0, "0000:C1:00.0"),)))
    assert taker.take(ProbeAnswer(0, "text"), 5.0, gathered)[0] is ProbeStatus.OK
    (reading,) = gathered.gpus
    assert (reading.pci, reading.taken_at, reading.source) == ("0000:c1:00.0", 5.0, "acme")


def test_events_name_an_accelerator_by_address_by_number_or_not_at_all():
    _, _, contained = taken(raises)
    log = "[ 1.000000] acme 0000:17:00.0: core halted\n[ 2.000000] acme3: core halted\n[ 3.000000] core halted\n"
    found = contained.events(log, booted_at=100.0)
    assert [(event.at, event.pci, event.minor) for event in found] == [
        (101.0, "0000:17:00.0", None), (102.0, None, 3), (103.0, None, None),
    ]  # fmt: skip
    assert len({event.identity for event in found}) == 3
