"""Solves the cases of a study in this process, in other processes of this machine, or on workers of Dask or Slurm.

Whatever solves them, in whatever order they end: a case gives the same rows, and is known by its number in the order of
the study's table. A case whose worker died is solved again. A worker's death ends all cases that a pool has in work, so
one alone cannot be blamed; after two deaths a case is solved while nothing else is, and after three it is an error.
"""

import os
import platform
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from typing import Any

from lumctl.errors import LumctlError, RefusedError, UsageError
from lumctl.inventory.problems import nearest
from lumctl.studies.provenance import code_digest
from lumctl.studies.study import Study, StudyCase, StudyRow

SolvedCase = tuple[int, tuple[StudyRow, ...]]
"""The number of a case, and its rows."""
MOST_WORKERS, _SLURM_WORKERS = 1024, 4
_ALONE_AFTER, _MOST_DEATHS = 2, 3
_HERE_S = 2.0
"""A study that ends within these seconds is not worth the start of other processes, each of which imports lumctl."""
_WORTH_S = 4.0
"""Nor is one whose other cases should take less than this, by the mean of those that were solved."""


@dataclass(frozen=True, slots=True)
class StudyWorkers:
    """What solves cases. ``processes`` is how many of this machine; 1 is this process.

    With ``None`` it is this process, and after some seconds as many processes as there are processors, if enough is
    left. ``dask`` is the address of a Dask scheduler; with an empty one, a cluster of ``processes`` is started here.
    With ``slurm`` they are in jobs of Slurm.
    """

    processes: int | None = None
    dask: str | None = None
    slurm: bool = False

    @classmethod
    def of(cls, workers: int | None, executor: str | None) -> "StudyWorkers":
        """The workers that options name: a number of processes, and ``dask``, ``dask:ADDRESS`` or ``slurm``.

        Raises:
            UsageError: they name no workers.
        """
        if workers is not None and not 1 <= workers <= MOST_WORKERS:
            raise UsageError(f"--workers is {workers}, expected 1 to {MOST_WORKERS}")
        if executor is None or executor == "slurm":
            return cls(workers, slurm=executor is not None)
        kind, colon, address = executor.partition(":")
        if kind != "dask" or (colon and not address):
            near = nearest(kind, ["dask", "slurm"])
            hint = f"did you mean {near!r}?" if near else None
            raise UsageError(f"--executor is {executor!r}, expected dask, dask:ADDRESS or slurm", hint=hint)
        if address and workers is not None:
            raise UsageError(
                "--workers and --executor dask:ADDRESS exclude each other: the cluster has its own workers"
            )
        return cls(workers, address)


HERE = StudyWorkers(1)
"""This process."""


def solve_cases(
    study: Study, cases: Mapping[int, StudyCase], workers: StudyWorkers = HERE
) -> Generator[SolvedCase, None, None]:
    """Solve cases, given by their numbers; yields each as it ends.

    Close the iterator to end the work early: processes that were started are then killed.

    Raises:
        LumctlError: a case ends its worker each time.
        RefusedError: a worker of a cluster has other code than this process, or Slurm refuses its job.
        UnreachableError: there is no Dask scheduler, or it has no workers.
        UsageError: the workers cannot be used.
    """
    left = _Cases(study, deque(cases.items()))
    if workers.slurm:
        from lumctl.studies.slurm_cluster import slurm_executor  # noqa: PLC0415 - an extra

        yield from left.solved(partial(slurm_executor, workers.processes or _SLURM_WORKERS))
        return
    if workers.dask is not None:
        from lumctl.studies.dask_cluster import dask_executor  # noqa: PLC0415 - an extra

        yield from left.solved(partial(dask_executor, workers.dask, workers.processes or _processors()))
        return
    processes = workers.processes
    if processes is None:
        yield from left.solved(_this_process, until=_LongWork(left).is_found)
        processes = _processors()
    if left.waiting:
        yield from left.solved(partial(_pool, processes) if processes > 1 else _this_process)


@dataclass(slots=True)
class StudyExecutor:
    """An executor, and how many cases it is given at a time.

    ``lost`` is what its futures raise if a worker died, ``killed`` what they raise if each worker that it tried died.
    ``code`` is the digest of the code that its workers must have, where they may have another.
    """

    executor: Executor
    width: int
    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)
    killed: tuple[type[BaseException], ...] = ()
    code: str = ""


