"""NVLinks, PCIe replays, memory errors and XIDs that come again: what only several readings show."""

from dataclasses import replace
from math import ceil

import pytest

from lumctl.fleet.readings import ALL_NVLINKS, NvlinkReading, SxidEvent, XidEvent
from lumctl.health.rulebook import verdict
from lumctl.health.states import State

GPU, HOST = "h03-gpu2", "h03"
PCI = "0000:9b:00"


def told(watched):
    return [(finding.rule, finding.case) for finding in watched.report.accelerators[GPU].findings]


def nvlinks(watched, **fields):
    """Eighteen links of every GPU of the host, one of which is as a test says."""
    watched.rack.host(
        HOST,
        nvlinks=tuple(
            NvlinkReading(
                watched.now, index, None, link, **({"active": True, "errors_at": watched.now} | (
                    fields if (index, link) == (2, 7) else {}
                ))
            )
            for index in range(4)
            for link in range(18)
        ),
    )  # fmt: skip


@pytest.mark.parametrize("counter", ["replay_errors", "recovery_errors"])
def test_any_replay_or_recovery_of_an_nvlink_fails_its_gpu(watched, counter):
    nvlinks(watched, **{counter: 4})
    assert watched.look(30).accelerators[GPU].state is State.OK
    nvlinks(watched, **{counter: 5})
    assert watched.look(30).accelerators[GPU].state is State.FAILED
    assert "NVLink 7: nvlink" in watched.report.accelerators[GPU].findings[0].evidence
    others = {watched.report.accelerators[f"h03-gpu{n}"].state for n in (0, 1, 3)}
    assert others == {State.OK}


@pytest.mark.parametrize(("a_second", "state"), [(0.9, State.OK), (1, State.DEGRADED), (100, State.FAILED)])
def test_crc_errors_of_an_nvlink_by_their_rate(watched, a_second, state):
    for look in range(4):
        nvlinks(watched, crc_errors=int(look * 30 * a_second))
        watched.look(30)
    assert watched.report.accelerators[GPU].state is state


def test_the_bit_errors_of_nvlink_5(watched):
    nvlinks(watched, effective_ber=1e-15)
    assert watched.look(30).accelerators[GPU].state is State.OK
    nvlinks(watched, effective_ber=1e-11)
    watched.look(30)
    assert told(watched) == [("gpu.nvlink", "bit-errors")]


def test_a_link_that_was_never_active_is_no_fault_and_one_that_was_is(watched):
    nvlinks(watched, active=False)
    # None of the others has it either: then nothing tells that there should be one.
    links = watched.rack.hosts[HOST].nvlinks
    watched.rack.host(HOST, nvlinks=tuple(replace(link, active=link.link != 7) for link in links))
    assert watched.look(30).accelerators[GPU].state is State.OK
    nvlinks(watched)
    watched.look(30)
    nvlinks(watched, active=False)
    watched.look(30)
    assert told(watched) == [("gpu.nvlink", "inactive")]
    assert "NVLink 7 is no longer active" in watched.report.accelerators[GPU].findings[0].evidence


def test_nvlinks_are_not_matched_by_place_when_a_gpu_is_missing(watched):
    nvlinks(watched, effective_ber=1e-11)
    watched.rack.lose_gpu("h03-gpu0")
    watched.look(30)
    assert {watched.report.accelerators[f"h03-gpu{n}"].state for n in (1, 2, 3)} == {State.OK}


@pytest.mark.parametrize(("generation", "width"), [(5, 16), (4, 16), (3, 8), (1, 1)])
def test_pcie_replays_by_speed_and_width(watched, generation, width):
    allowed = ceil(verdict("gpu.pcie-replays", "above-allowed").limits[f"gen{generation}"] * width)
    watched.rack.gpu(GPU, pcie_generation=generation, pcie_width=width, pcie_replays=1_000)
    assert watched.look(10).accelerators[GPU].state is State.OK
    watched.rack.gpu(GPU, pcie_replays=1_000 + allowed)
    assert watched.look(30).accelerators[GPU].state is State.OK
    watched.rack.gpu(GPU, pcie_replays=1_001 + allowed)
    watched.look(10)
    assert told(watched) == [("gpu.pcie-replays", "above-allowed")]


