"""The probe ``example-probe``: one command that prints JSON, and the kernel lines of one driver."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from lumctl.fleet.probe_api import (
    AcceleratorProbe,
    CommandOutput,
    GpuReading,
    KernelLine,
    ProbeCommand,
    ProbeReport,
    pci_address,
)


class ExampleProbe(AcceleratorProbe):
    """Reads ``example-smi --json``."""

    api_version: ClassVar[int] = 1
    name: ClassVar[str] = "example-probe"
    proven: ClassVar[str] = "not run on hardware: the tool is made up"
    commands: ClassVar[tuple[ProbeCommand, ...]] = (
        ProbeCommand("status", "example-smi --json", "example-smi.json", every_s=10.0, deadline_s=5.0),
    )
    values: ClassVar[Mapping[str, str]] = {"broken_lanes": "lanes"}
    kernel_lines: ClassVar[tuple[KernelLine, ...]] = (KernelLine("halted", "exampledrv.* core halted"),)

    @staticmethod
    def read(outputs: Mapping[str, CommandOutput], taken_at: float) -> ProbeReport:
        """One accelerator for each entry; truncated or unparsed output is a problem, so that nothing passes as ok."""
        try:
            entries = json.loads(outputs["status"].text)
        except (ValueError, RecursionError):
            entries = None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            return ProbeReport(problem="example-smi printed no complete JSON list")
        found: dict[str, GpuReading] = {}
        for entry in entries:
            pci = pci_address(str(entry.get("pci")))
            if pci is None or pci in found:
                return ProbeReport(problem="example-smi printed an entry without a pci of its own")
            found[pci] = _reading(pci, entry, taken_at)
        return ProbeReport(tuple(found.values()), problem="" if found else "example-smi lists nothing")


def _reading(pci: str, entry: Mapping[str, Any], taken_at: float) -> GpuReading:
    unread: dict[str, str] = {}

    def needed(name: str) -> float | None:
        value = entry.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            unread[name] = str(value)
            return None
        return float(value)

    errors, lanes = needed("uncorrectable_errors"), needed("broken_lanes")
    return GpuReading(
        taken_at,
        pci,
        temperature_c=needed("temperature_c"),
        memory_used_mib=needed("memory_used_mib"),
        ecc_volatile_uncorrectable=None if errors is None else int(errors),
        unread=unread,
        vendor_values={} if lanes is None else {"broken_lanes": lanes},
    )
