"""An agent in this process, turn by turn, with a clock of its own."""

import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.training.agent.agent import IDLE_S, STEPS_WITHIN_S, Agent
from lumctl.training.agent.folder import listening, private_folder
from lumctl.training.agent.process import ProcessEnd
from lumctl.training.agent.worker import BEATS, MOST_WAITING, Worker
from lumctl.training.agent.worker_table import LONGEST_BYTES, LOOKED_AFTER_EVERY_S
from lumctl.training.protocol import MessageLine, encoded

HEARTBEAT_S = 2.0


class Pretended:
    """A process of a worker that is this one: the test speaks for it, and says when it has ended."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._ended, self._ends = os.pipe()
        self.killed = 0

    def fileno(self) -> int:
        return self._ended

    def finish(self) -> None:
        os.write(self._ends, b"x")

    def end(self) -> ProcessEnd:
        return ProcessEnd(0, None)

    def kill(self) -> None:
        self.killed += 1

    def close(self) -> None:
        os.close(self._ended)
        os.close(self._ends)


class Turns:
    """An agent with one worker, or several of other names."""

    def __init__(self, path: Path, *others: str) -> None:
        self.now = 100.0
        self.stopped = True
        self.folder = private_folder(path)
        self.process = Pretended()
        self.worker = Worker(
            "a#1", "a", HEARTBEAT_S, process=self.process, pid=self.process.pid, started=0, heard_at=self.now
        )
        self.processes = {name: Pretended() for name in others}
        workers = {
            name: Worker(name, name[0], HEARTBEAT_S, process=each, pid=each.pid, started=0, heard_at=self.now)
            for name, each in self.processes.items()
        }
        self.agent = Agent(
            self.folder,
            listening(self.folder),
            {"a#1": self.worker, **workers},
            clock=lambda: self.now,
            wall=lambda: self.now,
            is_stopped=lambda _pid: self.stopped,
        )
        self.open: list[socket.socket] = []

    def connect(self, *messages) -> MessageLine:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.folder.socket))
        self.open.append(connection)
        line = MessageLine(connection)
        for message in messages:
            line.send(message)
        self.agent.turn()
        return line

    def coordinator(self) -> MessageLine:
        line = self.connect({"ask": "who", "who": "test"})
        assert line.receive()["tell"] == "list"
        return line

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.agent.turn()

    def close(self) -> None:
        for connection in self.open:
            connection.close()
        for process in (self.process, *self.processes.values()):
            process.finish()
            self.agent.turn()
        assert not self.worker.alive
        self.now += IDLE_S
        self.agent.run()


@pytest.fixture
def turns():
    with tempfile.TemporaryDirectory(prefix="agent-") as folder:
        turns = Turns(Path(folder))
        yield turns
        turns.close()


def said(turns, *kinds):
    line = turns.connect({"say": "hello", "worker": "a#1", "pid": 1}, *({"say": kind} for kind in kinds))
    assert turns.worker.peer is not None
    return line


def heard(line, count):
    return [(message := line.receive())["tell"] + ":" + message.get("message", {}).get("say", "") for _ in range(count)]


def test_after_a_standstill_what_is_in_the_sockets_comes_first(turns):
    coordinator = turns.coordinator()
    worker = said(turns, "ready")
    turns.now += 10 * HEARTBEAT_S  # nobody looked
    worker.send({"say": "beat"})
    turns.agent.turn()
    turns.stopped = False
    for _ in range(2 * BEATS):  # it runs, and says nothing
        turns.after(HEARTBEAT_S / BEATS)
    turns.stopped = True
    for _ in range(BEATS):
        turns.after(HEARTBEAT_S / BEATS)
    assert heard(coordinator, 3) == ["said:hello", "said:ready", "silent:"]
    worker.send({"say": "beat"})
    turns.agent.turn()
    assert heard(coordinator, 1) == ["heard:"]


@pytest.fixture
def crew():
    """An agent with three workers of one group, their lines, and its coordinator; the first step is done."""
    with tempfile.TemporaryDirectory(prefix="agent-") as folder:
        turns = Turns(Path(folder), "b#1", "c#1")
        coordinator = turns.coordinator()
        lines = []
        for rank, name in enumerate(("a#1", "b#1", "c#1")):
            joined = {"say": "joined", "generation": 1, "rank": rank}
            lines.append(turns.connect({"say": "hello", "worker": name, "pid": 1}, joined))
        assert heard(coordinator, 6) == ["said:hello", "said:joined"] * 3
        steps(turns, lines[:1], 1)
        assert coordinator.receive()["message"]["done"] == 1  # at once: it ends a recovery
        steps(turns, lines[1:], 1)
        assert coordinator.receive()["messages"].keys() == {"b#1", "c#1"}
        yield turns, lines, coordinator
        turns.close()


def steps(turns, lines, done):
    for line in lines:
        line.send({"say": "stepped", "generation": 1, "done": done})
        turns.agent.turn()


def test_the_steps_of_all_workers_of_a_group_are_one_message(crew):
    turns, lines, coordinator = crew
    for done in (2, 3):
        steps(turns, lines, done)
    for done in (2, 3):
        told = coordinator.receive()
        assert {name: said["done"] for name, said in told["messages"].items()} == dict.fromkeys(
            ["a#1", "b#1", "c#1"], done
        )
        assert told["at"] == turns.now


def test_a_step_that_only_some_have_done_is_not_kept_for_long(crew):
    turns, lines, coordinator = crew
    steps(turns, lines[:2], 2)
    turns.after(STEPS_WITHIN_S)
    assert coordinator.receive()["messages"].keys() == {"a#1", "b#1"}
    steps(turns, lines[2:], 2)
    assert coordinator.receive()["worker"] == "c#1"


def test_a_second_step_and_any_other_message_come_after_the_steps_before(crew):
    turns, lines, coordinator = crew
    steps(turns, lines[:1], 2)
    steps(turns, lines[:1], 3)
    assert coordinator.receive()["message"]["done"] == 2
    lines[0].send({"say": "held", "generation": 2, "done": 3})
    turns.agent.turn()
    assert [coordinator.receive()["message"]["say"] for _ in range(2)] == ["stepped", "held"]
    steps(turns, lines[1:2], 2)
    turns.processes.pop("c#1").finish()
    turns.agent.turn()
    assert heard(coordinator, 2) == ["said:stepped", "exited:"]


def test_steps_that_wait_when_another_coordinator_comes_are_in_its_list(crew):
    turns, lines, _ = crew
    steps(turns, lines[:2], 2)
    line = turns.connect({"ask": "take", "who": "another"})
    told = line.receive()
    assert [each["last"]["stepped"]["done"] for each in told["workers"]] == [2, 2, 1]
    turns.after(STEPS_WITHIN_S)
    line.send({"ask": "list"})
    turns.agent.turn()
    assert line.receive()["tell"] == "list"


def test_one_message_has_the_orders_of_several_workers(crew):
    turns, lines, coordinator = crew
    orders = {"a#1": {"rank": 0}, "no#1": {"rank": 1}, "c#1": {"rank": 2}}
    coordinator.send({"ask": "tell", "orders": orders, "message": {"do": "join", "world": 3}})
    turns.agent.turn()
    assert lines[0].receive() == {"do": "join", "world": 3, "rank": 0}
    assert lines[2].receive() == {"do": "join", "world": 3, "rank": 2}
    refused = coordinator.receive()
    assert (refused["worker"], refused["why"]) == ("no#1", "worker no#1 does not exist here")
    coordinator.send({"ask": "tell", "orders": {"a#1": 1}, "message": {}})
    turns.agent.turn()
    assert "orders must give an object for each worker" in coordinator.receive()["why"]


def test_what_is_told_to_a_worker_waits_until_it_has_said_hello(turns):
    coordinator = turns.coordinator()
    for number in range(MOST_WAITING + 1):
        coordinator.send({"ask": "tell", "worker": "a#1", "message": {"do": "hold", "generation": number}})
    turns.agent.turn()
    assert "does not read its messages" in coordinator.receive()["why"]
    worker = said(turns)
    assert [worker.receive()["generation"] for _ in range(MOST_WAITING)] == list(range(MOST_WAITING))


def test_a_worker_that_connects_again_is_heard_there(turns):
    coordinator = turns.coordinator()
    before = said(turns, "ready")
    after = said(turns)
    assert before.receive() is None
    coordinator.send({"ask": "tell", "worker": "a#1", "message": {"do": "pause"}})
    turns.agent.turn()
    assert after.receive() == {"do": "pause"}


def test_without_worker_and_coordinator_it_ends_after_a_while():
    with tempfile.TemporaryDirectory(prefix="agent-") as folder:
        turns = Turns(Path(folder))
        coordinator = turns.coordinator()
        turns.process.finish()
        turns.agent.turn()
        coordinator.send({"ask": "list"})
        turns.after(10 * IDLE_S)
        assert heard(coordinator, 2) == ["exited:", "list:"]
        coordinator.close()
        turns.agent.turn()
        turns.now += IDLE_S
        turns.agent.run()
        assert [path.name for path in Path(folder).iterdir()] == ["workers.json"]


def test_a_book_that_cannot_be_written_is_told_once_and_the_job_goes_on(turns):
    coordinator = turns.coordinator()
    blocked = turns.folder.records.with_name("workers.json.new")
    blocked.mkdir()
    worker = said(turns, "ready")
    worker.send({"say": "held"})
    turns.agent.turn()
    assert heard(coordinator, 4) == ["said:hello", "said:ready", "refused:", "said:held"]
    blocked.rmdir()
    turns.worker.silent = True
    worker.send({"say": "beat"})
    turns.agent.turn()
    assert "held" in turns.folder.records.read_text()


def test_a_long_log_of_a_living_worker_is_shortened_in_time(turns):
    log = turns.folder.log("a#1")
    log.touch()
    os.truncate(log, LONGEST_BYTES + 1)
    turns.now += LOOKED_AFTER_EVERY_S - 1
    turns.connect()
    assert log.stat().st_size == LONGEST_BYTES + 1
    turns.after(1)
    assert f"{LONGEST_BYTES + 1:,} bytes of this log were removed" in log.read_text()
    os.truncate(log, LONGEST_BYTES + 1)
    turns.after(LOOKED_AFTER_EVERY_S)
    assert log.stat().st_size < LONGEST_BYTES


WORD = st.sampled_from(["ask", "say", "worker", "message", "accelerator", "argv", "environment", "folder", "who"])
VALUE = st.sampled_from(
    ["start", "list", "tell", "kill", "hello", "who", "take", "a#1", "ready", None, 1, -1.5, [], {}, ["nope"], [1]]
)
SPOILT = st.dictionaries(WORD, VALUE, max_size=5).map(encoded) | st.binary(max_size=20).map(lambda each: each + b"\n")


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), SPOILT), max_size=6))
def test_no_input_ends_an_agent(lines):
    with tempfile.TemporaryDirectory(prefix="agent-") as folder:
        turns = Turns(Path(folder))
        for first, line in lines:
            one = turns.connect({"ask": "take"} if first else {"say": "hello", "worker": "a#1"})
            one._connection.sendall(line)
            turns.agent.turn()
        last = turns.connect({"ask": "take", "who": "last"})
        assert last.receive()["tell"] == "list"
        turns.close()
