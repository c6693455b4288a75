"""The variables by which torchrun tells a process its rank, for frameworks that read them."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch.distributed as dist

from lumctl.training.torch.restart import RestartableJob
from lumctl.training.torch.restart import run as run_plain

T = TypeVar("T")
_BY_TORCHRUN = "TORCHELASTIC_RUN_ID" in os.environ
"""Whether torchrun has set the variables. An adapter may set this one later."""


def set_launch_variables(job: RestartableJob) -> None:
    """Set the variables for the present group, which exists already; a process alone needs none."""
    local = job.rank if job.device.type == "cpu" else job.device.index or 0
    if dist.is_initialized() and not _BY_TORCHRUN:
        os.environ |= {
            "RANK": str(job.rank),
            "WORLD_SIZE": str(job.world),
            "LOCAL_RANK": str(local),
            "LOCAL_WORLD_SIZE": str(job.world),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "29500",
        }


def run_with(before: Callable[[RestartableJob], None], main: Callable[[RestartableJob], T], options: Any) -> T:
    """Run ``main`` as :func:`~lumctl.training.torch.run` does, and call ``before`` before each call of it."""

    def prepared(job: RestartableJob) -> T:
        set_launch_variables(job)
        before(job)
        return main(job)

    return run_plain(prepared, **options)
