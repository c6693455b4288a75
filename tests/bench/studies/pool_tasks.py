"""Solves tasks of 10 ms with a bare pool of processes, or with the engine of studies; prints seconds as JSON.

    python tests/bench/studies/pool_tasks.py bare|engine TASKS WORKERS

The bare pool imports nothing of lumctl, nor do its workers.
"""

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from time import perf_counter, process_time

TASK_S = 0.010


def solve(number: int) -> list[dict[str, int]]:
    """Use the processor for 10 ms."""
    until = process_time() + TASK_S
    while process_time() < until:
        sum(range(2000))  # to ask for the time may take long
    return [{"number": number}]


def bare(tasks: int, workers: int) -> Iterator[object]:
    """The results of a pool that is given all tasks at once."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(solve, number) for number in range(tasks)]):
            yield future.result()


def engine(tasks: int, workers: int) -> Iterator[object]:
    """The results of the engine."""
    from lumctl.studies.engine import StudyWorkers, solve_cases
    from lumctl.studies.study import Study

    study = Study("tasks", "", (), (), cases=lambda _: (), solve=solve, values=lambda *_: {})
    cases = {number: (number,) for number in range(tasks)}
    yield None  # what is imported so far is no part of the time
    yield from solve_cases(study, cases, StudyWorkers(workers))


def cpu_s() -> float:
    """CPU time of this process and of those that it started and that have ended."""
    taken = os.times()
    return taken.user + taken.system + taken.children_user + taken.children_system


def main() -> None:
    way, tasks, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    results = {"bare": bare, "engine": engine}[way](tasks, workers)
    if way == "engine":
        next(results)
    began, cpu = perf_counter(), cpu_s()
    ended = [perf_counter() for _ in results]
    assert len(ended) == tasks
    taken = {"all_s": perf_counter() - began, "solving_s": ended[-1] - ended[0], "cpu_s": cpu_s() - cpu}
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
