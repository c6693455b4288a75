"""The workers of a Dask cluster as an executor: of a scheduler that runs already, or of a cluster on this machine."""

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from lumctl.errors import UnreachableError, UsageError
from lumctl.studies.engine import StudyExecutor, interrupts_blocked
from lumctl.studies.provenance import code_digest

_CONNECTS_WITHIN_S, _WORKERS_WITHIN_S = 10.0, 3.0
_CASES_A_THREAD = 4
"""Cases that the cluster has at a time, for each thread of a worker: enough that none waits for this process."""


@contextmanager
def dask_executor(address: str, processes: int) -> Iterator[StudyExecutor]:
    """The executor of a scheduler's client; without an address, of a cluster of so many processes of this machine.

    Raises:
        UnreachableError: there is no scheduler, or it has no workers.
        UsageError: Dask is not installed.
    """
    with _client(address, processes) as client:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_WITHIN_S)
        except TimeoutError as error:
            hint = f"start some: dask worker {address}"
            raise UnreachableError(f"the Dask scheduler at {address} has no workers", hint=hint) from error
        with client_executor(client, sum(client.nthreads().values())) as executor:
            yield executor


@contextmanager
def client_executor(client: Any, threads: int) -> Iterator[StudyExecutor]:
    """The executor of a Dask client whose workers have so many threads; Dask itself repeats the cases of a dead one.

    Raises:
        UnreachableError: the scheduler has ended.
    """
    killed = import_module("distributed.scheduler").KilledWorker
    try:
        yield StudyExecutor(client.get_executor(), _CASES_A_THREAD * max(1, threads), (), (killed,), code=code_digest())
    except CancelledError as error:
        raise UnreachableError(f"the Dask scheduler at {client.scheduler.address} has ended") from error


def quiet_dask(module: str, missing: str) -> Any:
    """A module of the extra, with the logs of Dask off: it logs tracebacks of what is one line here.

    Raises:
        UsageError: it is not installed; ``missing`` are the words.
    """
    try:
        found = import_module(module)
    except ImportError as error:
        raise UsageError(missing, hint="pip install 'lumctl[studies]'") from error
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    return found


@contextmanager
def _client(address: str, processes: int) -> Iterator[Any]:
    distributed = quiet_dask("distributed", "--executor dask needs Dask")
    if not address:
        with interrupts_blocked():
            cluster = distributed.LocalCluster(
                n_workers=processes,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        with cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_CONNECTS_WITHIN_S)
    except (OSError, ValueError) as error:
        raise UnreachableError(f"there is no Dask scheduler at {address}: {error}") from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close()
