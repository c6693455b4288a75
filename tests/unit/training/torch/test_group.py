"""What a script does over connections of its own while a group is made is nothing of the group's."""

import contextlib
import gc
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from lumctl.training.torch import group as room
from lumctl.training.torch.group import JoinOrder, ProcessGroup
from lumctl.training.torch.stores import GivenUpError, PortRecorder

ALONE = 1


@pytest.fixture
def group():
    made = ProcessGroup(torch.device("cpu"), "127.0.0.1", "token")
    yield made
    made.close()


@pytest.fixture
def served():
    """A server of the script's own; ``connect()`` gives both ends of a new connection to it."""
    with contextlib.ExitStack() as open_sockets:
        listener = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))

        def connect():
            caller = open_sockets.enter_context(socket.create_connection(listener.getsockname(), timeout=10))
            answers, _ = listener.accept()
            open_sockets.enter_context(answers).settimeout(10)
            return caller, answers

        yield connect


def works(ends) -> bool:
    caller, answers = ends
    caller.sendall(b"GET /")
    asked = answers.recv(64)
    answers.sendall(b"200 OK")
    return (asked, caller.recv(64)) == (b"GET /", b"200 OK") and not (at_its_end(caller) or at_its_end(answers))


def at_its_end(one: socket.socket) -> bool:
    one.settimeout(0)
    try:
        return one.recv(64) == b""
    except BlockingIOError:
        return False


def at_the_first(monkeypatch, name, act):
    """Have something done when the group's store is first asked for something."""
    known, done = getattr(PortRecorder, name), []

    def first(self, *what, **more):
        if not done:
            done.append(what)
            act()
        return known(self, *what, **more)

    monkeypatch.setattr(PortRecorder, name, first)


def test_a_connection_that_came_while_it_was_made_outlives_it(group, served, monkeypatch):
    ends = []
    at_the_first(monkeypatch, "set", lambda: ends.extend(served()))
    group.make(JoinOrder(1, 0, ALONE, group.store), wanted=lambda: True)
    group.abort()
    assert group.given_up
    assert works(ends)


def test_a_connection_outlives_a_group_that_is_given_up_before_it_is_made(group, served, monkeypatch):
    ends = []

    def give_up():
        ends.extend(served())
        group.abort()

    at_the_first(monkeypatch, "get", give_up)
    with pytest.raises(GivenUpError):
        group.make(JoinOrder(2, 0, ALONE + 1, group.store), wanted=lambda: True)
    assert works(ends)


def test_where_addresses_have_another_form_all_that_came_is_the_group_s(group, served, monkeypatch):
    ends = []
    monkeypatch.setattr("lumctl.training.torch.stores.is_address", lambda _key: False)
    at_the_first(monkeypatch, "set", lambda: ends.extend(served()))
    group.make(JoinOrder(1, 0, ALONE, group.store), wanted=lambda: True)
    group.abort()
    assert all(map(at_its_end, ends))


def test_the_sockets_of_a_group_that_is_made_are_found(group, monkeypatch):
    heard = []
    monkeypatch.setattr(room, "deafen", lambda made, _ports: heard.extend(made) or iter(()))
    group.make(JoinOrder(1, 0, ALONE, group.store), wanted=lambda: True)
    group.abort()
    assert heard, "gloo's listener, and the connection to the store"


def gloo_threads() -> int:
    """How many threads of this process are gloo's."""
    names = [task.read_text() for task in Path("/proc/self/task").glob("*/comm")]
    return len([name for name in names if "gloo" in name])


def test_a_group_that_was_left_is_not_freed_by_whoever_lets_go_of_it_last() -> None:
    """To free it is to wait for its threads, and they may wait for the interpreter that the one who frees it holds."""
    before = gloo_threads()
    group = ProcessGroup(torch.device("cpu"), "127.0.0.1", "token")
    group.make(JoinOrder(1, 0, 1, group.store), wanted=lambda: True)
    made = dist.distributed_c10d._get_default_group()
    dist.all_reduce(torch.zeros(1))  # at least one of its threads runs, and has its name
    running = gloo_threads()
    assert running > before
    group.close()
    del made
    gc.collect()
    assert gloo_threads() >= running  # others may take their names only now


class Communicator:
    """A group of NCCL, and its backend, that notes what it is asked to do."""

    def __init__(self, done: list[str], name: str) -> None:
        self._done, self._name = done, name

    def abort(self) -> None:
        self._done.append(f"abort {self._name}")
        if self._name == "2":
            raise RuntimeError("already aborted")

    def _get_backend(self, _device: torch.device) -> "Communicator":
        return self

    def _group_start(self) -> None:
        self._done.append("begin")

    def _group_end(self) -> None:
        self._done.append("end")


def test_an_abort_reaches_the_communicators_of_the_script_and_one_that_fails_holds_up_none(group, monkeypatch, caplog):
    done: list[str] = []
    groups = {Communicator(done, name): name for name in "132"}
    monkeypatch.setattr(dist.distributed_c10d, "_world", SimpleNamespace(pg_names=groups, pg_map={}))
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_group", lambda: next(iter(groups)))
    group._abort_nccl()
    monkeypatch.undo()
    assert done == ["begin", "abort 3", "abort 2", "abort 1", "end"]
    assert "group 2 could not be aborted: already aborted" in caplog.text


def test_a_job_without_phases_does_not_import_what_phases_need() -> None:
    made = "from lumctl.training.torch import attach; import sys; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True).stdout.split()
    assert "lumctl.training.torch.group" in modules
    assert not {"lumctl.training.torch.phase_groups", "lumctl.training.torch.phase_light"} & set(modules)
