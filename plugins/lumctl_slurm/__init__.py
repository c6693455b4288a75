"""Jobs that Slurm runs: drained from, requeued and released where lumctl has moved them."""

from lumctl_slurm.control import Slurm

__all__ = ["Slurm"]
