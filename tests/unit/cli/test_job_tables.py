"""What ``lumctl job status`` prints of a job that runs."""

import time
from types import SimpleNamespace

import pytest

from lumctl.cli.job_state import print_job
from lumctl.cli.output import Output, OutputFormat


@pytest.fixture(autouse=True)
def _berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def document():
    placed = ["h1-gpu0", "h5-gpu0", "h3-gpu0"]
    return {
        "job": "train",
        "why": None,
        "state": "running",
        "generation": 2,
        "of": 3,
        "done": 1240,
        "loss": 2.134567891,
        "rate_steps_per_s": 5.3333,
        "ranks": [
            {
                "rank": rank,
                "accelerator": name,
                "host": name[:2],
                "worker": f"{name}#1",
                "pid": 4000 + rank,
                "state": "training",
                "done": 1240,
            }
            for rank, name in enumerate(placed)
        ],
        "ready": [{"accelerator": "h6-gpu0", "host": "h6", "worker": "h6-gpu0#1", "pid": 4711}],
        "recoveries": [
            {
                "at": 1_800_000_000.0,
                "cause": "killed by SIGKILL",
                "failed": ["h2-gpu0"],
                "replaced_by": {"h2-gpu0": "h5-gpu0"},
                "without": [],
                "failure_to_circuits_s": 0.1342,
                "failure_to_step_s": 0.1871,
                "run": "20270115-090000-ab12",
            }
        ],
    }


def printed(document, capsys, how=OutputFormat.TABLE):
    invocation = SimpleNamespace(out=Output(how), target="sim", inventory_path="r.yaml", target_option=None)
    print_job(invocation, document)
    return capsys.readouterr().out


def test_how_it_does_and_where_it_runs(document, capsys):
    lines = printed(document, capsys).splitlines()
    assert lines[0] == (
        "train  running  target: sim  1240 steps  loss: 2.13457  5.33 steps/s  generation: 2  recovered: 1 time"
    )
    assert lines[2].split("  ")[0] == "RANK"
    assert lines[4].split() == ["1", "h5-gpu0", "h5", "training", "1240"]
    assert any(line.split() == ["h6-gpu0", "h6"] for line in lines)
    assert lines[-1].split() == [
        "2027-01-15", "09:00:00+01:00", "killed", "by", "SIGKILL", "h2-gpu0", "h5-gpu0", "134", "ms", "187", "ms",
        "20270115-090000-ab12",
    ]  # fmt: skip


def test_a_job_that_has_shrunk_says_how_far_and_why(document, capsys):
    document |= {"of": 4}
    document["recoveries"][0] |= {"replaced_by": {}, "without": [1], "run": None}
    lines = printed(document, capsys).splitlines()
    assert lines[0].startswith("train  running  target: sim  3 of 4 ranks  1240 steps")
    assert "continued without rank 1" in lines[-1]


def test_wide_names_the_workers(document, capsys):
    wide = printed(document, capsys, OutputFormat.WIDE)
    assert all(word in wide for word in ("h5-gpu0#1", "4001", "4711"))
    assert "#1" not in printed(document, capsys)


def test_a_whole_host_is_folded(document, capsys):
    document["recoveries"][0] |= {
        "failed": ["h2-gpu0", "h2-gpu1"],
        "replaced_by": {"h2-gpu0": "h5-gpu0", "h2-gpu1": "h5-gpu1"},
    }
    last = printed(document, capsys).splitlines()[-1]
    assert "h2-gpu[0-1]  h5-gpu[0-1]" in last


def test_a_worker_that_came_up_again_spent_no_spare(document, capsys):
    document["recoveries"][0] |= {"replaced_by": {}, "failure_to_circuits_s": None, "run": None}
    last = printed(document, capsys).splitlines()[-1]
    assert last.endswith("h2-gpu0  restarted in place               -      187 ms  -")


def test_a_recovery_under_way_is_told_from_one_that_came_to_nothing(document, capsys):
    unfinished = document["recoveries"][0] | {"replaced_by": {}, "failure_to_step_s": None, "run": None}
    document |= {"state": "recovering", "recoveries": [unfinished, unfinished]}
    lines = printed(document, capsys).splitlines()
    assert "under way" in lines[-1]
    assert "under way" not in lines[-2]
    assert "none" in lines[-2]
    assert "recovered" not in lines[0]
    document["state"] = "stopped"
    assert "under way" not in printed(document, capsys)


def test_a_job_that_has_only_begun(document, capsys):
    document |= {"done": 1, "loss": None, "rate_steps_per_s": None, "generation": 1, "ready": [], "recoveries": []}
    lines = printed(document, capsys).splitlines()
    assert lines[0] == "train  running  target: sim  1 step  generation: 1"
    assert not any(line.startswith(("READY", "AT")) for line in lines)


def test_why_it_waits_is_told(document, capsys):
    document |= {"state": "recovering", "why": "no spare is left (see: lumctl spare list)"}
    told = "recovering: no spare is left (see: lumctl -i r.yaml spare list)"
    assert printed(document, capsys).splitlines()[1] == told
