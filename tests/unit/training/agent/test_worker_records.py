"""What an agent leaves to the next one, and what that makes of it."""

import json
import os

import pytest

from lumctl.training.agent import worker_table
from lumctl.training.agent.folder import private_folder
from lumctl.training.agent.process import Process
from lumctl.training.agent.worker import Worker

NOW, AT = 50.0, 1_800_000_000.0


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return private_folder(tmp_path)


@pytest.fixture
def living(folder):
    """A process as an agent of this folder would have started it for the worker ``a#1``."""
    given = {
        worker_table.SOCKET: str(folder.socket),
        worker_table.WORKER: "a#1",
        worker_table.ACCELERATOR: "a",
        worker_table.BEAT_S: "0.375",
    }
    os.mkfifo(folder.log("a#1"))
    with os.fdopen(os.open(folder.log("a#1"), os.O_RDWR)) as output:
        process = Process.start(
            ["sh", "-c", "echo up; sleep 300"], {**os.environ, **given}, folder.path, folder.log("a#1")
        )
        # Its variables can be read from the moment at which it runs, a little after it has been started.
        assert output.readline() == "up\n"
    yield process
    process.kill()
    process.child.wait()
    process.close()


def worker(process, name="a#1", **more):
    return Worker(name, "a", 3.0, pid=process and process.pid, started=process and process.started, **more)


def after(folder):
    """The workers that the next agent has: name -> (alive, pid, whether it is watched)."""
    found = worker_table.adopted(folder, now=NOW, at=AT)
    told = {name: (each.alive, each.pid, each.process is not None) for name, each in found.items()}
    for each in found.values():
        if each.process is not None:
            each.process.close()
    return found, told


def test_without_a_book_there_is_nobody(folder):
    assert after(folder)[1] == {}


def test_who_lives_is_watched_and_who_does_not_has_ended_now(folder, living):
    gone = worker(living, "b#1")
    gone.started -= 1  # its id is used again
    ended = worker(living, "c#1", alive=False, code=3, at=7.0)
    worker_table.write_records(folder, [worker(living), gone, ended])
    found, told = after(folder)
    assert told == {
        "a#1": (True, living.pid, True),
        "b#1": (False, living.pid, False),
        "c#1": (False, living.pid, False),
    }
    assert (found["a#1"].heard_at, found["a#1"].heartbeat_s) == (NOW, 3.0)
    assert (found["b#1"].code, found["b#1"].signal, found["b#1"].at) == (None, None, AT)
    assert (found["c#1"].code, found["c#1"].at) == (3, 7.0)


def test_a_book_of_before_the_system_was_started_names_nobody_who_lives(folder, living):
    worker_table.write_records(folder, [worker(living)])
    written = json.loads(folder.records.read_text())
    folder.records.write_text(json.dumps({**written, "boot": "another"}))
    assert after(folder)[1] == {"a#1": (False, living.pid, False)}


def test_a_worker_whose_start_was_not_finished_in_the_book_is_found(folder, living):
    worker_table.write_records(folder, [worker(None), worker(None, "b#1")])
    _, told = after(folder)
    assert told == {"a#1": (True, living.pid, True), "b#1": (False, None, False)}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"workers": []}', '{"boot": "x", "workers": [{}]}', "[" * 100_000],
    ids=["empty", "cut", "list", "no-boot", "no-worker", "deep"],
)
def test_a_book_that_cannot_be_read_is_put_aside_and_the_living_are_found(folder, living, text):
    folder.records.write_text(text)
    found, told = after(folder)
    assert told == {"a#1": (True, living.pid, True)}
    assert (found["a#1"].accelerator, found["a#1"].heartbeat_s) == ("a", 3.0)
    assert folder.records.with_name("workers.json.unreadable").read_text() == text


def test_a_book_is_written_whole_or_not_at_all(folder, living):
    worker_table.write_records(folder, [worker(living)])
    before = folder.records.read_text()
    folder.records.with_name("workers.json.new").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        worker_table.write_records(folder, [])
    assert folder.records.read_text() == before
    assert folder.records.stat().st_mode & 0o777 == 0o600
