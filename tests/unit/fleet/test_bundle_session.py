"""Transcripts, and nvidia-smi's text for people, against its XML."""

import pytest

from lumctl.fleet.bundle.session import as_xml, outputs
from lumctl.fleet.parsers.nvidia_smi import parse_nvidia_smi

QUERY = """
==============NVSMI LOG==============

Timestamp                                 : Tue Jul 14 08:12:38 2026
Driver Version                            : 590.48.01
CUDA Version                              : 13.1

Attached GPUs                             : 1
GPU 00000000:9B:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU UUID                              : GPU-1
    Minor Number                          : 4
    GPU Recovery Action                   : Reset
    PCI
        Bus Id                            : 00000000:9B:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
        Replays Since Reset               : 9
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
    FB Memory Usage
        Total                             : 81559 MiB
        Used                              : 19818 MiB
    Utilization
        GPU                               : 97 %
        Memory                            : 11 %
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable Parity     : 1
            SRAM Uncorrectable SEC-DED    : 0
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 5
            SRAM Threshold Exceeded       : No
    Retired Pages
        Single Bit ECC                    : 3
        Double Bit ECC                    : 1
        Pending Page Blacklist            : Yes
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 7
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 41 C
        GPU T.Limit Temp                  : 46 C
        GPU Slowdown T.Limit Temp         : -2 C
        Memory Current Temp               : 48 C
    GPU Power Readings
        Instantaneous Power Draw          : 69.62 W
    Clocks
        SM                                : 345 MHz
    Max Clocks
        SM                                : 1980 MHz
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4711
            Type                          : C
            Name                          : <python> & "gpu is lost"
"""


def test_the_text_says_what_the_xml_would():
    report = parse_nvidia_smi(as_xml(QUERY), 1.0)
    assert report.complete
    (gpu,) = report.gpus
    assert (gpu.pci, gpu.minor, gpu.uuid) == ("0000:9b:00.0", 4, "GPU-1")
    assert gpu.recovery_action == "Reset"
    assert (gpu.pcie_generation, gpu.pcie_generation_max, gpu.pcie_width, gpu.pcie_width_max) == (4, 5, 8, 16)
    assert gpu.throttle_reasons == {"hw_slowdown", "hw_thermal_slowdown"}
    assert (gpu.memory_total_mib, gpu.memory_used_mib, gpu.utilization_percent) == (81559, 19818, 97)
    assert (gpu.ecc_volatile_uncorrectable, gpu.ecc_aggregate_uncorrectable) == (3, 5)
    assert (gpu.retired_single_bit, gpu.retired_double_bit, gpu.retirement_pending) == (3, 1, True)
    assert (gpu.remap_uncorrectable, gpu.remap_pending, gpu.remap_failed) == (7, True, False)
    assert (gpu.temperature_c, gpu.temperature_slowdown_c, gpu.memory_temperature_c) == (41, 89, 48)
    assert (gpu.power_w, gpu.sm_clock_mhz, gpu.sm_clock_max_mhz) == (69.62, 345, 1980)
    assert report.lost == ()


@pytest.mark.parametrize("end", [QUERY.index("    Temperature"), QUERY.index("    Processes"), 40, 0])
def test_a_text_that_is_cut_short_is_not_whole(end):
    assert not parse_nvidia_smi(as_xml(QUERY[:end]), 1.0).complete


def test_fewer_gpus_than_it_counts_is_not_whole():
    assert not parse_nvidia_smi(as_xml(QUERY.replace(": 1\nGPU", ": 2\nGPU")), 1.0).complete


def test_a_gpu_that_two_answers_in_one_text_list_has_no_values():
    """As where the line of the second command is missing: nobody knows which answer is the newer."""
    gpus = parse_nvidia_smi(as_xml(QUERY + QUERY.replace("41 C", "95 C")), 1.0).gpus
    assert [(gpu.pci, gpu.temperature_c, gpu.memory_used_mib) for gpu in gpus] == [("0000:9b:00.0", None, None)] * 2


def test_a_row_with_a_value_keeps_it_where_rows_below_are_indented_by_mistake():
    row = "        Remapping Failure Occurred        : "
    text = QUERY.replace(f"{row}No\n", f"{row}Yes\n            Max                           : 0 bank(s)\n")
    assert parse_nvidia_smi(as_xml(text), 1.0).gpus[0].remap_failed


def test_a_transcript_is_taken_apart_and_the_later_answer_is_the_newer():
    ruler = "#" * 60
    text = "\n".join([
        *(ruler, "# $ nvidia-smi -q", ruler, QUERY.replace("41 C", "33 C")),
        *(ruler, "# $ nvidia-smi --help", ruler, "Usage: # $ nothing"),
        *(ruler, "# $ nvidia-smi nvlink -s", ruler, "GPU 0: X (UUID: GPU-1)", "\t Link 0: 26 GB/s", ""),
        *(ruler, "# $ nvidia-smi -q", ruler, QUERY),
        *(ruler, "# under load", ruler),
    ])  # fmt: skip
    found = outputs(text)
    assert set(found) == {"gpu", "nvlink"}
    assert found["nvlink"] == "GPU 0: X (UUID: GPU-1)\n\t Link 0: 26 GB/s"
    (gpu,) = parse_nvidia_smi(found["gpu"], 1.0).gpus
    assert gpu.temperature_c == 41


def test_prompts_of_a_shell():
    found = outputs("root@h01:~# dmesg -T\n[x] a\nme@h01:/tmp$ sudo ethtool -m eth2\n\tIdentifier : 0x03\n$ exit\n")
    assert found == {"kernel": "[x] a", "optics:eth2": "\tIdentifier : 0x03"}


@pytest.mark.parametrize("text", ["", "hello\n", "# $ ls\nx\n", "\x00\xff" * 50])
def test_no_transcript(text):
    assert outputs(text) == {}


def test_a_real_one(captures):
    found = outputs((captures / "nvidia-smi-session__h100-80gb-hbm3.txt").read_text())
    assert set(found) == {"gpu", "nvlink"}
    report = parse_nvidia_smi(found["gpu"], 1.0)
    (gpu,) = report.gpus
    assert report.complete
    assert (gpu.pci, gpu.minor, gpu.recovery_action, gpu.utilization_percent) == ("0000:00:09.0", 0, "None", 100)
    assert len(found["nvlink"].splitlines()) == 19