def test_a_gen5_link_of_sixteen_lanes_may_replay_thirty_one_times_a_minute():
    assert ceil(verdict("gpu.pcie-replays", "above-allowed").limits["gen5"] * 16) == 31


def test_memory_errors_that_come_again_are_told_as_growing(watched):
    watched.rack.gpu(GPU, ecc_volatile_uncorrectable=4)
    watched.look()
    # One fault, however many errors it counted.
    assert told(watched) == [("gpu.ecc", "uncorrectable")]
    watched.look()
    watched.rack.gpu(GPU, ecc_volatile_uncorrectable=5)
    watched.look()
    assert ("gpu.ecc", "growing") in told(watched)


def test_more_than_one_page_retired_for_double_bits_in_a_week_is_too_many(watched):
    for day, pages in enumerate((17, 18, 18, 19)):
        watched.rack.gpu(GPU, retired_double_bit=pages)
        watched.look(86_000 if day else 10)
    assert told(watched) == [("gpu.retired-pages", "growing")]
    assert watched.report.accelerators[GPU].state is State.FAILED


def xids(watched, *events):
    """XID, seconds ago, and the text of each line."""
    lines = tuple(XidEvent(watched.now - ago, PCI, xid, f"Xid {xid}, {text}") for xid, ago, text in events)
    watched.rack.host(HOST, xids=lines)
    watched.look()


SM, OTHER_SM = "pid=7, Graphics SM Warp Exception on (GPC 2, TPC 0, SM 1)", "pid=7, on (GPC 5, TPC 1, SM 0)"
MMU = "pid=7, MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_3 faulted"


@pytest.mark.parametrize(("number", "text"), [(13, SM), (31, MMU)])
def test_a_program_fault_twice_on_one_unit_asks_for_diagnostics(watched, number, text):
    xids(watched, (number, 5000, text), (number, 60, text))
    assert told(watched) == [("gpu.xid-repeated", "same-unit"), ("gpu.xid", "restart-application")]
    assert watched.report.accelerators[GPU].state is State.DEGRADED


def test_on_different_units_it_is_the_program(watched):
    xids(watched, (13, 5000, SM), (13, 60, OTHER_SM))
    assert told(watched) == [("gpu.xid", "restart-application"), ("gpu.xid-repeated", "different-units")]
    assert watched.report.accelerators[GPU].state is State.OK


def test_the_many_lines_of_one_fault_are_one_time(watched):
    xids(watched, (13, 60, SM), (13, 59, SM), (13, 58, OTHER_SM))
    assert told(watched) == [("gpu.xid", "restart-application")]


def test_a_fault_of_whatever_program_runs_asks_for_diagnostics(watched):
    programs = [(8, 6000 - 100 * n, f"pid={100 + n}, name=python3") for n in range(3)]
    xids(watched, *programs[:2])
    assert watched.report.accelerators[GPU].state is State.OK
    xids(watched, *programs)
    assert ("gpu.xid-repeated", "many-programs") in told(watched)


def test_cleanup_again_and_again_asks_for_the_fabric_manager_unless_another_xid_tells_why(watched):
    cleanups = [(45, 6000 - 1000 * n, "pid=7, Ch 00000008") for n in range(3)]
    xids(watched, *cleanups)
    assert ("gpu.xid-repeated", "cleanup-alone") in told(watched)
    assert "fabric manager" in watched.report.accelerators[GPU].findings[0].advice
    xids(watched, *cleanups, (94, 100, "pid=7, Contained ECC error"))
    assert "gpu.xid-repeated" not in [rule for rule, _ in told(watched)]


def test_xids_of_an_earlier_boot_are_over(watched):
    xids(watched, (79, 500, "GPU has fallen off the bus."))
    assert watched.report.accelerators[GPU].state is State.FAILED
    watched.rack.host(HOST, booted_at=watched.now - 300)
    assert watched.look().accelerators[GPU].state is State.OK


