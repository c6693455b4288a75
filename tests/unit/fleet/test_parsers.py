from datetime import UTC, datetime

from lumctl.fleet.parsers.kernel_log import parse_kernel_log
from lumctl.fleet.parsers.nvlink import parse_nvlink
from lumctl.fleet.parsers.pci import find_pci
from lumctl.fleet.parsers.sysfs import parse_infiniband, parse_interfaces


def at(*when):
    return datetime(*when, tzinfo=UTC).timestamp()


def test_xids_in_every_form_of_time(answer):
    events = parse_kernel_log(answer("kernel.log"), booted_at=1000.0)
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
    assert [event.xid for event in parse_kernel_log(line.format("1000079"))] == [1000079]
    assert parse_kernel_log(line.format("1" * 20)) == ()


def test_a_gpu_that_fell_off_the_bus_without_an_xid():
    fallen = "[    1.500000] NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus.\n"
    (event,) = parse_kernel_log(fallen, booted_at=1000.0)
    assert (event.xid, event.pci, event.at) == (79, "0000:9b:00.0", 1001.5)
    # It stands beside the XID as a rule, and is no second one then.
    assert len(parse_kernel_log(f"{fallen}NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n")) == 1
    assert parse_kernel_log("NVRM: this system has fallen off the bus") == ()


def test_a_time_since_boot_needs_the_time_of_boot(answer):
    assert parse_kernel_log(answer("kernel.log"))[2].at is None


def test_the_log_of_a_hung_gsp(captures):
    events = parse_kernel_log((captures / "dmesg__xid-119.log").read_text())
    assert {(event.xid, event.pci) for event in events} == {(119, "0000:9b:00.0")}
    assert events[0].at == at(2025, 2, 23, 16, 24, 18)
    assert len(events) == 5


def test_pci_addresses_are_written_one_way():
    assert find_pci("00000000:9B:00.0") == find_pci("PCI:0000:9b:00") == "0000:9b:00.0"
    assert find_pci("10000:01:00.0") == "10000:01:00.0"
    assert find_pci("nothing of the kind 12:34") is None


def test_interfaces(answer):
    found = parse_interfaces(answer("net.txt"), 5.0)
    assert (found["eno1"].operstate, found["eno1"].carrier_changes, found["eno1"].speed_mbps) == ("up", 2, 100000)
    assert (found["eth2"].operstate, found["eth2"].carrier_changes, found["eth2"].speed_mbps) == ("down", 9, None)
    assert found["vlan.7"].speed_mbps is None
    assert found["vlan.7"].taken_at == 5.0


def test_infiniband_ports(answer):
    up, down = parse_infiniband(answer("infiniband.txt"), 5.0)
    assert (up.device, up.port, up.state, up.phys_state, up.rate) == (
        "mlx5_0",
        1,
        "ACTIVE",
        "LinkUp",
        "400 Gb/sec (4X NDR)",
    )
    assert up.counters == {"link_downed": 255, "port_rcv_data": 205128687774249}
    assert (down.state, down.phys_state, down.rate) == ("DOWN", "Disabled", None)


def test_infiniband_as_a_table_of_a_real_server(captures):
    first, second = parse_infiniband((captures / "sys-class-infiniband__h100.tsv").read_text(), 5.0)
    assert (first.device, first.state, first.phys_state) == ("mlx5_0", "ACTIVE", "LinkUp")
    assert (first.counters["link_downed"], second.counters["link_downed"]) == (0, 255)
    assert "duplicate_request" not in first.counters


def test_nvlinks(answer):
    first, second = parse_nvlink(answer("nvlink.txt"))
    assert (first.index, first.uuid) == (0, "GPU-11111111-2222-3333-4444-555555555555")
    assert first.links == {0: 26.562, 1: None}
    assert second.links == {}


def test_nvlinks_of_real_servers(captures):
    a100s = parse_nvlink((captures / "nvidia-smi-nvlink-s__a100.txt").read_text())
    assert [len(gpu.links) for gpu in a100s] == [12] * 8
    h100s = parse_nvlink((captures / "nvidia-smi-session__h100-80gb-hbm3.txt").read_text())
    assert any(len(gpu.links) == 18 and gpu.links[0] == 26.562 for gpu in h100s)
