"""Who has asked a coordinator that ends is told so, and is not left to wait."""

import shutil
import socket
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from lumctl.training.coordinator.requests import LEFT
from lumctl.training.job_control import ControlSocket
from lumctl.training.protocol import MessageLine

WITHIN_S = 10.0


@pytest.fixture
def place():
    """A path that is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="desk-"))
    yield folder / "c.sock"
    shutil.rmtree(folder)


@pytest.fixture
def caller(place):
    """Lines to the desk at that path."""
    open_lines = []

    def call():
        connection = socket.socket(socket.AF_UNIX)
        open_lines.append(MessageLine(connection))
        connection.settimeout(WITHIN_S)
        connection.connect(str(place))
        return open_lines[-1]

    yield call
    for line in open_lines:
        line.close()


def test_whoever_waits_is_told_when_it_closes(place, caller):
    asked = SimpleQueue()
    desk = ControlSocket(place, lambda request, answer: asked.put((request, answer)))
    silent, waits = caller(), caller()  # in this order they are let in
    waits.send({"ask": "pause"})
    request, answer = asked.get(timeout=WITHIN_S)
    assert request == {"ask": "pause"}
    desk.close()
    assert waits.receive() == LEFT
    assert waits.receive() is None
    assert silent.receive() is None
    answer({"state": "paused"})  # too late: nobody is told, and nothing breaks
    assert not place.exists()


def test_who_was_answered_is_told_nothing_more(place, caller):
    desk = ControlSocket(place, lambda _request, answer: answer({"state": "running"}))
    line = caller()
    line.send({"ask": "status"})
    assert line.receive() == {"state": "running"}
    desk.close()
    assert line.receive() is None


def test_a_client_that_has_gone_frees_its_place(place, caller, monkeypatch):
    monkeypatch.setattr("lumctl.training.job_control.POLL_S", 0.01)
    desk = ControlSocket(place, lambda _request, _answer: None)
    gone = caller()
    gone.send({"ask": "pause"})
    gone.close()
    deadline = time.monotonic() + WITHIN_S
    while desk._waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not desk._waiting
    desk.close()
