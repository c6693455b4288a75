"""The workers of a Dask cluster whose scheduler is in this process, and whose workers are in jobs of Slurm."""

import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from signal import SIGINT, getsignal, signal
from typing import Any

from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.studies.dask_cluster import client_executor, quiet_dask
from lumctl.studies.engine import StudyExecutor, interrupts_blocked

_SETTINGS = "jobqueue.slurm"
"""Where Dask's configuration has what dask-jobqueue asks of Slurm: partition, account, walltime and others."""
_START_TIMEOUT_S, _LOOKS_EACH_S = 600.0, 0.5
_MEMORY = "2GiB"


@contextmanager
def slurm_executor(workers: int) -> Iterator[StudyExecutor]:
    """The executor of so many workers, each of one thread. At the end of the block their jobs are cancelled.

    A job that ends before the study, such as by its walltime, is submitted again. Workers whose scheduler has ended,
    such as with a killed process, end by themselves.

    Raises:
        RefusedError: Slurm takes none of the jobs.
        UnreachableError: no worker has started within the seconds of ``jobqueue.slurm.start-timeout``.
        UsageError: dask-jobqueue or Slurm is not installed, or the configuration is not valid.
    """
    interrupt = getsignal(SIGINT)
    jobs, distributed = (
        quiet_dask(each, "--executor slurm needs dask-jobqueue") for each in ("dask_jobqueue", "distributed")
    )
    signal(SIGINT, interrupt)  # dask-jobqueue replaces the handler when it is imported
    if shutil.which("sbatch") is None:
        missing = "--executor slurm needs Slurm, but its command sbatch is not found"
        raise UsageError(missing, hint="run it on a host that submits jobs")
    refused: list[str] = []
    # Ctrl-C must not reach sbatch: it would leave a job whose number is not known.
    with interrupts_blocked():
        cluster = _cluster(jobs, refused)
    with cluster, distributed.Client(cluster) as client:
        cluster.scale(workers)
        _await_worker(client, cluster, refused, _start_timeout_s())
        cluster.adapt(minimum=workers, maximum=workers)
        with client_executor(client, workers) as executor:
            yield executor


def _setting(name: str, otherwise: Any = None) -> Any:
    return import_module("dask.config").get(f"{_SETTINGS}.{name}", None) or otherwise


def _start_timeout_s() -> float:
    value = _setting("start-timeout", _START_TIMEOUT_S)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{_SETTINGS}.start-timeout in Dask's configuration is {value!r}, expected seconds") from None


def _cluster(jobs: Any, refused: list[str]) -> Any:
    """A cluster without workers; ``refused`` gets what Slurm says of each job that it does not take."""

    class StudyJob(jobs.SLURMCluster.job_cls):  # type: ignore[misc]
        status: Any

        async def start(self) -> None:
            try:
                await super().start()
            except RuntimeError as error:
                refused.append(str(error))
                self.status = type(self.status).running  # else Dask logs a traceback; it is a job that never starts

        async def close(self) -> None:
            await super().close()
            self.status = type(self.status).closed  # dask-jobqueue forgets it, and Dask checks it

    cores = _setting("cores", 1)
    given = {
        "cores": cores,
        "memory": _setting("memory", _MEMORY),
        "processes": _setting("processes", cores),  # a case uses one processor
        "scheduler_options": {"dashboard_address": "127.0.0.1:0", **_setting("scheduler-options", {})},
    }
    if _setting("log-directory") is None:  # sbatch's own place is the folder of the command
        given["job_extra_directives"] = ["--output=/dev/null", *_setting("job-extra-directives", ())]
    try:
        return jobs.SLURMCluster(job_cls=StudyJob, silence_logs=logging.CRITICAL, **given)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        words = " ".join(str(error).split())
        raise UsageError(f"{_SETTINGS} in Dask's configuration starts no cluster: {words}") from error


def _await_worker(client: Any, cluster: Any, refused: list[str], within_s: float) -> None:
    ends = time.monotonic() + within_s
    while True:
        try:
            client.wait_for_workers(1, timeout=_LOOKS_EACH_S)
        except TimeoutError as error:
            if len(refused) == len(cluster.worker_spec):
                raise RefusedError(f"Slurm takes no worker's job: {_words_of(refused[0])}") from error
            if time.monotonic() >= ends:
                raise UnreachableError(
                    f"no worker has started within {within_s:g} s, the start-timeout of {_SETTINGS}",
                    hint="sinfo shows whether nodes are free; log-directory keeps what a worker prints",
                ) from error
        else:
            return


def _words_of(error: str) -> str:
    """What sbatch printed."""
    lines = error.rpartition("stderr:")[2].split("\n")
    return "; ".join(line.removeprefix("sbatch: error: ") for line in lines if line)
