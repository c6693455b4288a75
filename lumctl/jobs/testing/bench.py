"""What a kind of job control is made from, without an inventory, a rack or a store."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from lumctl.jobs.control import JobContext, More, Placement, Rank
from lumctl.programs import MOST_SAID_BYTES, Ended, run_program


def ranks(*hosts: str) -> Placement:
    """A placement: one rank on each of these hosts, on its first accelerator (``h1-gpu0`` on ``h1``)."""
    return tuple(Rank(rank, f"{host}-gpu0", host, 0) for rank, host in enumerate(hosts))


def bench_context(
    settings: Any, placement: Placement, *, job: str = "train", target: str = "rack", timeout_s: float = 10.0
) -> JobContext:
    """A context whose programs really run, on this machine; accelerators are named as :func:`ranks` names them."""

    def run(argv: Sequence[str], *, act: str, timeout_s: float, **more: Unpack[More]) -> Ended:
        variables = {"LUMCTL_JOB": job, "LUMCTL_ACT": act, "LUMCTL_TARGET": target}
        most = more.get("most_said", MOST_SAID_BYTES)
        return run_program(argv, timeout_s=timeout_s, variables=variables, most_said=most)

    return JobContext(
        job=job,
        target=target,
        timeout_s=timeout_s,
        settings=settings,
        inventory=Path("lumctl.yaml"),
        placement=lambda: placement,
        host_of=lambda accelerator: accelerator.rpartition("-")[0],
        address_of=lambda host: host,
        run=run,
        now=time.monotonic,
        wait=threading.Event().wait,
    )
