"""``nvidia-smi -q`` as text, with a heading lost or damaged: a GPU whose fault still stands in the text is never ok.

Every line that others belong to is damaged in every way, beside each fault, at either GPU.
"""

import re
from pathlib import Path

import pytest

from lumctl.fleet.bundle.session import as_xml
from lumctl.fleet.probe_output import Gathered, ProbeAnswer
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.health.evaluation import evaluate
from lumctl.health.states import State
from lumctl.inventory.load import load_inventory

ADDRESSES = ("00000000:1B:00.0", "00000000:4C:00.0")
INVENTORY = """\
lumctl: 1
racks: {r: {}}
hosts:
  - name: h1
    accelerators:
      - {id: "g[0-1]", model: H100, memory_gib: 80, pci: ["0000:1b:00.0", "0000:4c:00.0"]}
"""
ANSWERS = Path(__file__).parent / "answers"
HEAD = (ANSWERS / "smi-text-head.txt").read_text().format(count=len(ADDRESSES))
GPU = (ANSWERS / "smi-text-gpu.txt").read_text()
FAULTS = (
    ("GPU Recovery Action", 1, "Reset"),
    ("Reset Required", 1, "Yes"),
    ("Drain and Reset Recommended", 1, "Yes"),
    ("SRAM Uncorrectable Parity", 1, "1"),
    ("SRAM Uncorrectable SEC-DED", 1, "3"),
    ("DRAM Uncorrectable", 1, "2"),
    ("SRAM Uncorrectable Parity", 2, "1"),
    ("DRAM Uncorrectable", 2, "2"),
    ("SRAM Threshold Exceeded", 1, "Yes"),
    ("Channel Repair Pending", 1, "Yes"),
    ("TPC Repair Pending", 1, "Yes"),
    ("Unrepairable Memory", 1, "Yes"),
    ("Double Bit ECC", 1, "63"),
    ("Pending Page Blacklist", 1, "Yes"),
    ("Uncorrectable Error", 1, "512"),
    ("Pending", 3, "Yes"),
    ("Remapping Failure Occurred", 1, "Yes"),
    ("None", 1, "2 bank(s)"),
    ("GPU T.Limit Temp", 1, "-9 C"),
    ("Memory Current Temp", 1, "GPU is lost"),
    ("State", 1, "Not Started"),
    ("Status", 1, "Insufficient Resources"),
    ("Route Unhealthy", 1, "True"),
    ("Incorrect Configuration", 1, "Incorrect SysGUID"),
)
"""A row, which of the rows of this name, and a value that makes the GPU anything but ok."""


def with_fault(gpu: str, fault: tuple[str, int, str]) -> str:
    name, number, value = fault
    rows = list(re.finditer(rf"^ +{re.escape(name)} +: (.*)$", gpu, re.MULTILINE))
    row = rows[number - 1]
    return gpu[: row.start(1)] + value + gpu[row.end(1) :]


def texts(fault: tuple[str, int, str], ill: int) -> str:
    gpus = [GPU.format(address=address, minor=number) for number, address in enumerate(ADDRESSES)]
    gpus[ill] = with_fault(gpus[ill], fault)
    return HEAD + "".join(gpus)


def headings(lines: list[str]) -> list[int]:
    """The lines that others belong to: of the output, of a GPU, of a section."""
    return [
        at
        for at, line in enumerate(lines)
        if line.startswith(("GPU ", "====", "Attached")) or (line.startswith(" ") and " : " not in line)
    ]


def swapped(lines: list[str], at: int) -> list[str]:
    return [*lines[:at], *reversed(lines[at : at + 2]), *lines[at + 2 :]]


WAYS = {
    "lost": lambda lines, at: [*lines[:at], *lines[at + 1 :]],
    "emptied": lambda lines, at: [*lines[:at], "", *lines[at + 1 :]],
    "garbled": lambda lines, at: [*lines[:at], re.sub("[aeiouG0]", "\x7f", lines[at]), *lines[at + 1 :]],
    "cut": lambda lines, at: [*lines[:at], lines[at][: len(lines[at]) * 2 // 3], *lines[at + 1 :]],
    "shifted left": lambda lines, at: [*lines[:at], lines[at].removeprefix("    "), *lines[at + 1 :]],
    "shifted right": lambda lines, at: [*lines[:at], "    " + lines[at], *lines[at + 1 :]],
    "given a value": lambda lines, at: [*lines[:at], f"{lines[at]}   : N/A", *lines[at + 1 :]],
    "said twice": lambda lines, at: [*lines[: at + 1], *lines[at:]],
    "joined to the row before": lambda lines, at: [*lines[: at - 1], lines[at - 1] + lines[at], *lines[at + 1 :]],
    "after its first row": swapped,
    "lost with the row before": lambda lines, at: [*lines[: at - 1], *lines[at + 1 :]],
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    path = tmp_path_factory.mktemp("sessions") / "lumctl.yaml"
    path.write_text(INVENTORY)
    inventory = load_inventory(path)
    (probe,) = (probe for probe in probes_for((), sudo=False) if probe.name == "gpu")

    def judge(text: str) -> tuple[list[State], ProbeStatus]:
        gathered = Gathered()
        status, detail = probe.take(ProbeAnswer(0, as_xml(text)), 1000.0, gathered)
        outcome = ProbeOutcome("gpu", status, 1000.0, 0.1, detail)
        seen = HostSnapshot(
            "h1", 1000.0, reachable=True, probes={"gpu": outcome}, gpus=gathered.gpus, lost_gpus=gathered.lost_gpus
        )
        report = evaluate(inventory, Snapshot(1000.0, 0.1, {"h1": seen}), (), losses={}, devices={}, now=1002.0)
        return [report.accelerators[name].state for name in ("g0", "g1")], status

    return judge


def test_the_text_is_ok_as_it_is_and_each_fault_is_seen(judged):
    plain = HEAD + "".join(GPU.format(address=address, minor=number) for number, address in enumerate(ADDRESSES))
    assert judged(plain) == ([State.OK, State.OK], ProbeStatus.OK)
    for fault in FAULTS:
        for ill in (0, 1):
            states, _ = judged(texts(fault, ill))
            assert states[ill] is not State.OK, fault
            assert states[1 - ill] is State.OK, fault


@pytest.mark.parametrize("way", WAYS)
def test_a_gpu_with_a_fault_is_never_ok_beside_a_damaged_heading(judged, way):
    passed_as_ok = []
    for fault in FAULTS:
        name, _, value = fault
        row = re.compile(rf"^ *{re.escape(name)} +: {re.escape(value)}", re.MULTILINE)
        for ill in (0, 1):
            lines = texts(fault, ill).split("\n")
            for at in headings(lines):
                damaged = "\n".join(WAYS[way](lines, at))
                if row.search(damaged) and judged(damaged)[0][ill] is State.OK:
                    passed_as_ok.append((name, value, ill, lines[at].strip()))
    assert passed_as_ok == []
