"""What the engine of studies costs, and the event loop of study sharing beside SimPy.

    python tests/bench/studies/engine.py [--rounds 5] [--parts pool,start,memory,events] [--tasks 1000]

- pool: tasks of 10 ms of CPU time in two processes, by the engine and by a bare ``concurrent.futures`` pool
- start: wall time of ``study run`` with default workers for a small study, beside ``version`` and ``python -c pass``
- memory: the peak of a worker, beside a process that solves the same cases alone
- events: how many events a second study sharing has, beside a bare SimPy program with as many (needs SimPy)

What is compared runs in turn in one run, in another order each round, so that all see the same load. Prints medians;
ends with 1 if one is above its limit.
"""

import argparse
import heapq
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[1] / "fabric"))

from machine import described

from lumctl.spares.policies import POLICIES
from lumctl.spares.sharing import SharingPolicy, SharingQuestion
from lumctl.studies import client_rounds, sharing

HERE = Path(__file__).parent
POOL_TIMES, START_S, MEMORY_TIMES, EVENTS_TIMES = 1.2, 1.5, 1.5, 0.5
WORKERS = 2
POOL_PARTS = {
    "all_s": "with the start of the processes",
    "solving_s": "from the first result to the last",
    "cpu_s": "CPU time of all processes",
}
SMALL = "rails"
MEMORY_STUDIES = {"placement": ("seeds=1",), "sharing": ("clients=1000",)}
CLIENTS, ROUNDS = 1000, 5
POOL = sharing.clients_of(CLIENTS, best_percent=37.934, transfer_s=30.0, seed=1)


