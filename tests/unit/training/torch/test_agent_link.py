"""The line to the agent: orders come at once, and no agent that is gone, or does not read, keeps training waiting."""

import socket
import threading
from contextlib import closing, contextmanager

import pytest

from lumctl.training.protocol import MessageLine
from lumctl.training.torch.agent_link import AgentLink, Environment

MANY = 5000


class Agent:
    """Listens at a worker's socket."""

    def __init__(self, path):
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.settimeout(10)

    def take(self):
        return MessageLine(self.listener.accept()[0])

    def close(self):
        self.listener.close()
        self.path.unlink()


@contextmanager
def spoken(path, **more):
    environment = Environment("j", "w#1", path, "127.0.0.1", path.parent, 0.01, "t")
    with closing(AgentLink(environment, done=lambda: 7, hold=more.get("hold", lambda: None))) as control:
        control.start()
        yield control


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s"


def hear(line, word):
    while (message := line.receive())["say"] != word:
        pass
    return message


def test_an_order_is_taken_in_and_a_hold_is_felt_before_it_is_read(path):
    felt = threading.Event()
    with closing(Agent(path)) as agent, spoken(path, hold=felt.set) as control, closing(agent.take()) as line:
        assert line.receive()["say"] == "hello"
        assert hear(line, "beat") == {"say": "beat", "done": 7}
        line.send({"do": "join"})
        line.send({"do": "hold", "generation": 3})
        assert felt.wait(10)
        assert control.held
        assert control.orders.get(timeout=10) == ({"do": "join"}, 0)
        assert control.orders.get(timeout=10) == ({"do": "hold", "generation": 3}, 1)


def test_a_late_rank_is_known_at_once_and_is_no_order_that_waits(path):
    with closing(Agent(path)) as agent, spoken(path) as control, closing(agent.take()) as line:
        line.send({"do": "late", "generation": 3, "rank": 5})
        line.send({"do": "join"})
        assert control.orders.get(timeout=10) == ({"do": "join"}, 0)
        assert control.late == (3, 5)
        line.send({"do": "late", "generation": 3, "rank": None})
        line.send({"do": "join"})
        assert control.orders.get(timeout=10)
        assert control.late == (3, None)
        assert control.orders.empty()


def test_an_agent_that_comes_back_is_told_what_still_holds_and_nothing_else(path):
    with spoken(path) as control:
        control.say("ready", done=0)
        control.say("joined", generation=1)
        control.say("broken", generation=1)
        control.say("held", generation=2)
        control.say("loaded", done=4)
        control.say("joined", generation=2)
        control.say("stepped", done=8)
        for _ in range(2):
            with closing(Agent(path)) as agent, closing(agent.take()) as line:
                said = [line.receive() for _ in range(4)]
        assert [each["say"] for each in said] == ["hello", "ready", "joined", "stepped"]
        assert (said[1]["done"], said[2]["generation"]) == (7, 2)


def test_an_agent_that_does_not_read_stops_nobody_and_gets_the_newest_later(path):
    with closing(Agent(path)) as agent, spoken(path) as control, closing(agent.take()) as line:
        for done in range(MANY):
            control.say("stepped", done=done, room="." * 100)
        control.say("broken", done=MANY)
        control.say("held", done=MANY)
        said = []
        while not said or said[-1]["say"] != "held":
            said.append(line.receive())
        steps = [each["done"] for each in said if each["say"] == "stepped"]
        assert steps == sorted(steps)
        assert len(steps) < MANY
        assert steps[-1] == MANY - 1
        assert [each["say"] for each in said if each["say"] != "beat"][-3:] == ["stepped", "broken", "held"]
