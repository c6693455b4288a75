"""What is kept of what workers print, and what is said where something is not."""

import os

import pytest

from lumctl.training.agent.folder import private_folder
from lumctl.training.agent.worker import Worker
from lumctl.training.agent.worker_table import KEPT, forget, shorten

AT = 1_800_000_000.0
LINES = [f"line {number:04d}\n" for number in range(1000)]  # of 10 bytes


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return private_folder(tmp_path)


def ended(folder, *names):
    workers = []
    for at, name in enumerate(names):
        log = folder.log(name)
        log.touch()
        os.utime(log, (at, at))
        workers.append(Worker(name, name.rpartition("#")[0], alive=False))
    return workers


def logs(path):
    return {each.name for each in path.iterdir()}


def test_a_long_log_begins_anew_and_its_last_lines_lie_beside_it(tmp_path):
    log = tmp_path / "a#1.log"
    with log.open("a") as writer:  # as a worker has it
        writer.write("".join(LINES))
        writer.flush()
        shorten(log, AT, longest=9_000, kept=2_005)
        writer.write("after\n")
    before = tmp_path / "a#1.log.1"
    assert before.read_text() == "".join(LINES[-200:])
    assert oct(before.stat().st_mode & 0o777) == "0o600"
    note, after = log.read_text().splitlines()
    assert after == "after"
    assert note == (
        "[lumctl 2027-01-15T08:00:00Z: 10,000 bytes of this log were removed; 2,000 of its last bytes are in "
        "a#1.log.1; lines written at that moment may be lost]"
    )
    log.write_text("".join(LINES))
    shorten(log, AT, longest=9_000, kept=20_000)
    assert before.read_text() == "".join(LINES)


def test_a_log_that_is_not_too_long_is_left_alone(tmp_path):
    log = tmp_path / "a#1.log"
    log.write_text("".join(LINES))
    shorten(log, AT, longest=10_000, kept=100)
    assert log.read_text() == "".join(LINES)
    assert logs(tmp_path) == {"a#1.log"}


def test_where_nothing_can_be_put_beside_it_that_is_said(tmp_path):
    log, beyond = tmp_path / "a#1.log", tmp_path / "beyond"
    log.write_text("".join(LINES))
    (tmp_path / "a#1.log.1").symlink_to(beyond)  # never followed
    shorten(log, AT, longest=100, kept=50)
    assert "none could be stored in a#1.log.1: Too many levels of symbolic links" in log.read_text()
    assert not beyond.exists()


def test_what_is_no_file_is_not_touched(tmp_path):
    (tmp_path / "real").write_text("".join(LINES))
    (tmp_path / "a#1.log").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match="symbolic"):
        shorten(tmp_path / "a#1.log", AT, longest=100, kept=50)
    assert (tmp_path / "real").read_text() == "".join(LINES)
    os.mkfifo(tmp_path / "b#1.log")
    shorten(tmp_path / "b#1.log", AT, longest=0, kept=50)
    assert logs(tmp_path) == {"real", "a#1.log", "b#1.log"}


def test_the_newest_logs_of_ended_workers_stay_on_each_accelerator(folder):
    numbers = range(1, KEPT + 4)
    workers = ended(folder, *(f"a#{number}" for number in numbers))
    workers[0].alive = True
    ended(folder, "b#1", "a/c#1", "ab#1", "train", "a#x")
    (folder.path / "a#2.log.1").touch()
    others = {"b#1.log", "a%2fc#1.log", "ab#1.log", "train.log", "a#x.log"}
    forget(folder, "a", workers[:2])  # the rest is of a run that this agent knows nothing of
    assert logs(folder.path) == others | {"a#1.log"} | {f"a#{number}.log" for number in numbers[-KEPT:]}


def test_a_worker_of_any_name_counts_where_it_is_known(folder):
    workers = ended(folder, *(f"w{number}" for number in range(KEPT + 2)))
    for worker in workers:
        worker.accelerator = "a"
    forget(folder, "a", workers)
    assert logs(folder.path) == {f"w{number}.log" for number in range(2, KEPT + 2)}
