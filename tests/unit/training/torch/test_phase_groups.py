"""Ranks of gloo whose groups wait for light, under a coordinator that the test plays: no process is simulated."""

import multiprocessing
import socket
import threading
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from multiprocessing import connection
from queue import Queue

import pytest

from lumctl.training.phase_control import PhaseControl, Rail, RankRequest
from lumctl.training.phase_traffic import Traffic
from lumctl.training.protocol import DARK, LIT, MessageLine, phase_mac
from tests.unit.training.torch import phased_ranks

WITHIN_S = 30.0
PAIRS = {"pipeline": [[0, 1], [2, 3]], "gradients": [[0, 2], [1, 3]]}
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.unit.training.torch.phased_ranks"])


class Controller:
    """The coordinator's control of one rail, whose devices confirm at once, and its answers to ranks."""

    def __init__(self, answer):
        self._answer, self._lock = answer, threading.Lock()
        self._requests, self._changes = {}, []
        rail = Rail(("rail0",), {phase: frozenset(map(tuple, pairs)) for phase, pairs in PAIRS.items()})
        self._control = PhaseControl(
            [rail],
            change=lambda *change: self._changes.append(change),
            lit=lambda wanted: self._answered(wanted, LIT),
            dark=lambda wanted, why: self._answered(wanted, DARK, why=why),
        )
        self.granted = Counter()
        self.dark = set()
        """Phases that get no light."""
        self.silent = False

    def wants(self, rank, message):
        if self.silent:
            return
        if message["phase"] in self.dark:  # at once: a coordinator would hold all as soon as one is told
            self._answer(rank, message, DARK, why="rail0 refused port 3")
            return
        with self._lock:
            self._requests[rank, message["number"]] = message
            self._control.wants(RankRequest(rank, message["phase"], message["number"], message["ahead"]))
            while self._changes:
                rail, _, number = self._changes.pop()
                self._control.confirmed(rail, number)

    def left(self):
        """Forget all, as when a generation ends."""
        with self._lock:
            self._control.begin()

    def _answered(self, wanted, do, **more):
        self.granted[wanted.phase] += do == LIT
        self._answer(wanted.rank, self._requests[wanted.rank, wanted.number], do, **more)


