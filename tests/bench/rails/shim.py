"""What waiting for light costs an all-reduce of two ranks while the light does not change.

    python tests/bench/rails/shim.py [ROUNDS] [CALLS]

Three pairs of ranks on this machine: gloo as PyTorch makes it (*bare*), a job without phases (*job*), and a job whose
group needs a phase that has light all the time (*phases*). They take turns: in a round, each pair times CALLS
all-reduces of 64 bytes and some of 16 MB, while the others wait. The figures are medians over the rounds of the ratios
inside a round, with the interval that holds the median at 95 %: of the median time of a call, and of the CPU of the
ranks for each call, which the load of the machine changes less.
"""

import multiprocessing
import os
import socket
import sys
import time
from datetime import timedelta
from math import comb
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from lumctl.training.phase_pairs import PhasePairs
from lumctl.training.protocol import LIT
from lumctl.training.torch.group import JoinOrder, ProcessGroup

ROUNDS, CALLS, LARGE_CALLS = 60, 60, 3
SMALL, LARGE = 64, 16 << 20
PAIRS = ("bare", "job", "phases")
CERTAINTY = 0.95
FORKS = multiprocessing.get_context("forkserver")
# Ranks 0 and 1 are the pair; a third rank, so that the pair is not the group of all, is not started for the bare pair.
WORLD = 3


def bare_group(rank: int, port: int) -> Any:
    """A pair of gloo, as PyTorch makes it."""
    store = dist.TCPStore("127.0.0.1", port, WORLD, rank == 0, timeout=timedelta(seconds=60))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORLD)
    return dist.new_group([0, 1])


def job_group(rank: int, store: tuple[str, int] | None, told: Connection, *, phased: bool) -> Any:
    """A pair of a job; requests for light are answered at once."""

    def light(generation: int, number: int, _phase: str, _ahead: bool) -> None:
        group.phase_answered({"do": LIT, "generation": generation, "number": number})

    group = ProcessGroup(torch.device("cpu"), "127.0.0.1", "token", wants=light)
    if rank == 0:
        told.send(group.store)
    phases = PhasePairs({"gradients": [(0, 1)]}, ["h1", "h2", "h3"]) if phased else None
    order = JoinOrder(1, rank, WORLD, store or group.store, phases=phases)
    group.make(order, wanted=lambda: True)
    KEPT.append(group)
    return dist.new_group([0, 1])


KEPT: list[ProcessGroup] = []


def rank_of(pair: str, rank: int, where: Any, line: Connection, calls: int) -> None:
    """A rank: times all-reduces whenever the line says so, and answers with the medians in seconds."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    group = bare_group(rank, where) if pair == "bare" else job_group(rank, where, line, phased=pair == "phases")
    tensors = {SMALL: torch.ones(SMALL // 4), LARGE: torch.ones(LARGE // 4)}
    while line.recv() == "go":
        line.send([*timed(tensors[SMALL], group, calls), *timed(tensors[LARGE], group, LARGE_CALLS)])
    os._exit(0)


def timed(tensor: torch.Tensor, group: Any, calls: int) -> tuple[float, float]:
    """The median of so many all-reduces and the CPU for each, in seconds; ranks outside the group take no part."""
    took: list[float] = []
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        return 0.0, 0.0
    used = time.process_time()
    for _ in range(calls):
        began = time.perf_counter()
        dist.all_reduce(tensor, group=group)
        took.append(time.perf_counter() - began)
        tensor.fill_(1.0)
    return median(took), (time.process_time() - used) / calls


def started(pair: str, calls: int, port: int) -> list[Connection]:
    """The lines to the ranks of a pair."""
    lines: list[Connection] = []
    where: Any = port if pair == "bare" else None
    for rank in range(WORLD):
        ours, theirs = FORKS.Pipe()
        FORKS.Process(target=rank_of, args=(pair, rank, where, theirs, calls), daemon=True).start()
        lines.append(ours)
        if pair != "bare" and rank == 0:
            where = ours.recv()
    return lines


def turn(lines: list[Connection]) -> list[float]:
    """One turn of a pair: time and CPU of a small all-reduce, and of a large one, in seconds."""
    for line in lines:
        line.send("go")
    return [max(each) for each in zip(*(line.recv() for line in lines), strict=True)]


def interval(values: list[float]) -> tuple[float, float]:
    """The values between which the median lies with :data:`CERTAINTY`, whatever their distribution."""
    ordered, n = sorted(values), len(values)
    left_out, share = 0, 0.0
    while share + 2 * comb(n, left_out) / 2**n <= 1 - CERTAINTY:
        share += 2 * comb(n, left_out) / 2**n
        left_out += 1
    first = max(0, left_out - 1)
    return ordered[first], ordered[n - 1 - first]


def main(rounds: int, calls: int) -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = {pair: started(pair, calls, port) for pair in PAIRS}
    found: dict[str, list[list[float]]] = {pair: [] for pair in PAIRS}
    for number in range(rounds + 1):
        for pair in PAIRS[number % 3 :] + PAIRS[: number % 3]:
            found[pair].append(turn(lines[pair]))
    print(f"{rounds} rounds of {calls} and {LARGE_CALLS} all-reduces of two ranks; load {os.getloadavg()[0]:.1f}")
    for at, name in enumerate(("64 B", "64 B, CPU", "16 MB", "16 MB, CPU")):
        times = {pair: [each[at] for each in found[pair][1:]] for pair in PAIRS}
        print(f"{name:11}" + ", ".join(f"{pair} {1e6 * median(times[pair]):,.0f} us" for pair in PAIRS))
        for pair, beside in (("job", "bare"), ("phases", "bare"), ("phases", "job")):
            ratios = [a / b for a, b in zip(times[pair], times[beside], strict=True)]
            low, high = interval(ratios)
            print(f"           {pair} : {beside:5} {median(ratios):.3f} ({low:.3f} to {high:.3f})")
    for each in lines.values():
        for line in each:
            line.send("end")
    return 0


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*given, *(ROUNDS, CALLS)[len(given) :]))
