"""Checkpoints: whole or not there, the newest that is whole, and going on from it."""

import os
import signal

import pytest
import torch

import lumctl.training.torch as recovery
from lumctl.errors import UsageError
from lumctl.training.torch import checkpoints as room
from lumctl.training.torch.checkpoints import Checkpoints, Persistence, of_rank, read
from lumctl.training.torch.training_state import TrainingState


def saved(folder, *dones, rank=None):
    checkpoints = Checkpoints(folder)
    for done in dones:
        checkpoints.save({"model": {"w": torch.full((100,), float(done))}}, done, rank)
    return checkpoints


def test_the_newest_two_are_kept_and_the_newest_is_read(tmp_path):
    checkpoints = saved(tmp_path, 10, 20, 30)
    saved(tmp_path, 20, rank=1)
    assert [done for done, _ in checkpoints.found(None)] == [30, 20]
    assert [done for done, _ in checkpoints.found(1)] == [20]
    done, tree = checkpoints.newest(None)
    assert done == 30
    assert tree["model"]["w"][0] == 30
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-00000020-rank-1.pt",
        "step-00000020.pt",
        "step-00000030.pt",
    ]


def test_what_was_just_written_stays_whatever_else_lies_there(tmp_path):
    checkpoints = saved(tmp_path, 40, 50, 3)
    assert [done for done, _ in checkpoints.found(None)] == [50, 3]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "other"])
