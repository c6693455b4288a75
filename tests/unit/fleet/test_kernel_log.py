import re
from datetime import UTC, datetime

import pytest

from lumctl.fleet.parsers.kernel_log import KERNEL_PATTERN, parse_kernel_log
from lumctl.fleet.readings import NicEventKind, ProbeStatus


def at(*when):
    return datetime(*when, tzinfo=UTC).timestamp()


def test_xids_in_every_form_of_time(answer):
    events = parse_kernel_log(answer("kernel.log"), booted_at=1000.0).xids
    assert [(event.xid, event.pci) for event in events] == [
        (79, "0000:9b:00.0"),
        (119, "0000:9b:00.1"),
        (13, "0000:03:00.0"),
        (31, "0000:04:00.0"),
        (48, "0000:05:00.0"),
    ]
    assert [event.at for event in events] == [
        at(2026, 11, 21, 7, 24, 18, 123456),
        at(2026, 11, 21, 7, 24, 19),
        1012.5,
        None,
        None,
    ]
    assert events[0].text.endswith("GPU has fallen off the bus.")
    assert events[-1].text == ""


def test_a_number_of_an_xid_is_read_whole_or_not_at_all():
    line = "NVRM: Xid (PCI:0000:9b:00): {}, text"
    assert [event.xid for event in parse_kernel_log(line.format("1000079")).xids] == [1000079]
    assert parse_kernel_log(line.format("1" * 20)).xids == ()


def test_a_gpu_that_fell_off_the_bus_without_an_xid():
    fallen = "[    1.500000] NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.\n"
    (event,) = parse_kernel_log(fallen, booted_at=1000.0).all_xids
    assert (event.xid, event.pci, event.at) == (79, "0000:9b:00.0", 1001.5)
    # It stands beside the XID as a rule, and is no second one then.
    both = f"{fallen}NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"
    assert len(parse_kernel_log(both).all_xids) == 1
    assert parse_kernel_log("NVRM: this system has fallen off the bus").all_xids == ()


