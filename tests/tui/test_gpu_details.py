"""The readings of a GPU as bars: each with its limit, and what a host does not tell as unknown, never as 0."""

from dataclasses import replace

import pytest

from lumctl.cli.output import ASCII_GLYPHS, GLYPHS
from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi
from lumctl.fleet.readings import ALL_NVLINKS, GpuProcess, NvlinkReading, ProbeOutcome, ProbeStatus
from lumctl.tui.look.marks import Marks
from lumctl.tui.views.detail_text import IN_WORDS, detail_text
from lumctl.tui.views.details import describe

GPU, HOST = "r1-h1-g0", "r1-h1"
PLAIN = Marks({}, ascii_only=True)


@pytest.fixture
def lines_of(kit):
    """The lines of the screen of an accelerator whose host says this, by their first words."""

    def show(width=76, marks=None, nvlink=None, links=(), **said):
        seen = kit.observation()
        host = seen.snapshot.hosts[HOST]
        gpu = replace(host.gpus[0], uuid="GPU-1", **said)
        probes = dict(host.probes)
        if nvlink is not None:
            probes["nvlink"] = ProbeOutcome("nvlink", nvlink, kit.START, 0.1)
        host = replace(host, gpus=(gpu, *host.gpus[1:]), nvlinks=tuple(links), probes=probes)
        snapshot = replace(seen.snapshot, hosts={**seen.snapshot.hosts, HOST: host})
        detail = describe(replace(seen, snapshot=snapshot), GPU, kit.START)
        shown = detail_text(detail, marks or Marks(GLYPHS), kit.START, width=width).plain
        return {line[:20].strip(): line[20:].strip() for line in shown.splitlines() if line.startswith("  ")}

    return show


def links(kit, count, *, active=True, number=None):
    return [
        NvlinkReading(kit.START, 0, "GPU-1", n if number is None else number, active, 26.562 if active else None)
        for n in range(count)
    ]


def test_a_bar_ends_at_the_limit_and_a_limit_within_has_a_mark(lines_of):
    lines = lines_of(width=94, power_w=350.0, temperature_c=55.0)
    assert lines["power"].startswith(f"350 W {'█' * 10}{'░' * 10} limit 700 W")
    assert lines["temperature"].startswith(f"55 C {'█' * 10}{'░' * 5}│{'░' * 4} slows at 87 C")


def test_nothing_and_unknown_differ(lines_of):
    lines = lines_of(utilization_percent=0.0, memory_utilization_percent=None, pcie_rx_kb_s=None)
    assert lines["utilisation"].startswith("0 % ░░")
    assert lines["memory utilisation"] == "unknown: nvidia-smi does not report it"
    assert lines["PCIe receives"] == "unknown: nvidia-smi does not report it"


def test_without_a_limit_there_is_no_bar(lines_of):
    lines = lines_of(power_limit_w=None, pcie_generation=None, pcie_generation_max=None)
    assert not set(lines["power"]) & set("█░")
    assert not set(lines["PCIe sends"]) & set("█░")
    assert lines["PCIe link"].startswith("generation unknown, 16 of 16 lanes")


def test_why_its_clocks_are_low_is_said_in_words(lines_of):
    said = {"throttle_reasons": frozenset({"hw_thermal_slowdown", "hw_slowdown", "new_reason"})}
    lines = lines_of(**said, throttled_us={"sw_power_cap": 7_200_000_000, "sync_boost": 0, "hw_thermal_slowdown": 5e6})
    assert lines["clocks held down"] == "its hardware slows down; too hot, according to its hardware; new reason"
    assert lines["held down so far"] == "2 h: at its power limit; 5 s: too hot, according to its hardware"
    assert lines_of()["clocks held down"] == "no reason reported"


def test_each_process_holds_a_share_of_the_memory(lines_of):
    processes = (GpuProcess(41, "/opt/python3", 40 * 1024.0), GpuProcess(42, "Xorg"))
    lines = lines_of(width=94, processes=processes)
    assert lines["pid 41"] == f"40.0 GiB {'█' * 10}{'░' * 10} /opt/python3"
    assert lines["pid 42"].split() == ["unknown", "Xorg"]
    assert lines_of(processes=())["processes"] == "none reported"


def test_nvlink_rates_have_the_links_as_their_limit_and_say_over_what_time_they_are(lines_of, kit):
    rates = {
        "nvlink_tx_kb_s": 120e6,
        "nvlink_rx_kb_s": 0.0,
        "nvlink_rates_at": kit.START - 12,
        "nvlink_rates_over_s": 30.0,
    }
    lines = lines_of(links=links(kit, 18), **rates)
    assert "of 478 GB/s" in lines["NVLink sends"]
    assert lines["NVLink sends"].endswith("12 s")
    assert lines["NVLink receives"].startswith("0 KB/s ░")
    assert lines["NVLink"] == "18 of 18 links active; rates are means of 30 s"


def test_nvlink_without_a_rate_is_unknown_and_a_host_without_nvlink_has_none(lines_of, kit):
    assert lines_of(links=links(kit, 18))["NVLink sends"] == "unknown: a rate needs two readings of the link counters"
    assert "NVLink" not in lines_of(nvlink=ProbeStatus.ABSENT)
    assert lines_of(nvlink=ProbeStatus.TIMED_OUT)["NVLink"] == "the state of its links is unknown"
    none = lines_of(links=links(kit, 1, active=False, number=ALL_NVLINKS))
    assert none["NVLink"] == "no link is active"


def test_a_reading_that_is_too_old_has_a_mark(lines_of, kit):
    assert lines_of(taken_at=kit.START - 50)["power"].endswith("50 s !")
    assert lines_of(width=52, taken_at=kit.START - 50)["power"].endswith("!")


def test_in_words_there_are_no_bars(lines_of, kit):
    lines = lines_of(IN_WORDS, PLAIN, nvlink_tx_kb_s=2e6, nvlink_rates_at=kit.START, nvlink_rates_over_s=30.0)
    assert lines["temperature"] == "58 C, slows at 87 C, 0 s old"
    assert lines["NVLink sends"] == "2.0 GB/s, mean of 30 s, 0 s old"
    assert lines["pid 4711"] == "python, memory 70.3 GiB"


def test_in_ascii(lines_of):
    lines = lines_of(52, Marks(ASCII_GLYPHS, ascii_only=True), power_w=350.0)
    assert lines["power"].split() == ["350", "W", "####....."]
    assert "".join(lines.values()).isascii()


@pytest.mark.parametrize(
    ("capture", "unknown"),
    [
        ("a100-sxm4", {"utilisation", "memory utilisation"}),  # MIG: N/A
        ("tesla-t4", {"memory temperature"}),
        ("rtx-3080-v13", {"memory temperature", "memory errors"}),
        ("gtx-1070-ti", {"memory temperature", "memory errors", "power", "PCIe sends", "PCIe receives"}),
    ],
)
def test_what_real_cards_do_not_report_is_unknown(captures, lines_of, capture, unknown):
    (text,) = (path.read_text() for path in captures.glob(f"nvidia-smi-q-x__{capture}.xml"))
    gpu = parse_nvidia_smi(text, 0.0).gpus[0]
    fields = {name: getattr(gpu, name) for name in gpu.__slots__ if name not in {"taken_at", "pci", "minor", "uuid"}}
    lines = lines_of(**fields)
    assert {name for name, said in lines.items() if said.startswith("unknown")} == unknown
    assert lines["clocks held down"] in {"no reason reported", "nothing runs on it"}