def test_where_the_newest_is_damaged_the_one_before_is_taken_and_said(tmp_path, damage, caplog):
    checkpoints = saved(tmp_path, 10, 20)
    path = checkpoints.path(20, None)
    raw = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(raw[: len(raw) // 2])
        case "changed":
            at = raw.index(torch.full((100,), 20.0).numpy().tobytes()) + 8
            path.write_bytes(raw[:at] + b"\xff" + raw[at + 1 :])
        case "empty":
            path.write_bytes(b"")
        case "other":
            torch.save([1, 2], path)
    done, tree = checkpoints.newest(None)
    assert done == 10
    assert tree["model"]["w"][0] == 10
    assert "step-00000020.pt" in caplog.text


def test_what_cannot_be_written_leaves_what_there_is(tmp_path):
    checkpoints = saved(tmp_path, 10)
    checkpoints.path(20, None).mkdir()  # in its way
    with pytest.raises(UsageError, match="cannot be written"):
        saved(tmp_path, 20)
    assert read(checkpoints.path(10, None))[0] == 10
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_checkpoint_that_would_run_code_is_not_read(tmp_path):
    path = saved(tmp_path, 10).path(10, None)
    torch.save({"format": 1, "done": 10, "state": {"x": print}}, path)
    with pytest.raises(UsageError, match="cannot be read"):
        read(path)


def test_parts_of_ranks_lie_beside_each_other(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert of_rank(checkpoints.path(7, 0), 3) == checkpoints.path(7, 3)
    assert of_rank(checkpoints.path(7, None), 3) == checkpoints.path(7, None)


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_a_script_alone_goes_on_from_its_newest_checkpoint(tmp_path, monkeypatch, layout):
    monkeypatch.delenv("LUMCTL_JOB_SOCKET", raising=False)

    def run(total, *, breaks_at=None):
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        seen = []
        with recovery.attach(
            model=model, optimizer=optimizer, seed=3, checkpoint=tmp_path, every=4, layout=layout
        ) as job:
            for step in job.steps(total):
                with step:
                    seen.append(step.number)
                    optimizer.zero_grad()
                    model(torch.randn(2, 4)).square().mean().backward()
                    job.average(model.parameters())
                    if step.number == breaks_at:
                        raise RuntimeError("out of memory")
                    optimizer.step()
        return seen, model.state_dict()

    with pytest.raises(RuntimeError, match="out of memory"):
        run(10, breaks_at=6)
    seen, first = run(10)
    assert seen == list(range(4, 10))
    for path in tmp_path.iterdir():
        path.unlink()
    seen, whole = run(10)
    assert seen == list(range(10))
    assert all(torch.equal(first[name], whole[name]) for name in whole)
    assert run(10)[0] == []


@pytest.fixture
def rank_0(tmp_path, monkeypatch):
    """Rank 0 of two, whose parts differ, in a folder with checkpoints; ``theirs`` is what the other says it has."""

    def rank(theirs):
        monkeypatch.setattr(room, "_gathered", lambda ours, _world, _device: [ours, theirs])
        work = TrainingState({"model": torch.nn.Linear(1, 1)}, layout="unique", seed=None, shape=None)
        return work, Persistence(work, tmp_path, 25)

    return rank


def fitting(folder, *dones, rank):
    for done in dones:
        Checkpoints(folder).save({"model": torch.nn.Linear(1, 1).state_dict()}, done, rank)


def found(folder, rank):
    return [done for done, _ in Checkpoints(folder).found(rank)]


def test_what_only_some_ranks_have_does_not_push_out_what_all_have(tmp_path, rank_0):
    fitting(tmp_path, 50, 60, rank=0)  # the other rank's disk was full after 60
    work, persistence = rank_0([50, 25])
    persistence.agree(0, 2, torch.device("cpu"))
    assert (work.done, found(tmp_path, 0)) == (50, [60, 50])
    work.done = 75
    persistence.save(0)
    assert found(tmp_path, 0) == [75, 50], "the other may never come to write that of 75"
    work.done = 100
    persistence.save(0)
    assert found(tmp_path, 0) == [100, 75]


def test_so_is_it_after_the_job_went_back_in_a_recovery(tmp_path, rank_0):
    work, persistence = rank_0([0, 0])
    for done in (25, 50):
        work.done = done
        persistence.save(0)
    work.done = 40
    persistence.went_back()
    assert found(tmp_path, 0) == [50, 25]
    work.done = 45
    persistence.save(0)
    assert found(tmp_path, 0) == [45, 25]


def test_where_no_checkpoint_is_there_of_every_rank_nothing_begins_anew(tmp_path, rank_0):
    fitting(tmp_path, 60, 75, rank=0)
    work, persistence = rank_0([50, 25])
    with pytest.raises(UsageError, match=r"of all ranks \(rank 0: 75, 60; rank 1: 50, 25\)") as error:
        persistence.agree(0, 2, torch.device("cpu"))
    assert f"remove the checkpoints in {tmp_path} to start from the beginning" in error.value.hint
    assert (work.done, found(tmp_path, 0)) == (0, [75, 60])


def test_where_nobody_has_any_the_job_begins(rank_0):
    work, persistence = rank_0([0, 0])
    persistence.agree(0, 2, torch.device("cpu"))
    assert work.done == 0


def test_what_a_killed_writer_has_left_is_removed_and_one_at_work_is_left_alone(tmp_path, monkeypatch):
    ready, written = os.pipe()
    writers = []
    for rank in (0, 0, 1):
        if (pid := os.fork()) == 0:
            monkeypatch.setattr(os, "fsync", lambda _file: (os.write(written, b"x"), signal.pause()))
            saved(tmp_path, 10, rank=rank)
            os._exit(0)
        writers.append(pid)
        assert os.read(ready, 1) == b"x"
    try:
        assert len(list(tmp_path.glob(".step-*"))) == 3, "two who write the same one do not write into each other's"
        os.kill(writers[0], signal.SIGKILL)
        os.waitpid(writers.pop(0), 0)
        saved(tmp_path, 20, rank=0)
        assert len(list(tmp_path.glob(".step-*-rank-0.pt.*"))) == 1
        assert len(list(tmp_path.glob(".step-*-rank-1.pt.*"))) == 1
    finally:
        for pid in writers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(ready)
        os.close(written)
    saved(tmp_path, 30, rank=0)
    saved(tmp_path, 30, rank=1)
    assert list(tmp_path.glob(".step-*")) == []