_THREE_LINES = (
    "NVRM: The NVIDIA GPU 0000:b3:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)
_TWO_LINES = (
    "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:1e07) installed in this",
    "NVRM: system has fallen off the bus and is not responding to commands.",
)


@pytest.mark.parametrize("message", [_THREE_LINES, _TWO_LINES])
@pytest.mark.parametrize(
    ("first", "further"),
    [
        ("[ 1843.308145] ", "[ 1843.308145] "),
        ("[ 1843.308145] ", " " * 15),
        ("2026-11-21T07:24:18,123456+00:00 ", " " * 33),
    ],
)
def test_a_gpu_that_fell_off_the_bus_in_several_lines(message, first, further):
    lines = [first + message[0], *(further + line for line in message[1:])]
    log = parse_kernel_log("\n".join(lines), booted_at=1000.0)
    (event,) = log.all_xids
    assert (event.xid, event.pci) == (79, "0000:b3:00.0")
    assert event.at in {2843.308145, at(2026, 11, 21, 7, 24, 18, 123456)}
    assert "fallen off the bus" in event.text
    assert log.unread is None
    # The host sends the lines that match, and must not hold back the one with the address.
    sent = [line for line in lines if re.search(KERNEL_PATTERN, line)]
    assert parse_kernel_log("\n".join(sent), booted_at=1000.0).all_xids == log.all_xids


def test_each_of_several_gpus_that_fell_off_the_bus_is_named_by_the_line_above():
    first, second = "\n".join(_THREE_LINES), "\n".join(_THREE_LINES).replace("b3", "c1")
    other = "NVRM: The NVIDIA GPU 0000:01:00.0\nNVRM: (PCI ID: 10de:0ff9) installed in this system is not supported"
    log = parse_kernel_log(f"{other}\n{first}\n{second}\n")
    assert [event.pci for event in log.all_xids] == ["0000:b3:00.0", "0000:c1:00.0"]
    # The XID says the same of the same GPU.
    both = parse_kernel_log(f"{first}\nNVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.\n")
    assert len(both.all_xids) == 1


def test_a_gpu_that_fell_off_the_bus_without_an_address_is_no_well_read_log(take):
    text = f"[    1.000000] {_THREE_LINES[2]}\n"
    assert parse_kernel_log(text).all_xids == ()
    status, detail, _ = take("kernel", text)
    assert (status, "fallen off the bus" in detail) == (ProbeStatus.FAILED, True)


def test_a_time_since_boot_needs_the_time_of_boot(answer):
    assert parse_kernel_log(answer("kernel.log")).xids[2].at is None


def test_the_log_of_a_hung_gsp(captures):
    log = parse_kernel_log((captures / "dmesg__xid-119.log").read_text())
    events = log.all_xids
    assert {(event.xid, event.pci) for event in events} == {(119, "0000:9b:00.0")}
    assert events[0].at == at(2025, 2, 23, 16, 24, 18)
    assert len(events) == 5
    assert (log.unread, log.nics, log.sxids) == (None, (), ())


def test_what_network_drivers_report(answer):
    log = parse_kernel_log(answer("nic.log"), booted_at=1000.0)
    kind = NicEventKind
    adapter = "0000:9c:00.0"
    assert [(event.kind, event.interface, event.pci) for event in log.nics] == [
        (kind.LINK_UP, "eth2", adapter),
        (kind.LINK_DOWN, "eth2", adapter),
        (kind.CABLE, None, adapter),
        (kind.TEMPERATURE, None, adapter),
        (kind.FATAL, None, adapter),
        (kind.FATAL, None, adapter),
        (kind.TX_TIMEOUT, "eth2", adapter),
        (kind.TX_TIMEOUT, "eth3", None),
        (kind.LINK_DOWN, "enp193s0f0np0", "0000:c1:00.0"),
        (kind.LINK_UP, "ens1f0", "0000:4b:00.0"),
        (kind.PCIE, None, adapter),
        (kind.LINK_DOWN, "eth9", None),
    ]
    assert (log.nics[2].at, log.nics[2].text) == (1104.3, "Port module event: module 0, Cable unplugged")
    assert log.nics[3].text.startswith("temp_warn:192:(pid 0): High temperature")


def test_what_an_nvswitch_reports_is_one_event_however_many_lines_it_takes(answer):
    log = parse_kernel_log(answer("nic.log"))
    assert [(event.sxid, event.pci, event.fatal, event.link) for event in log.sxids] == [
        (12028, "0000:05:00.0", False, 32),
        (20034, "0000:06:00.0", True, 63),
        (10003, "0000:06:00.0", None, None),
    ]
    assert (log.unread, log.xids, log.lines) == (None, (), 19)


def test_an_event_is_known_by_what_the_kernel_wrote(answer):
    log = answer("nic.log")
    first, later = (parse_kernel_log(log, booted_at=booted_at) for booted_at in (1000.0, 1000.7))
    for events, again in ((first.nics, later.nics), (first.sxids, later.sxids)):
        assert [event.identity for event in events] == [event.identity for event in again]
        assert len({event.identity for event in events}) == len(events)


def test_a_line_without_end_does_not_fill_findings_and_journal():
    text = f"[ 1.000000] NVRM: Xid (PCI:0000:41:00): 79, {'x' * 1_000_000}\n[ 2.000000] NVRM: Xid {'y' * 1_000_000}\n"
    events = parse_kernel_log(text)
    (event,) = events.xids
    assert event.xid == 79
    assert len(event.text) < 2100
    assert len(events.unread) < 2100


def test_a_message_behind_a_carriage_return_counts():
    log = "[   98.0] NVRM: Xid (PCI:0000:9b:00): 119, name=x\r[   99.5] NVRM: Xid (PCI:0000:1b:00): 79, pid=7, lost\r\n"
    assert [(event.pci, event.xid) for event in parse_kernel_log(log, booted_at=900.0).xids] == [
        ("0000:9b:00.0", 119),
        ("0000:1b:00.0", 79),
    ]
