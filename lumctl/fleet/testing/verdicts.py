"""What a check of the rack would say of a host that prints these files: the same takers, the same rules."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumctl.fleet.gathered import Answer, Gathered
from lumctl.fleet.probe_api import AcceleratorProbe, GpuReading
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.fleet.testing.fixtures import KERNEL_LOG
from lumctl.fleet.visible import visible
from lumctl.health.memory import Memory
from lumctl.inventory.model import Accelerator, Host, Inventory, Rack, Role, Thresholds

_AT = 1_760_000_000.0
_BOOTED_AT = _AT - 3600.0
_HOST = "host"


@dataclass(frozen=True, slots=True)
class Judged:
    """The state of each accelerator by its PCI address, the rules that found something, and its reading.

    ``misbehaved`` says what the probe did wrong; empty where it answered a report.
    """

    states: Mapping[str, str]
    rules: Mapping[str, frozenset[str]]
    readings: Mapping[str, GpuReading]
    misbehaved: str = ""


def judged(probe: type[AcceleratorProbe], files: Mapping[str, str], accelerators: Iterable[str]) -> Judged:
    """Judge one host with these accelerators, of which each command printed its file; one without a file was silent."""
    gathered = Gathered(booted_at=_BOOTED_AT)
    outcomes: dict[str, ProbeOutcome] = {}
    misbehaved = ""
    for each in probes_for((), sudo=False, accelerators=probe.name):
        name = each.file or (KERNEL_LOG if each.name == "kernel" else "")
        if name not in files and each.name != "kernel":
            continue
        status, detail = each.take(Answer(0, files.get(name, "[    0.000000] Linux version\n")), _AT, gathered)
        outcomes[each.name] = ProbeOutcome(each.name, status, _AT, 0.1, detail)
        if status is ProbeStatus.FAILED and detail.startswith(f"probe {probe.name!r} of "):
            misbehaved = detail
    seen = HostSnapshot(
        _HOST, _AT, reachable=True, probes=outcomes, booted_at=_BOOTED_AT, **visible(gathered, outcomes, None)
    )
    owned = tuple(accelerators)
    report = Memory().judge(
        _inventory(probe.name, owned), Snapshot(_AT, 0.0, {_HOST: seen}), (), losses={}, devices={}, now=_AT
    )
    found = report.accelerators
    return Judged(
        {pci: str(found[pci].state) for pci in owned},
        {pci: frozenset(finding.rule for finding in found[pci].findings) for pci in owned},
        {reading.pci: reading for reading in gathered.gpus},
        misbehaved,
    )


def _inventory(probe: str, accelerators: tuple[str, ...]) -> Inventory:
    return Inventory(
        path=Path("fixture.yaml"),
        digest="",
        racks={"rack": Rack("rack")},
        hosts={_HOST: Host(_HOST, "rack", _HOST, probe=probe)},
        accelerators={
            pci: Accelerator(pci, _HOST, "rack", "accelerator", 80.0, Role.ACTIVE, index, pci=pci)
            for index, pci in enumerate(accelerators)
        },
        transponders={},
        devices={},
        jobs={},
        thresholds=Thresholds(),
    )
