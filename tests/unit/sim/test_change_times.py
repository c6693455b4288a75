"""Devices whose changes take time: what is dark meanwhile, and when they answer."""

import socket
import threading

import pytest

from lumctl.devices.types import PucState
from lumctl.sim.switches.services import SCPI_DRIVER, switch_services
from lumctl.sim.world.work import ChangeTimes
from lumctl.sim.world.world import World

BAR, CROSS = PucState.BAR, PucState.CROSS


class Pauses:
    """Pauses that last until a test ends them."""

    def __init__(self):
        self.begun, self.ends, self.seconds = threading.Semaphore(0), threading.Semaphore(0), []

    def __call__(self, seconds):
        self.seconds.append(seconds)
        self.begun.release()
        assert self.ends.acquire(timeout=10)

    def during(self, change):
        """Begin a change in a thread; return it once the change takes its time."""
        thread = threading.Thread(target=change)
        thread.start()
        assert self.begun.acquire(timeout=10)
        return thread

    def end(self, thread):
        self.ends.release()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def pauses():
    return Pauses()


@pytest.fixture
def world(on_switch, bench, pauses):
    """The small rack with the lanes of a to d on its switch, whose changes take 25 ms."""
    lanes = {"a": (0, 0), "b": (4, 4), "c": (1, 1), "d": (5, 5)}
    return World(
        on_switch(lanes, input_count=4, driver=SCPI_DRIVER),
        seed=7,
        now=bench.clock,
        times=ChangeTimes({"x1": 0.025}, pauses),
    )


def pairs(world):
    """The hosts that hear each other."""
    transponders = world.inventory.transponders
    return {f"{transponders[sent].host}{transponders[by].host}" for sent, by in world.lit_lanes()[0]}


def test_a_switch_is_dark_where_it_changes_until_its_time_is_over(world, pauses):
    pauses.end(pauses.during(lambda: world.switches.write("x1", {0: 4, 1: 5})))
    assert pairs(world) == {"ab", "ba", "cd", "dc"}
    parting = pauses.during(lambda: world.switches.write("x1", {1: None}))
    assert pairs(world) == {"ab", "ba"}
    pauses.end(parting)
    joining = pauses.during(lambda: world.switches.write("x1", {0: 4, 1: 5}))
    assert pairs(world) == {"ab", "ba"}  # a join that stays is not interrupted
    pauses.end(joining)
    assert pairs(world) == {"ab", "ba", "cd", "dc"}
    crossing = pauses.during(lambda: world.switches.write("x1", {0: 5, 1: 4}))
    assert pairs(world) == set()
    pauses.end(crossing)
    assert pairs(world) == {"ad", "da", "cb", "bc"}
    assert set(pauses.seconds) == {0.025}


def test_those_who_follow_the_light_are_told_at_the_begin_and_at_the_end(world, pauses):
    told = []
    world.follow_light(lambda: told.append(1))
    writing = pauses.during(lambda: world.switches.write("x1", {0: 4}))
    before = len(told)
    assert before
    pauses.end(writing)
    assert len(told) > before


def test_a_switch_makes_one_change_after_the_other(world, pauses):
    first = pauses.during(lambda: world.switches.write("x1", {0: 4}))
    second = threading.Thread(target=world.switches.write, args=("x1", {1: 5}))
    second.start()
    second.join(0.05)
    assert len(pauses.seconds) == 1
    pauses.end(first)
    assert pauses.begun.acquire(timeout=10)
    pauses.end(second)
    assert pairs(world) == {"ab", "ba", "cd", "dc"}


def test_a_switch_that_lies_takes_its_time_too(world, pauses):
    world.inject("x1", "device-lying")
    pauses.end(pauses.during(lambda: world.switches.write("x1", {0: 4})))
    assert pairs(world) == set()


def test_the_cells_of_a_mesh_are_dark_while_they_change(inventory, bench, pauses):
    world = World(inventory, seed=7, now=bench.clock, times=ChangeTimes({"m1": 0.005}, pauses))
    lit = pairs(world)
    states = world.meshes.states("m1")
    writing = pauses.during(lambda: world.meshes.write("m1", dict.fromkeys(states, CROSS)))
    assert lit
    assert pairs(world) == set()
    pauses.end(writing)
    back = pauses.during(lambda: world.meshes.write("m1", states))
    assert pairs(world) == set()
    pauses.end(back)
    assert pairs(world) == lit
    same = pauses.during(lambda: world.meshes.write("m1", states))
    assert pairs(world) == lit  # cells that hold their state already do not change
    pauses.end(same)


class Scpi:
    def __init__(self, world):
        self.twin = switch_services(world, client_key=None, pause=lambda _: None)["x1"]
        self.twin.service.open()
        host, port = self.twin.service.address.split(":")
        self.connection = socket.create_connection((host, int(port)), 10)

    def ask(self, line):
        self.connection.sendall(f"{line}\n".encode())
        return self.connection.makefile().readline().strip()


@pytest.fixture
def scpi(world):
    made = Scpi(world)
    yield made
    made.connection.close()
    made.twin.close()


def test_scpi_answers_when_the_change_is_made(world, pauses, scpi):
    heard = []
    line = ":oxc:swit:conn:add (@1,2),(@5,6);:oxc:swit:conn:stat?"
    asking = pauses.during(lambda: heard.append(scpi.ask(line)))
    assert pairs(world) == set()
    assert heard == []
    pauses.end(asking)
    assert heard == ["(@1,2),(@5,6)"]
    assert pairs(world) == {"ab", "ba", "cd", "dc"}
    # A line that changes no join takes no time.
    assert scpi.ask(":oxc:swit:conn:add (@1),(@5);:syst:err?") == '0,"No error"'
    assert pauses.seconds == [0.025]
    pauses.end(pauses.during(lambda: scpi.ask(":oxc:swit:conn:sub (@1),(@5);:oxc:swit:conn:stat?")))
    assert [write.what for write in world.writes_after(0)] == ["makes 0-4, 1-5", "removes 0-4"]


def test_the_log_of_writes_is_not_read_while_it_may_change(world):
    found = []
    reader = threading.Thread(target=lambda: found.append(world.writes_after(0)))
    with world.switches.held("x1"):
        reader.start()
        reader.join(0.05)
        assert found == []
    reader.join(10)
    assert found == [[]]
