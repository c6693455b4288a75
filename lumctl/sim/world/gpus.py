"""The simulated GPUs: their identities, the jobs on them, and their faults."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.inventory.model import Accelerator, Inventory
from lumctl.sim.world.faults import FaultKind

SLOWDOWN_C = 89.0
"""The temperature at which a simulated card slows down; nvidia-smi shows this threshold."""


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    """One GPU. ``job`` is the job on it: first that of the inventory. ``pid`` is the process of a job."""

    accelerator: Accelerator
    pci: str
    uuid: str
    job: str | None
    pid: int


@dataclass(frozen=True, slots=True)
class GpuCondition:
    """One GPU at one time: its faults with their values, its temperature, and the seconds that it has worked so far."""

    gpu: SimulatedGpu
    faults: Mapping[FaultKind, float | None]
    temperature_c: float
    worked_s: float = 0.0

    @property
    def running(self) -> str | None:
        """The job whose process runs on it now."""
        return None if FaultKind.PROCESS_DIED in self.faults else self.gpu.job


def gpus_of(inventory: Inventory) -> dict[str, SimulatedGpu]:
    """Every GPU of an inventory by accelerator id; PCI addresses and UUIDs that the inventory lacks are invented."""
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
