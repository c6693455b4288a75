"""How soon new ranks have a job's state: from all ranks that hold it, beside one source.

    python tests/bench/jobs/states.py [--holders 1,2,4,8] [--new 8] [--mb 200] [--mb-per-s 100]

The state goes over TCP on loopback, by the server and client of the library, in the order that the coordinator chooses.
Each worker sends at most --mb-per-s, to all others together, as a network interface would: a source that sends to two
sends each at half of it. Two cores do all of the copying, so without a limit (0) the sources share one bottleneck.
"""

import argparse
import statistics
import threading
import time

import torch

from lumctl.training.coordinator.workers import HeldState, StateLoad, choose
from lumctl.training.protocol import REPLICATED
from lumctl.training.torch.state_transfer import Fetcher, StateServer, WantedState
from lumctl.training.torch.states import lay_out

DONE = 7
PIECE = 1 << 18
LATE_S = 0.1
TOKEN = "measured"  # noqa: S105 - of this measurement


class Interface:
    """A worker's network interface: it sends so many bytes per second, whoever they are for."""

    def __init__(self, bytes_per_s):
        self.bytes_per_s, self.free_at, self.lock = bytes_per_s, 0.0, threading.Lock()
        self.sent = 0

    def send(self, count):
        with self.lock:
            self.sent += count
            if not self.bytes_per_s:
                return
            # A thread that wakes up late has lost nothing.
            self.free_at = max(self.free_at, time.monotonic() - LATE_S) + count / self.bytes_per_s
            until = self.free_at
        time.sleep(max(0.0, until - time.monotonic()))


class Paced:
    """The layout of a state whose bytes leave through an interface."""

    def __init__(self, layout, interface):
        self.meta, self.size, self._layout, self._interface = layout.meta, layout.size, layout, interface

    def pieces(self):
        for piece in self._layout.pieces():
            for at in range(0, len(piece), PIECE):
                part = piece[at : at + PIECE]
                self._interface.send(len(part))
                yield part


class Worker:
    """A parked worker: it serves its state once it has one."""

    def __init__(self, bytes_per_s, tree=None):
        self.tree, self.interface = tree, Interface(bytes_per_s)
        self.server = StateServer("127.0.0.1", TOKEN, lambda _wanted: Paced(lay_out(self.tree), self.interface))
        self.server.open()

    def load(self, source):
        self.tree = Fetcher(TOKEN).fetch(source.server.address, WantedState(DONE, None)).tree(copied=False)


def spread(workers, loads):
    """Load in the coordinator's order: a source sends to one at a time, and only once it has the state."""
    engaged, waiting, changed = {load.worker for load in loads}, list(loads), threading.Condition()

    def run(load):
        workers[load.worker].load(workers[load.source])
        with changed:
            engaged.difference_update({load.worker, load.source})
            changed.notify_all()

    threads = []
    with changed:
        while waiting:
            for load in list(waiting):
                if load.source not in engaged:
                    engaged.add(load.source)
                    waiting.remove(load)
                    threads.append(threading.Thread(target=run, args=(load,)))
                    threads[-1].start()
            if waiting:
                changed.wait()
    for thread in threads:
        thread.join()


def together(workers, loads):
    """All load at once, as before."""
    threads = [threading.Thread(target=workers[load.worker].load, args=(workers[load.source],)) for load in loads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(holders, new, tree, bytes_per_s, how):
    """Seconds until all have the state, and the most bytes that one has sent."""
    held = [HeldState(f"r{rank}", rank, DONE) for rank in range(holders)]
    seats = {rank: f"r{rank}" if rank < holders else f"new{rank}" for rank in range(holders + new)}
    if how is spread:
        loads = choose(REPLICATED, held, seats).loads
    else:
        loads = [StateLoad(name, rank, "r0") for rank, name in seats.items() if rank >= holders]
    workers = {name: Worker(bytes_per_s, tree if rank < holders else None) for rank, name in seats.items()}
    began = time.monotonic()
    how(workers, loads)
    took_s = time.monotonic() - began
    expected = tree["model"]["w"]
    assert all(torch.equal(worker.tree["model"]["w"], expected) for worker in workers.values())
    for worker in workers.values():
        worker.server.close()
    return took_s, max(worker.interface.sent for worker in workers.values())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--holders", default="1,2,4,8")
    parser.add_argument("--new", type=int, default=8)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--mb-per-s", type=float, default=100)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    tree = {"model": {"w": torch.rand(options.mb * 250_000)}}
    rate = options.mb_per_s * 1e6
    runs = [measure(1, options.new, tree, rate, together) for _ in range(options.runs)]
    before_s = statistics.median(took_s for took_s, _ in runs)
    print(f"one source: {before_s:.2f} s, it sends {runs[0][1] / 1e6 / options.mb:.1f} states")
    for holders in map(int, options.holders.split(",")):
        runs = [measure(holders, options.new, tree, rate, spread) for _ in range(options.runs)]
        took_s = statistics.median(took_s for took_s, _ in runs)
        most = max(sent for _, sent in runs) / 1e6 / options.mb
        print(
            f"{holders} holders: {took_s:.2f} s, {took_s / before_s:.2f} of one source; at most {most:.1f} states sent"
        )


if __name__ == "__main__":
    main()
