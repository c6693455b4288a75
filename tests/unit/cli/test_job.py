"""``lumctl job``: from the store alone, without asking any host."""

import json

import pytest

from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.errors import ExitCode
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import example


@pytest.fixture
def job(tmp_path, monkeypatch, capsys):
    """Run the command on an example rack with a store of its own; a host that is asked is an error."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(Fleet, "collect", lambda *_: pytest.fail("a host was asked"))

    def command(*arguments, rack="rack64"):
        code = run(["-i", str(example(rack)), "job", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_the_names_of_the_jobs(job):
    assert job("list", "-o", "name") == (0, "train-a\ntrain-b\n", "")


def test_the_list_folds_accelerators_and_counts(job):
    code, out, _ = job("list")
    assert code == 0
    row = next(line.split() for line in out.splitlines() if line.startswith("train-a"))
    assert row == ["train-a", "rack64", "-", "32", "32", "h[01-08]-gpu[0-3]"]


def test_the_list_as_data(job):
    said = json.loads(job("list", "-o", "json")[1])
    assert said["schema"] == "lumctl/jobs/v1"
    assert [(j["name"], len(j["accelerators"])) for j in said["jobs"]] == [("train-a", 32), ("train-b", 28)]


def test_a_job_as_data(job):
    said = json.loads(job("show", "train-a", "-o", "json")[1])
    assert said["schema"] == "lumctl/job/v1"
    assert said["ranks"][18] == {
        "rank": 18,
        "accelerator": "h03-gpu2",
        "host": "h03",
        "first_placed_on": "h03-gpu2",
    }
    assert said["links"][0] == {
        "id": "train-a/0-1",
        "direction": "duplex",
        "device": "rail0",
        "a": {"accelerator": "h01-gpu0", "lane": "h01-gpu0-b", "device": "rail0", "port": 5},
        "b": {"accelerator": "h02-gpu0", "lane": "h02-gpu0-a", "device": "rail0", "port": 8},
    }


def test_after_a_swap_the_job_names_the_spare(job, monkeypatch):
    monkeypatch.setattr(Context, "assignment", lambda _: {"finetune": ("s0-gpu0", "s3-gpu0", "s2-gpu0")})
    said = json.loads(job("show", "finetune", "-o", "json", rack="prototype")[1])
    assert (said["ranks"][1]["accelerator"], said["ranks"][1]["first_placed_on"]) == ("s3-gpu0", "s1-gpu0")
    assert [(link["id"], link["direction"], link["b"]["lane"]) for link in said["links"][:2]] == [
        ("finetune/0-1:ab", "a-to-b", "s3-gpu0-a"),
        ("finetune/0-1:ba", "a-to-b", "s0-gpu0-b"),
    ]
    _, out, _ = job("show", "finetune", rack="prototype")
    row = next(line.split() for line in out.splitlines() if "s3-gpu0" in line)
    assert row == ["1", "s3-gpu0", "s3", "s1-gpu0"]


def test_the_accelerators_of_a_job_by_name(job):
    assert job("show", "finetune", "-o", "name", rack="prototype")[1] == "s0-gpu0\ns1-gpu0\ns2-gpu0\n"


@pytest.mark.parametrize(("word", "hint"), [("train-c", "did you mean train-"), ("zzz", "train-a, train-b")])
def test_an_unknown_job_is_one_line_with_the_nearest_word(job, word, hint):
    code, out, err = job("show", word)
    assert (code, out) == (ExitCode.USAGE, "")
    assert err.splitlines()[0].startswith(f"lumctl: no job '{word}' in ")
    assert hint in err.splitlines()[1]
