"""What a job did last, told after the end of the ``lumctl job run`` that ran it."""

import json
import re
import tempfile
from types import SimpleNamespace

import pytest

from lumctl.change.plan import Do
from lumctl.cli.job import _how_to_begin_again, _stamped
from lumctl.cli.job_state import require_not_run
from lumctl.cli.main import run
from lumctl.context.job_files import COORDINATOR, job_folder
from lumctl.errors import ExitCode, RefusedError
from lumctl.inventory.load import example, load_inventory
from lumctl.time_text import seconds_of
from lumctl.training.job_control import ControlSocket
from lumctl.training.job_folder import save_status

ENDED = {
    "job": "train",
    "state": "stopped",
    "why": "an operator requested it",
    "generation": 2,
    "of": 4,
    "done": 200,
    "ended_at": 1_800_000_000.0,
    "saved": ["/data/run7/step-00000200.pt"],
    "loss": None,
    "rate_steps_per_s": None,
    "ranks": [],
    "ready": [],
    "recoveries": [],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The run folder of a job that nobody runs."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    # Not pytest's own folder: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="lumctl-") as run_folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", run_folder)
        made = job_folder(example("ring4"), "rack", "train")
        made.mkdir(parents=True, mode=0o700)
        yield made


@pytest.fixture
def job(folder, capsys):
    """Run the command on the example that names how its job is run."""
    assert folder.is_dir()

    def command(*words):
        code = run(["-i", str(example("ring4")), "--target", "rack", "job", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def listed(job):
    return next(line.split() for line in job("list")[1].splitlines() if line.startswith("train"))[2]


def test_how_a_job_has_ended_is_told_after_its_end(job, folder):
    save_status(folder, ENDED)
    code, out, _ = job("status", "train")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("train  stopped  target: rack")
    assert re.fullmatch(
        r"stopped after 200 steps at 2027-01-1\d \d\d:\d\d:\d\d\+\d\d:\d\d: an operator requested it", lines[1]
    )
    assert lines[2] == "checkpoint: /data/run7/step-00000200.pt"
    told = json.loads(job("status", "train", "-o", "json")[1])
    assert (told["state"], seconds_of(told["ended_at"]), told["saved"]) == (
        "stopped",
        ENDED["ended_at"],
        ENDED["saved"],
    )
    assert listed(job) == "stopped"


def test_who_stops_a_job_that_has_ended_is_told_how(job, folder):
    save_status(folder, ENDED)
    code, _, err = job("stop", "train", "--yes")
    assert code == ExitCode.REFUSED
    assert "no lumctl on this machine runs job train: it stopped after 200 steps at 2027-01-1" in err


@pytest.mark.parametrize("left", ["nothing", "running", "what cannot be read"])
def test_of_a_job_whose_end_nobody_saw_nothing_is_told(job, folder, left):
    if left == "running":
        save_status(folder, {**ENDED, "state": "running", "ended_at": None})
    elif left == "what cannot be read":
        (folder / "last.json").write_text("{")
    code, out, err = job("status", "train")
    assert (code, out) == (ExitCode.REFUSED, "")
    assert err.startswith("lumctl: no lumctl on this machine runs job train\n")
    assert listed(job) == "-"
    assert json.loads(job("list", "-o", "json")[1])["jobs"][0]["state"] is None


def test_what_runs_is_asked_and_what_it_left_before_is_no_news(job, folder):
    save_status(folder, ENDED)
    socket = ControlSocket(folder / COORDINATOR, lambda _request, answer: answer({"state": "recovering"}))
    try:
        assert listed(job) == "recovering"
    finally:
        socket.close()


def test_lines_have_the_time_of_day_in_front():
    said = []
    _stamped(said.append)("4 ranks begin (group 1)")
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3} 4 ranks begin \(group 1\)", said[0])


@pytest.mark.parametrize(
    ("why", "hint"), [("its simulator has ended", "sim up"), ("no spare is available", "processes are")]
)
def test_what_to_do_about_a_stop(why, hint):
    full = f"{why}, and all light between the ranks with it" if "simulator" in why else why
    assert hint in _how_to_begin_again("train", full)


def test_what_takes_all_accelerators_from_a_job_that_runs_is_refused(folder):
    inventory = load_inventory(example("ring4"))
    cx = SimpleNamespace(inventory=inventory, target="rack")

    def plan(ranks):
        data = {"assignment": {"train": ranks, "shape of train": ranks}}
        return SimpleNamespace(steps=[SimpleNamespace(do=Do.ASSIGN, data=data)])

    require_not_run(cx, inventory, plan([]))
    place = ControlSocket(folder / COORDINATOR, lambda _request, reply: reply({"state": "running"}))
    try:
        with pytest.raises(RefusedError, match="train runs: without its accelerators") as refused:
            require_not_run(cx, inventory, plan([]))
        assert refused.value.hint == "stop it first: lumctl job stop train"
        require_not_run(cx, inventory, plan(["h1-gpu0"]))
    finally:
        place.close()