@dataclass(slots=True)
class _Cases:
    """The cases of a study that are not solved yet, and with how many of them a worker has died."""

    study: Study
    waiting: deque[tuple[int, StudyCase]]
    deaths: Counter[int] = field(default_factory=Counter)

    def solved(
        self,
        opened: Callable[[], AbstractContextManager[StudyExecutor]],
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[SolvedCase]:
        """Solve them, each time with a new executor after a worker has died."""
        while self.waiting and not until():
            with opened() as executor:
                yield from self._solved_with(executor, until)

    def _solved_with(self, given: StudyExecutor, until: Callable[[], bool]) -> Iterator[SolvedCase]:
        running: dict[Future[tuple[StudyRow, ...]], tuple[int, StudyCase]] = {}
        broken = False
        while not broken:
            broken = self._submit(given, running, until)
            if not running and not broken:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                if isinstance(error, given.killed):
                    raise _worker_killed(self.study, running[future][1]) from error
                if isinstance(error, given.lost):
                    broken = True
                else:
                    yield running.pop(future)[0], future.result()
        # In a broken pool all futures end, some of them with rows.
        for future in wait(running).done:
            if not isinstance(future.exception(), given.lost):
                yield running.pop(future)[0], future.result()
        self._bury(sorted(running.values()))

    def _submit(self, given: StudyExecutor, running: dict[Future[Any], tuple[int, StudyCase]], until: Any) -> bool:
        """Give the executor cases up to its width; returns whether it takes no more, because a worker died."""
        while self.waiting and len(running) < given.width and not until():
            if running and (self._is_alone(self.waiting[0]) or any(map(self._is_alone, running.values()))):
                break
            try:
                future = given.executor.submit(_rows, self.study.solve, self.waiting[0][1], given.code)
            except given.lost:
                return True
            running[future] = self.waiting.popleft()
        return False

    def _is_alone(self, case: tuple[int, StudyCase]) -> bool:
        return self.deaths[case[0]] >= _ALONE_AFTER

    def _bury(self, lost: Sequence[tuple[int, StudyCase]]) -> None:
        """Count a death for each case that was lost with a worker, and have it solved again."""
        for number, case in lost:
            self.deaths[number] += 1
            if self.deaths[number] >= _MOST_DEATHS:
                raise _worker_killed(self.study, case)
        self.waiting.extendleft(reversed(lost))


def _worker_killed(study: Study, case: StudyCase) -> LumctlError:
    words = ", ".join(map(str, case))
    return LumctlError(
        f"study {study.name}: each worker that was given case ({words}) died, {_MOST_DEATHS} or more of them",
        hint="it may need more memory than there is; the kernel's log says whether it was killed for that",
    )


class _LongWork:
    """Finds out whether what is left is worth the start of processes."""

    def __init__(self, cases: _Cases) -> None:
        self._cases, self._all, self._began = cases, len(cases.waiting), time.monotonic()

    def is_found(self) -> bool:
        left, seconds = len(self._cases.waiting), time.monotonic() - self._began
        if left < 2 or seconds < _HERE_S or _processors() < 2:  # noqa: PLR2004 - one case or processor needs no others
            return False
        return seconds / (self._all - left) * left > _WORTH_S if left < self._all else False


def _rows(solve: Callable[..., Any], case: StudyCase, code: str) -> tuple[StudyRow, ...]:
    if code and code != code_digest():
        raise RefusedError(f"a worker on host {platform.node()} has other code of lumctl, and may find other rows")
    return tuple(dict(row) for row in solve(*case))


class _ThisProcess(Executor):
    """Runs each call when it is submitted."""

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_result(call(*given, **named))
        return future


@contextmanager
def _this_process() -> Iterator[StudyExecutor]:
    yield StudyExecutor(_ThisProcess(), 1)


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: a terminal sends it to all, and each would print a traceback.

    They inherit what is blocked here; so do threads, and the processes that these start.
    """
    resource_tracker.ensure_running()  # the first process that is spawned starts it, and that would unblock them
    before = pthread_sigmask(SIG_BLOCK, (SIGINT,))
    try:
        yield
    finally:
        pthread_sigmask(SIG_SETMASK, before)


class _QuietPool(ProcessPoolExecutor):
    """A pool starts its processes when it is given work."""

    def submit(self, call: Callable[..., Any], /, *given: Any, **named: Any) -> "Future[Any]":
        with interrupts_blocked():
            return super().submit(call, *given, **named)


@contextmanager
def _pool(processes: int) -> Iterator[StudyExecutor]:
    """Processes of this machine; they are killed if the block fails, and then what they have in work is lost."""
    before = set(active_children())
    # Spawned: a fork of a process with threads, such as that of the progress line, can hang.
    pool = _QuietPool(processes, mp_context=get_context("spawn"), initializer=_end_with_parent)
    with ExitStack() as ends:
        ends.callback(pool.shutdown, cancel_futures=True)
        try:
            # Two for each: a process that has ended one case finds the next.
            yield StudyExecutor(pool, 2 * processes)
        except BaseException:
            for child in set(active_children()) - before:
                child.kill()
            raise


def _end_with_parent() -> None:
    """End this worker when the process that started it is killed: nothing else would tell it."""
    parent = parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, name="study-parent", daemon=True).start()


def _processors() -> int:
    return len(os.sched_getaffinity(0))