def in_turn(ways: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each way measures in each round; the first round only warms up."""
    rng, found = Random(1), {name: [] for name in ways}
    for number in range(rounds + 1):
        for name in rng.sample(sorted(ways), len(ways)):
            value = ways[name]()
            if number:
                found[name].append(value)
    return found


def ratio(found: Mapping[str, list[float]], own: str, other: str) -> float:
    """The median over the rounds."""
    return median(mine / base for mine, base in zip(found[own], found[other], strict=True))


def said(program: str, *words: str) -> object:
    """What a program of this folder prints."""
    return json.loads(subprocess.check_output([sys.executable, str(HERE / program), *words]))


def pool(given: argparse.Namespace) -> bool:
    """The engine beside a bare pool."""
    ways, parts = ("bare", "engine"), {}

    def run(way: str) -> float:
        for part, seconds in said("pool_tasks.py", way, str(given.tasks), str(WORKERS)).items():
            parts.setdefault(part, {name: [] for name in ways})[way].append(seconds)
        return 0.0

    in_turn({way: lambda way=way: run(way) for way in ways}, given.rounds)
    good = True
    for part, words in POOL_PARTS.items():
        found = {way: seconds[1:] for way, seconds in parts[part].items()}
        times = ratio(found, "engine", "bare")
        good &= times <= POOL_TIMES
        print(
            f"{given.tasks} tasks of 10 ms, {WORKERS} processes, {words}: bare {median(found['bare']):.2f} s, "
            f"engine {median(found['engine']):.2f} s: {times:.3f} times (limit {POOL_TIMES:g})"
        )
    return good


def start(given: argparse.Namespace) -> bool:
    """The start of a run."""
    lumctl = [sys.executable, "-m", "lumctl"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "lumctl version": [*lumctl, "version"],
        f"lumctl study run {SMALL} --quick": [*lumctl, "study", "run", SMALL, "--quick"],
    }

    def wall_s(command: list[str]) -> float:
        began = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return perf_counter() - began

    found = in_turn({name: lambda each=each: wall_s(each) for name, each in commands.items()}, given.rounds)
    for name, seconds in found.items():
        print(f"{name:32} {median(seconds):.3f} s, most {max(seconds):.3f} s")
    own = median(found[f"lumctl study run {SMALL} --quick"])
    print(f"limit of a run: {START_S:g} s")
    return own <= START_S


def memory(given: argparse.Namespace) -> bool:
    """The memory of a worker."""
    good = True
    for name, settings in MEMORY_STUDIES.items():
        ways = {
            way: lambda way=way: said("worker_memory.py", way, name, *settings) / 1024  # noqa: B023 - used at once
            for way in ("alone", "workers")
        }
        found = in_turn(ways, min(given.rounds, 3))
        times = ratio(found, "workers", "alone")
        good &= times <= MEMORY_TIMES
        print(
            f"memory of study {name}: alone {median(found['alone']):.1f} MiB, the largest worker "
            f"{median(found['workers']):.1f} MiB: {times:.2f} times (limit {MEMORY_TIMES:g})"
        )
    return good


def events(given: argparse.Namespace) -> bool:
    """Events of study sharing in a second, beside SimPy."""
    if find_spec("simpy") is None:
        print("events: not measured, SimPy is not installed (make bench-studies installs it)")
        return True
    good = True
    for name in sharing.WAYS:
        count, answers = counted(name)
        ways = {
            "sharing": lambda: rate(count, lambda: rounds_of(name)),  # noqa: B023 - used at once
            "loop": lambda: rate(count, lambda: rounds_of(name, replayed(answers))),  # noqa: B023 - used at once
            "SimPy": lambda: rate(count, lambda: bare_simpy(count)),  # noqa: B023 - used at once
        }
        found = in_turn(ways, given.rounds)
        times = ratio(found, "sharing", "SimPy")
        good &= times >= EVENTS_TIMES
        own, loop, bare = (f"{median(found[way]):,.0f}" for way in ways)
        print(
            f"{name:13} {count:7,} events: {own:>8} a second of CPU time, {loop:>8} with known answers of the policy, "
            f"SimPy {bare:>8}: {times:.2f} times (limit {EVENTS_TIMES:g}), {ratio(found, 'loop', 'SimPy'):.2f}",
            flush=True,
        )
    return good


def rounds_of(name: str, policy: SharingPolicy | None = None) -> client_rounds.RoundsResult:
    """A run of study sharing; another policy may answer instead of its own."""
    way = sharing.WAYS[name]
    setting = client_rounds.RoundsSetting(policy or POLICIES[way.policy], ROUNDS, 1, way.choice, queue=way.queue)
    return client_rounds.run_rounds(sharing.JOBS, POOL, setting)


def replayed(answers: list) -> SharingPolicy:
    """A policy that gives these answers one after the other, whatever the question."""
    left = iter(answers)
    return lambda _: next(left)


def counted(name: str) -> tuple[int, list]:
    """How many events a run has (clients return, clients are bound, a window ends), and its policy's answers."""
    returns, answers = 0, []

    def pop(heap: list) -> object:
        nonlocal returns
        returns += 1
        return heapq.heappop(heap)

    def policy(question: SharingQuestion) -> object:
        answers.append(POLICIES[sharing.WAYS[name].policy](question))
        return answers[-1]

    client_rounds.heapq = SimpleNamespace(heappop=pop, heappush=heapq.heappush)
    try:
        result = rounds_of(name, policy)
    finally:
        client_rounds.heapq = heapq
    return returns + result.bound + round(result.ended_s / client_rounds.WINDOW_S), answers


def rate(count: int, run: Callable[[], object]) -> float:
    """Events in a second of CPU time."""
    began = process_time()
    run()
    return count / (process_time() - began)


def bare_simpy(count: int) -> None:
    """As many events as a count: clients that do nothing but wait for a time drawn at random."""
    import simpy

    environment, rng, left = simpy.Environment(), Random(1), count

    def client() -> object:
        nonlocal left
        while left > 0:
            left -= 1
            yield environment.timeout(rng.random())

    for _ in range(CLIENTS):
        environment.process(client())
    environment.run()


PARTS = {"pool": pool, "start": start, "memory": memory, "events": events}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--tasks", type=int, default=1000)
    given = parser.parse_args()
    print(f"{described()}, median of {given.rounds}", flush=True)
    good = [PARTS[part](given) for part in given.parts.split(",")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
