import pytest

from lumctl.fleet.parsers.fields import find_pci
from lumctl.fleet.parsers.nvlink import NvlinkState, parse_nvlink_errors, parse_nvlink_states
from lumctl.fleet.parsers.sysfs import parse_counters, parse_infiniband, parse_interfaces, unread_line


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
    assert (down.state, down.phys_state, down.rate) == ("DOWN", "Disabled", None)


def test_infiniband_as_a_table_of_a_real_server(captures):
    text = (captures / "sys-class-infiniband__h100.tsv").read_text()
    first, second = parse_infiniband(text, 5.0)
    assert (first.device, first.state, first.phys_state) == ("mlx5_0", "ACTIVE", "LinkUp")
    assert (second.device, second.rate) == ("mlx5_1", "400 Gb/sec (4X NDR)")
    counters = parse_counters(text, 5.0)
    assert list(counters) == ["mlx5_0/1", "mlx5_1/1"]
    assert [counters[name].values["link_downed"] for name in counters] == [0, 255]
    assert counters["mlx5_0/1"].values["port_rcv_data"] == 230539874932483
    assert counters["mlx5_0/1"].values["roce_adp_retrans"] == 3
    assert unread_line(text) is None


def test_counters_of_the_kernel(answer):
    counters = parse_counters(answer("counters.txt"), 5.0)
    assert counters["eth2"].taken_at == 5.0
    assert counters["eth2"].values == {
        "carrier_up_count": 3,
        "carrier_down_count": 2,
        "rx_bytes": 2**64 - 1,
        "tx_bytes": 77,
        "rx_errors": 0,
        "rx_crc_errors": 4,
    }
    assert counters["mlx5_0/1"].values == {
        "link_downed": 255,
        "symbol_error": 0,
        "port_rcv_data": 205128687774249,
        "out_of_sequence": 7,
    }


@pytest.mark.parametrize("value", ["", "7x", "-1", "1.5", str(2**64), "9" * 400, "0x10", "7 8"])
def test_part_of_a_number_is_no_counter(value):
    line = f"/sys/class/net/eth2/statistics/rx_errors:{value}"
    assert parse_counters(line, 5.0) == {}
    assert unread_line(line) == line


@pytest.mark.parametrize(
    "line",
    [
        "/sys/class/net/eth2/operstate:uq",
        "/sys/class/net/eth2/op\x00rstate:up",
        "/sys/class/nex/eth2/operstate:up",
        "/sys/class/net/eth2/carrier_changes:two",
        "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACT\ufffdVE",
        "garbage",
    ],
)
def test_a_line_that_the_kernel_did_not_write(line):
    assert unread_line(f"/sys/class/net/eth2/operstate:up\n{line}\n") == line


def test_lines_that_the_kernel_writes(answer):
    for file in ("net.txt", "infiniband.txt", "counters.txt"):
        assert unread_line(answer(file)) is None


def test_nvlinks(answer):
    about, states = parse_nvlink_states(answer("nvlink.txt"))
    uuid = "GPU-11111111-2222-3333-4444-555555555555"
    assert (about.gpus, about.unread) == (2, None)
    assert states == {
        (0, uuid, 0): NvlinkState(active=True, speed_gb_s=26.562),
        (0, uuid, 1): NvlinkState(active=False),
    }


def test_nvlinks_of_real_servers(captures):
    about, states = parse_nvlink_states((captures / "nvidia-smi-nvlink-s__a100.txt").read_text())
    assert (about.gpus, about.unread, len(states)) == (8, None, 96)
    assert set(states.values()) == {NvlinkState(active=True, speed_gb_s=25.0)}
    _, states = parse_nvlink_states((captures / "nvidia-smi-session__h100-80gb-hbm3.txt").read_text())
    assert [state.speed_gb_s for state in states.values()] == [26.562] * 18


def test_error_counters_of_both_generations(answer):
    about, errors = parse_nvlink_errors(answer("nvlink-errors.txt"))
    first, second = errors.values()
    assert (about.gpus, about.unread) == (1, None)
    assert first.counters == {"replay errors": 0, "recovery errors": 1, "crc errors": 65535}
    assert second.counters["replay errors"] == 4
    about, errors = parse_nvlink_errors(answer("nvlink-errors-5.txt"))
    first, second = errors.values()
    assert (about.unread, second.rates["effective ber"]) == (None, 2e-11)
    # Without limits on a number, this floor of the scale would read as a very high rate.
    assert first.rates["effective ber"] == 1.5e-254
    assert (first.counters["fec errors - 0"], first.counters["raw ber lane 0"]) == (36140749276, 2061)
