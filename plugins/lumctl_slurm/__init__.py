"""Control of Slurm jobs: drains the failed nodes, requeues the job, and releases it on its new nodes."""

from lumctl_slurm.control import Slurm

__all__ = ["Slurm"]
