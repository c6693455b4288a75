"""Who is late is read from what the coordinators on this machine have saved; what is old or damaged says nothing."""

import json
import socket

import pytest

from lumctl.context.job_files import COORDINATOR, LATE, job_folder, late_ranks, save_late
from lumctl.health.lateness import Lateness
from lumctl.inventory.load import example, load_inventory

NOW = 1_800_000_000.0
LATE_GPU, RANKS = "h3-gpu0", ("h1-gpu0", "h2-gpu0", "h3-gpu0", "h4-gpu0")
ROW = {
    "rank": 2,
    "accelerator": LATE_GPU,
    "group": "",
    "gap_s": 0.007,
    "step_s": 0.12,
    "since": NOW - 60,
    "worked_around": False,
}
NOBODY, UNKNOWN, JUDGED = Lateness(), Lateness(unknown=frozenset(RANKS)), Lateness(judged=frozenset(RANKS))


@pytest.fixture
def job(tmp_path, monkeypatch):
    """The folder of the job of a rack."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    found = job_folder(example("ring4"), "sim", "train")
    found.mkdir(parents=True)
    return found


@pytest.fixture
def coordinator(job):
    """A coordinator that answers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(job / COORDINATOR))
        server.listen()
        yield server


def read(ranks=RANKS, target="sim", now=NOW):
    return late_ranks(load_inventory(example("ring4")), target, {"train": ranks}, now)


def saved(folder, at=NOW - 5, step_s=0.12, ranks=(ROW,)):
    save_late(folder, {"at": at, "step_s": step_s, "ranks": list(ranks)})


def test_a_late_rank_is_that_of_its_accelerator(job):
    saved(job)
    (late,) = read().late.values()
    assert (late.job, late.rank, late.accelerator, late.gap_s, late.since) == ("train", 2, LATE_GPU, 0.007, NOW - 60)
    assert read(target="rack") == NOBODY
    saved(job, ranks=())
    assert read() == JUDGED


@pytest.mark.usefixtures("coordinator")
def test_what_is_old_damaged_or_missing_while_the_job_runs_says_nothing(job):
    assert read() == UNKNOWN
    saved(job, at=NOW - 46)
    assert read() == UNKNOWN
    saved(job, at=NOW + 1)
    assert read() == UNKNOWN
    for damaged in ("", "{", "[]", json.dumps({"schema": "lumctl/job-late-kept/v1", "late": {"at": NOW}})):
        (job / LATE).write_text(damaged)
        assert read() == UNKNOWN
    for wrong in (None, float("nan"), "x"):
        saved(job, ranks=[{**ROW, "gap_s": wrong}])
        assert read() == UNKNOWN


def test_a_training_step_may_take_longer_than_readings_stay_current(job):
    saved(job, at=NOW - 46, step_s=20.0)
    assert list(read().late) == [LATE_GPU]


def test_nobody_is_late_in_a_job_that_nobody_runs_here(job):
    saved(job, at=NOW - 3600)
    assert read() == NOBODY
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(job / COORDINATOR))
    assert read() == NOBODY


def test_a_rank_that_a_swap_has_moved_is_not_late_where_it_was(job):
    saved(job)
    assert read(ranks=("h1-gpu0", "h2-gpu0", "h5-gpu0", "h4-gpu0")).late == {}
    assert read(ranks=()) == NOBODY


def test_a_user_without_a_private_folder_runs_no_job(job, monkeypatch):
    saved(job)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/dev/null")
    assert read() == NOBODY
