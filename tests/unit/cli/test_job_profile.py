"""``job phases --profile``: what ranks measured, the model below it, and what is refused with a hint that works."""

import json
from dataclasses import replace

import pytest

from lumctl.cli.main import run
from lumctl.context.job_files import job_folder
from lumctl.inventory.load import example, load_inventory
from lumctl.training.job_folder import save_profiles
from lumctl.training.phase_profile import PhaseProfiles, phases_digest

PLAN, OLDER, OTHER = "plan-00000002", "plan-00000001", "plan-00000000"
JOB = load_inventory(example("rails")).jobs["train"]
ROWS = (
    ["gradients", "pipeline", "ahead", True, 0, 0.004, 0.006, 0.01],
    ["pipeline", "gradients", "on-demand", False, 1, 0.01, 0.0, 0.01],
)


@pytest.fixture
def phases(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "store"))
    monkeypatch.setenv("LUMCTL_INVENTORY", str(example("rails")))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)

    def command(*words):
        code = run(["job", "phases", "train", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def saved(*plans, job=JOB, rows=ROWS):
    """Profiles of plans under which the job had these phases."""
    made = PhaseProfiles(phases_digest(job))
    for plan in plans:
        for _ in range(12):
            made.note(plan, 0, {"wait_s": 0.014, "step_s": 0.214, "blocked_s": 0.05, "boundaries": rows})
    folder = job_folder(example("rails"), "rack", "train")
    folder.mkdir(parents=True, exist_ok=True)
    save_profiles(folder, made.document())


@pytest.fixture
def other(phases):
    """A profile of phases in another order, in the folder of that command."""
    saved(OTHER, job=replace(JOB, order=JOB.order[::-1]))
    return phases


def test_each_boundary_and_rank_has_its_times_and_the_model_stands_below(other):
    saved(PLAN)
    code, out, err = other("--profile", PLAN)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == f"train order: pipeline, gradients profile: {PLAN} target: rack".split()
    ahead = "gradients to pipeline 0 ahead 12 6.0 ms 6.0 ms 4.0 ms 4.0 ms 10 ms 6.0 ms"
    assert ahead.split() in lines
    assert ["ahead", "214", "ms", "14", "ms", "70.1%", "7.0%"] in lines
    assert ["on-demand", "220", "ms", "20", "ms", "68.2%", "10.0%"] in lines
    assert "measured: 214 ms (median of the newest of 12 steps)" in err
    document = json.loads(other("--profile", PLAN, "-o", "json")[1])
    assert (document["schema"], document["job"], document["profile"]["plan"]) == ("lumctl/phases/v1", "train", PLAN)
    assert [row["hidden_at_most_s"] for row in document["profile"]["boundaries"]] == pytest.approx([0.006, 0.0])
    assert document["profile"]["model"]["modes"]["on-demand"]["stall_s"] == pytest.approx(0.02)
    assert other("--profile", PLAN, "-o", "name") == (0, f"{PLAN}\n", "")


def test_without_windows_the_step_ahead_is_not_claimed(phases):
    saved(PLAN, rows=[[*ROWS[0][:6], None, 0.01]])
    _, out, err = phases("--profile", PLAN)
    assert not [line for line in out.splitlines() if line.startswith("ahead")]
    assert "the ranks measure windows from their step 8 on" in err


def test_a_profile_of_another_plan_is_refused_and_the_hint_works(other):
    code, out, err = other("--profile", OTHER)
    assert (code, out) == (5, "")
    refused, hint = err.splitlines()
    assert refused == (
        f"lumctl: {OTHER} is a profile of other phases than train has now: their links or their order have changed"
    )
    assert "lumctl job run train" in hint
    saved(OLDER)
    saved(PLAN)
    _, _, err = other("--profile", OTHER)
    assert err.splitlines()[1].endswith(f"see the newest of the present ones: lumctl job phases train --profile {PLAN}")
    assert other("--profile", PLAN)[0] == 0


def test_an_unknown_profile_is_refused_with_the_nearest_or_the_newest_first(phases):
    code, _, err = phases("--profile", PLAN)
    assert code == 5
    assert "no windows between the phases of train are recorded on this machine" in err
    saved(OLDER)
    saved(PLAN)
    code, out, err = phases("--profile", "plan-0000002")
    assert (code, out) == (2, "")
    assert "no profile 'plan-0000002' in job train" in err
    assert f"did you mean {PLAN}?" in err
    assert f"it has {PLAN}, {OLDER}" in phases("--profile", "soon")[2]
