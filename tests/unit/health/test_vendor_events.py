"""Kernel events that a probe plug-in reads: they last like XIDs, and a line that the plug-in's rules name ends them."""

import json
from dataclasses import replace

import pytest

from lumctl.fleet.readings import AcceleratorEvent
from lumctl.health.acknowledgements import EventClear
from lumctl.health.memory import Memory
from lumctl.health.states import State

GPU, HOST = "h03-gpu2", "h03"
DAY_S = 86_400.0
FAULTS = ("fatal-error", "uncorrectable", "reset-failed", "bad-page-threshold", "lost")
ENDED_BY_RESET = ("fatal-error", "uncorrectable", "deferred", "reset-failed")


@pytest.fixture
def amd(watched):
    """The rack, one host of which is read by amd-smi; everything is read at once."""
    hosts = watched.rack.inventory.hosts
    hosts[HOST] = replace(hosts[HOST], probe="amd-smi")
    boot(watched, "boot-1")
    watched.look()
    return watched


def boot(watched, boot_id):
    watched.rack.host(HOST, boot_id=boot_id, booted_at=watched.now - 10 * DAY_S, accelerator_events=())


def line(watched, kind, *, ago=-9.0, minor=None):
    """A line that the kernel of the host writes a second before the next look, or so long ago."""
    at = watched.now - ago
    pci = None if minor is not None else watched.rack.inventory.accelerators[GPU].pci
    stamp = f"{at - watched.rack.hosts[HOST].booted_at:.6f}"
    return AcceleratorEvent(at, pci, minor, kind, f"amdgpu: {kind}", stamp)


def log(watched, *events):
    """Set what the ring of the host shows."""
    watched.rack.host(HOST, accelerator_events=events)


def state(watched):
    return watched.report.accelerators[GPU].state


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("later_s", [10.0, DAY_S + 1, 30 * DAY_S])
def test_an_event_stays_when_its_line_leaves_the_ring(amd, kind, later_s):
    log(amd, line(amd, kind))
    amd.look()
    before = state(amd)
    assert before in {State.FAILED, State.DEGRADED}
    log(amd)
    amd.look()
    amd.memory = Memory(json.loads(json.dumps(amd.memory.document())))
    # A look an hour: what nobody looked at for a day is forgotten by other rules.
    while later_s > 0:
        amd.look(min(later_s, DAY_S / 2))
        later_s -= DAY_S / 2
    assert state(amd) is before
    (finding,) = amd.report.accelerators[GPU].findings
    assert "the line is no longer in the kernel log" in finding.evidence
    assert f"lumctl health clear {GPU} --reason TEXT" in finding.advice


@pytest.mark.parametrize("kind", FAULTS)
def test_a_line_of_long_ago_still_counts(amd, kind):
    log(amd, line(amd, kind, ago=3 * DAY_S))
    amd.look()
    assert state(amd) is not State.OK


@pytest.mark.parametrize("kind", ENDED_BY_RESET)
def test_a_reset_ends_it_also_when_both_lines_have_left_the_ring(amd, kind):
    fault = line(amd, kind)
    log(amd, fault)
    amd.look()
    assert state(amd) is not State.OK
    done = line(amd, "reset-done")
    for shown in ((fault, done), (done,), ()):
        log(amd, *shown)
        amd.look()
        assert state(amd) is State.OK, shown
    log(amd, line(amd, kind))
    amd.look()
    assert state(amd) is not State.OK


def test_a_reset_does_not_end_what_needs_more(amd):
    log(amd, line(amd, "bad-page-threshold"))
    amd.look()
    log(amd, line(amd, "reset-done"))
    amd.look()
    assert state(amd) is State.FAILED


def test_a_line_that_names_the_number_of_the_accelerator(amd):
    minor = amd.rack.inventory.accelerators[GPU].index
    log(amd, line(amd, "fatal-error", minor=minor))
    amd.look()
    log(amd)
    amd.look()
    assert state(amd) is State.FAILED
    log(amd, line(amd, "reset-done"))
    amd.look()
    log(amd)
    amd.look()
    assert state(amd) is State.OK


def test_a_reboot_ends_all(amd):
    log(amd, *(line(amd, kind) for kind in FAULTS))
    amd.look()
    assert state(amd) is State.FAILED
    boot(amd, "boot-2")
    amd.look()
    assert state(amd) is State.OK


@pytest.mark.parametrize("rule", [None, "gpu.amd-smi.ras"])
def test_an_operator_ends_it_and_a_new_one_counts(amd, rule):
    fault = line(amd, "fatal-error")
    log(amd, fault)
    amd.look()
    amd.said["cleared"] = (EventClear(GPU, rule, "kim", "reset by hand", amd.now),)
    for shown in ((fault,), ()):
        log(amd, *shown)
        amd.look()
        assert state(amd) is State.OK
    log(amd, fault, line(amd, "fatal-error"))
    amd.look()
    assert state(amd) is State.FAILED


def test_what_only_makes_a_note_is_not_kept(amd):
    log(amd, line(amd, "correctable"))
    amd.look()
    log(amd)
    amd.look()
    assert amd.report.accelerators[GPU].findings == ()
