"""What the coordinator of a job tells its control, and asking it where that cannot be done."""

import json
import socket
import threading

import pytest

from lumctl.context.job_files import coordinator_socket
from lumctl.errors import UnreachableError
from lumctl.jobs.control import NOBODY
from lumctl.jobs.testing import bench_context, ranks
from lumctl.training.job_control import WorkersControl, ask


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """The control of a job whose coordinator answers each request with the next of these."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    context = bench_context(None, ranks("h1", "h3"))
    path = coordinator_socket(context.inventory, context.target, context.job)
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answered_with(*answers):
            def serve():
                for answer in answers:
                    connection = listener.accept()[0]
                    with connection, connection.makefile("rw") as line:
                        line.readline()
                        line.write(json.dumps(answer) + "\n")

            threading.Thread(target=serve, daemon=True).start()
            return WorkersControl(context)

        yield answered_with


def at(*accelerators, state="running", of=2):
    return {"state": state, "of": of, "ranks": [{"accelerator": name} for name in accelerators]}


@pytest.mark.parametrize(
    ("status", "claimed"),
    [
        (at("h1-gpu0", "h2-gpu0"), {"ranks": "h1-gpu0,h2-gpu0"}),
        (at("h1-gpu0"), {}),
        (at("h1-gpu0", "h2-gpu0", state="recovering"), {}),
        ({"error": "it ends"}, {}),
    ],
    ids=["all", "not-all", "not-running", "no-answer"],
)
def test_a_resumed_job_s_ranks_are_those_that_its_coordinator_knows(workers, status, claimed):
    told = workers({"state": "running"}, status).resume(NOBODY, ranks("h1", "h3"))
    assert told == {"was": "paused", "is": "running", **claimed}


def test_a_path_that_is_too_long_for_a_socket_is_told_of(tmp_path):
    with pytest.raises(UnreachableError, match="cannot be reached: AF_UNIX path too long") as error:
        ask(tmp_path / ("long" * 40) / "c.sock", "status", timeout_s=1.0)
    assert "XDG_RUNTIME_DIR" in error.value.hint


def test_a_folder_that_may_not_be_entered_is_told_of(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreachableError, match="Not a directory"):
        ask(tmp_path / "file" / "c.sock", "status", timeout_s=1.0)


def test_nobody_there(tmp_path):
    assert ask(tmp_path / "c.sock", "status", timeout_s=1.0) is None