@pytest.mark.parametrize(("fatal", "state"), [(True, State.FAILED), (None, State.DEGRADED), (False, State.OK)])
def test_errors_of_an_nvswitch_are_the_hosts(watched, fatal, state):
    event = SxidEvent(watched.now - 5, "0000:c1:00.0", 99999, "SXid: 99999, Fatal, Link 28", fatal=fatal, link=28)
    watched.rack.host(HOST, sxids=(event,))
    watched.look()
    assert watched.report.hosts[HOST].state is state
    assert "SXid 99999" in watched.report.hosts[HOST].findings[0].evidence
    assert {watched.report.accelerators[f"h03-gpu{n}"].state for n in range(4)} == {State.OK}


def test_nvlink_errors_of_before_the_first_look_are_a_note_and_no_fault(watched):
    links = tuple(
        NvlinkReading(watched.now, 2, None, link, active=True, errors_at=watched.now, replay_errors=4)
        for link in range(5)
    )
    filler = tuple(NvlinkReading(watched.now, index, None, 0, active=True) for index in (0, 1, 3))
    watched.rack.host("h03", nvlinks=(*filler, *links))
    gpu = watched.look().accelerators["h03-gpu2"]
    (note,) = gpu.findings
    assert (gpu.state, note.state, note.case) == (State.OK, State.OK, "counted-before")
    assert note.evidence.endswith("NVLink 2: 4 replays since the driver was loaded, and 2 more like it")


SXM = {"product": "NVIDIA A100-SXM4-80GB"}
PCIE = {"product": "NVIDIA A100-PCIE-40GB", "fabric": {}}


def no_links(watched, *indices):
    """All links of some GPUs of the host are inactive, as nvidia-smi says in one sentence; the others' are active."""
    links = (
        NvlinkReading(watched.now, n, None, ALL_NVLINKS if n in indices else 0, active=n not in indices)
        for n in range(4)
    )
    watched.rack.host(HOST, nvlinks=tuple(links))


H200 = {"product": "NVIDIA H200", "fabric": {"state": "Completed", "status": "Success"}}
MIG = {**SXM, "raw": {"mig_mode/current_mig": "Enabled"}}


@pytest.mark.parametrize(
    ("inactive", "fields", "state"),
    [
        ((2,), SXM, State.FAILED),
        ((0, 1, 2, 3), SXM, State.FAILED),
        ((2,), H200, State.FAILED),
        ((0, 1, 2, 3), H200, State.FAILED),
        # PCIe cards need a bridge: one without links beside linked neighbours is a fault, all without links is not.
        ((2,), PCIE, State.DEGRADED),
        ((0, 1, 2, 3), PCIE, State.OK),
        ((2,), MIG, State.OK),
        ((0, 1, 2, 3), MIG, State.OK),
    ],
)
def test_a_gpu_of_which_no_nvlink_is_active(watched, inactive, fields, state):
    for number in range(4):
        watched.rack.gpu(f"h03-gpu{number}", **fields)
    no_links(watched, *inactive)
    states = {watched.look().accelerators[f"h03-gpu{n}"].state for n in inactive}
    assert states == {state}


def test_links_of_a_gpu_that_was_partitioned_since_are_not_missed(watched):
    nvlinks(watched)
    watched.look()
    nvlinks(watched, active=False)
    watched.rack.gpu(GPU, **MIG)
    assert watched.look().accelerators[GPU].state is State.OK
    watched.rack.gpu(GPU, **SXM, raw={})
    assert watched.look().accelerators[GPU].state is State.DEGRADED


def test_links_that_were_all_active_before_and_are_all_gone(watched):
    watched.rack.gpu(GPU, **PCIE)
    no_links(watched)
    assert watched.look().accelerators[GPU].state is State.OK
    no_links(watched, 2)
    assert watched.look().accelerators[GPU].state is State.FAILED
    assert told(watched) == [("gpu.nvlink", "all-inactive")]
    no_links(watched)
    assert watched.look().accelerators[GPU].state is State.OK
