"""The simulated GPUs: who they are, what runs on them, and the faults that they have."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.inventory.model import Accelerator, Inventory
from lumctl.sim.world.faults import FaultKind

SLOWDOWN_C = 89.0
"""Where a simulated card slows down; it prints this threshold itself."""


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One GPU. ``job`` is the job that the inventory places on it, and ``pid`` that job's process."""

    accelerator: Accelerator
    pci: str
    uuid: str
    job: str | None
    pid: int


@dataclass(frozen=True, slots=True)
class GpuCondition:
    """One GPU at one moment: its faults with their values, and how warm it is."""

    gpu: SimulatedGpu
    faults: Mapping[FaultKind, float | None]
    temperature_c: float

    @property
    def running(self) -> str | None:
        """The job whose process runs on it now."""
        return None if FaultKind.PROCESS_DIED in self.faults else self.gpu.job


def gpus_of(inventory: Inventory) -> dict[str, SimulatedGpu]:
    """Every GPU of an inventory by its accelerator id; addresses that the inventory leaves out are made up."""
    jobs = {accelerator: job.name for job in inventory.jobs.values() for accelerator in job.ranks}
    return {
        accelerator.id: SimulatedGpu(
            accelerator,
            accelerator.pci or f"0000:{(0x1B + 0x11 * accelerator.index) % 0xF0:02x}:00.0",
            accelerator.uuid or f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, accelerator.id)}",
            jobs.get(accelerator.id),
            41_000 + 17 * number,
        )
        for number, accelerator in enumerate(inventory.accelerators.values())
    }