class Cluster:
    """The workers of a job, their agent and its coordinator."""

    def __init__(self, folder, scenario, count=4):
        self.count, self.heard = count, defaultdict(Queue)
        self.controller = Controller(self._answer)
        self._lines, self._stores, self._threads, self._listeners = {}, {}, [], []
        pipes = [FORKS.Pipe(duplex=False) for _ in range(count)]
        self._results = {reader: number for number, (reader, _) in enumerate(pipes)}
        self.answers_twice = False
        self.forged = []
        for number in range(count):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{folder}/{number}.sock")
            listener.listen()
            self._listeners.append(listener)
        self.workers = [
            FORKS.Process(target=phased_ranks.work, args=(str(folder), number, scenario, writer), daemon=True)
            for number, (_, writer) in enumerate(pipes)
        ]
        for number, each in enumerate(self.workers):
            each.start()
            thread = threading.Thread(target=self._listen, args=(number,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _listen(self, number):
        with suppress(OSError):
            line = self._lines[number] = MessageLine(self._listeners[number].accept()[0])
            while (message := line.receive()) is not None:
                if message["say"] == "wants":
                    self._check(number, message)
                    self.controller.wants(number, message)
                elif message["say"] != "beat":
                    self.heard[number, message["say"]].put(message)

    def _check(self, number, message):
        said = (message["generation"], message["number"], message["phase"])
        if message["mac"] != phase_mac(phased_ranks.SECRET, f"w{number}", *said):
            self.forged.append(message)

    def _answer(self, rank, message, do, **more):
        answer = {"do": do, "generation": message["generation"], "number": message["number"], **more}
        for _ in range(2 if self.answers_twice else 1):
            self.send(rank, answer)
            if message["number"] > 1 and self.answers_twice:
                self.send(rank, {**answer, "number": message["number"] - 1})

    def send(self, number, message):
        self._lines[number].send(message)

    def hear(self, number, say):
        return self.heard[number, say].get(timeout=WITHIN_S)

    def join(self, generation=1):
        for number in range(self.count):
            if number not in self._stores:
                self._stores[number] = self.hear(number, "ready")["store"]
        for number in range(self.count):
            phases = {"pairs": PAIRS, "hosts": [f"h{rank}" for rank in range(self.count)]}
            order = {"do": "join", "generation": generation, "rank": number, "world": self.count, "phases": phases}
            self.send(number, {**order, "store": self._stores[0], "done": None})

    def hold(self, *numbers, generation=2):
        for number in numbers:
            self.send(number, {"do": "hold", "generation": generation})
        for number in numbers:
            self.hear(number, "held")
        self.controller.left()

    def results_of(self, count):
        """So many results, by worker."""
        found = defaultdict(list)
        for _ in range(count):
            number, what = self._result()
            found[number].append(what)
        return dict(found)

    def _result(self):
        while ready := connection.wait(self._results, WITHIN_S):
            try:
                return self._results[ready[0]], ready[0].recv()
            except EOFError:  # this rank has ended
                del self._results[ready[0]]
                ready[0].close()
        raise AssertionError("no rank reports anything")

    def until(self, number, what):
        while self._result() != (number, what):
            pass

    def end(self):
        for each in self.workers:
            each.kill()
            each.join()
        for each in self._listeners:
            each.close()
        for reader in self._results:
            reader.close()
        for line in self._lines.values():
            line.close()
        for each in self._threads:
            each.join(WITHIN_S)


@pytest.fixture
def cluster(tmp_path):
    with ExitStack() as made:

        def start(scenario):
            started = Cluster(tmp_path, scenario)
            made.callback(started.end)
            return started

        yield start


def test_ranks_change_between_two_phases_and_answers_that_come_twice_or_late_change_nothing(cluster):
    ranks = cluster("two_phases")
    ranks.answers_twice = True
    ranks.join()
    total = phased_ranks.DECIDED + 3
    for number, found in ranks.results_of(4 * total).items():
        peer = number ^ 1
        assert found == [[peer, peer + (peer ^ 2)]] * total
    records = {number: [ranks.hear(number, "stepped")["phases"] for _ in range(total)] for number in range(4)}
    assert all(record["changes"] == 2 for each in records.values() for record in each)
    modes = [[row[2] for row in record["boundaries"]] for record in records[0]]
    assert modes[0] == ["on-demand"]
    assert ["ahead", "ahead"] in modes
    assert all(row[3] is not None for row in records[0][-1]["boundaries"])
    assert not ranks.forged
    for step in range(total):
        rows = {
            (number, found.peer): found
            for number in range(4)
            for found in map(Traffic.of, records[number][step]["traffic"])
        }
        assert rows.keys() == {(number, number ^ other) for number in range(4) for other in (1, 2)}
        assert all(row.heard(rows[peer, number]) for (number, peer), row in rows.items())
    # A wrong guess would cost one more; none is wrong in an order that never changes.
    assert ranks.controller.granted["gradients"] == 4 * total


def test_all_transfers_pass_through_unchanged(cluster):
    ranks = cluster("all_transfers")
    ranks.join()
    for number, [[kind, same, times]] in ranks.results_of(4).items():
        assert (kind, same) == ("PhaseGroup", True)
        assert [row[0] for row in times if row[0]] == [f"{number % 2}-{number % 2 + 2} by 2"], "of both groups"


def test_models_are_trained_as_without_phases(cluster):
    ranks = cluster("parallel")
    ranks.join()
    assert ranks.results_of(4) == {number: [True] for number in range(4)}


def test_a_group_that_no_phase_joins_ends_the_script_with_its_ranks_and_phases(cluster):
    ranks = cluster("no_phase")
    ranks.join()
    error = ranks.hear(0, "failed")["error"]
    assert error.startswith("UsageError: no phase joins the ranks 0, 3 of a group: pipeline joins 0-1, 2-3")


def test_a_phase_without_light_parks_the_ranks_which_then_train_in_the_next_generation(cluster):
    ranks = cluster("reduced")
    ranks.controller.dark.add("gradients")
    ranks.join()
    for number in range(4):
        assert ranks.hear(number, "broken")["error"] == "phase gradients has no light: rail0 refused port 3"
    ranks.hold(*range(4))
    ranks.controller.dark.clear()
    ranks.join(3)
    ranks.results_of(4)
    assert ranks.results_of(16) == {number: ["generation 3", [2.0, 2.0]] * 2 for number in range(4)}


def test_a_dark_phase_in_the_backward_pass_of_a_wrapped_model_parks_the_ranks_too(cluster):
    ranks = cluster("wrapped")
    ranks.controller.dark.add("gradients")
    ranks.join()
    for number in range(4):
        assert "phase gradients has no light: rail0 refused port 3" in ranks.hear(number, "broken")["error"]


def test_a_hold_wakes_a_rank_that_waits_for_light(cluster):
    ranks = cluster("reduced")
    ranks.controller.silent = True
    ranks.join()
    ranks.results_of(4)
    ranks.hold(*range(4))
    ranks.controller.silent = False
    ranks.join(3)
    assert ranks.results_of(16)[0] == ["generation 3", [2.0, 2.0]] * 2


@pytest.mark.parametrize("scenario", ["stopped_in_second_step", "stopped_before_forming"])
def test_a_hold_frees_a_rank_whose_peer_in_a_group_hangs(cluster, scenario):
    """The peer is stopped, so that its connections stay open; nothing but the hold can end the wait."""
    ranks = cluster(scenario)
    ranks.join()
    ranks.until(2, "stops")
    ranks.hold(0, 1, 3)
    ranks.workers[2].kill()


def test_ranks_of_a_group_notice_that_a_member_died(cluster):
    ranks = cluster("stopped_in_second_step")
    ranks.join()
    ranks.until(2, "stops")
    ranks.workers[2].kill()
    assert ranks.hear(0, "broken")["generation"] == 1
    ranks.hold(0, 1, 3)
