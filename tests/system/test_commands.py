"""The commands as a shell runs them: exit codes, one-line errors, nothing half done. One simulator for all of them."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_commands import run_lumctl

from lumctl.inventory.load import example

Lumctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def environment(place: Path) -> dict[str, str]:
    runtime = place / "run"
    runtime.mkdir(mode=0o700)
    inventory = place / "prototype.yaml"
    inventory.write_text(example("prototype").read_text() + "\nthresholds: {light_deadline_s: 1.0}\n")
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place),
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_RUNTIME_DIR": str(runtime),
        "LUMCTL_INVENTORY": str(inventory),
        "LANG": "C.UTF-8",
    }


@pytest.fixture(scope="module")
def bare(environment: dict[str, str]) -> Lumctl:
    """Run lumctl without naming a target."""

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return run_lumctl(*words, env={**environment, **more})

    return run


@pytest.fixture(scope="module")
def lumctl(bare: Lumctl) -> Iterator[Lumctl]:
    """Run lumctl on a simulator that is up."""

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return bare(*words, LUMCTL_TARGET="sim", **more)

    up = bare("sim", "up", "--detach")
    assert up.returncode == 0, up.stderr
    yield run
    assert bare("sim", "down").returncode == 0


@pytest.fixture(autouse=True)
def _well(lumctl: Lumctl) -> Iterator[None]:
    """Every test leaves a rack without faults behind it."""
    yield
    lumctl("sim", "clear")


def plan_after(lumctl: Lumctl, *faults: tuple[str, str]) -> str:
    """The id of a plan that replaces s1's lost GPU; then the given faults come."""
    lumctl("sim", "fault", "s1-gpu0", "gpu-lost")
    made = lumctl("swap", "plan", "finetune", "--failed", "s1-gpu0", "-o", "name")
    assert made.returncode == 0, made.stderr
    for component, kind in faults:
        assert lumctl("sim", "fault", component, kind).returncode == 0
    return made.stdout.strip()


def stands(lumctl: Lumctl) -> tuple[object, object]:
    """Where the job runs and what the mesh is recorded to hold."""
    ranks = json.loads(lumctl("job", "show", "finetune", "-o", "json").stdout)["ranks"]
    return ranks, json.loads(lumctl("fabric", "show", "-o", "json").stdout)["devices"]


def loads(status: dict[str, Any]) -> dict[str, float | None]:
    """The utilisation of each accelerator."""
    return {each["id"]: each["readings"]["utilization_percent"] for each in status["accelerators"]}


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The error of a command: one line, and at most a hint."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("lumctl: ")]
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return errors[0]


def test_the_whole_story(lumctl: Lumctl) -> None:
    assert lumctl("check").returncode == 0
    plan = plan_after(lumctl)
    check = lumctl("check")
    assert (check.returncode, check.stdout.count("\n")) == (2, 1)
    assert lumctl("status").returncode == 4
    applied = lumctl("swap", "apply", plan, "--yes", "-o", "json")
    assert applied.returncode == 0, applied.stderr
    result = json.loads(applied.stdout)
    assert (result["outcome"], len(result["verified"])) == ("done", 4)
    assert {"name", "seconds"} <= set(result["stages"][0])
    assert Path(result["runbook"]).stat().st_mode & 0o777 == 0o600
    ranks = json.loads(lumctl("job", "show", "finetune", "-o", "json").stdout)["ranks"]
    assert [rank["accelerator"] for rank in ranks] == ["s0-gpu0", "s3-gpu0", "s2-gpu0"]
    status = json.loads(lumctl("status", "-o", "json").stdout)
    assert all(circuit["state"] == "ok" for circuit in status["circuits"])
    assert (loads(status)["s1-gpu0"], loads(status)["s3-gpu0"]) == (None, 0)
    assert json.loads(lumctl("sim", "resume", "finetune", "-o", "json").stdout)["accelerators"] == [
        rank["accelerator"] for rank in ranks
    ]
    assert loads(json.loads(lumctl("status", "-o", "json").stdout))["s3-gpu0"] == 96
    for on in ("sim", result["runbook"]):
        replayed = lumctl("runbook", "replay", result["run"] if on == "sim" else on, "--target", "sim", "-o", "json")
        assert replayed.returncode == 0, replayed.stderr
        assert json.loads(replayed.stdout)["identical"] is True
    assert lumctl("sim", "clear").returncode == 0
    back = lumctl("swap", "rollback", result["run"], "--yes")
    assert back.returncode == 0, back.stderr
    assert lumctl("status").returncode == 0
    again = lumctl("runbook", "replay", result["run"], "--target", "sim", "--running", "--yes", "-o", "json")
    assert json.loads(again.stdout)["identical"] is True, again.stdout
    assert lumctl("swap", "rollback", json.loads(again.stdout)["run"], "--yes").returncode == 0
    assert lumctl("runbook", "verify").returncode == 0


def test_a_plan_is_refused_by_the_other_target(lumctl: Lumctl, bare: Lumctl, place: Path) -> None:
    plan = plan_after(lumctl)
    before = stands(lumctl)
    lumctl("swap", "plan", "finetune", "--failed", "s1-gpu0", "--out", str(place / "plan.json"))
    for name in (plan, str(place / "plan.json")):
        refused = bare("swap", "apply", name, "--yes")
        assert refused.returncode == 5
        assert re.search(r"made for target sim, but this command uses target rack", said(refused))
    assert stands(lumctl) == before


def test_light_is_followed_through_the_states_that_a_plan_leaves(lumctl: Lumctl, bare: Lumctl, place: Path) -> None:
    lumctl("sim", "fault", "s1-gpu0", "gpu-lost")
    file = str(place / "followed.json")
    assert lumctl("swap", "plan", "finetune", "--failed", "s1-gpu0", "--out", file).returncode == 0
    document = json.loads(Path(file).read_text(encoding="utf-8"))
    for name in (document["id"], file):
        shown = lumctl("fabric", "trace", name, "-o", "json")
        assert shown.returncode == 0, shown.stderr
        traced = json.loads(shown.stdout)
        assert (traced["plan"], traced["as_planned"]) == (document["id"], traced["planned"])
        added = {circuit["id"]: circuit["segments"] for circuit in traced["circuits"] if circuit["change"] == "adds"}
        assert added == {circuit["id"]: circuit["segments"] for circuit in document["circuits"]["add"]}
        assert bare("fabric", "trace", name).returncode == 5
    other = lumctl("fabric", "trace", file, "-i", str(example("two-meshes")))
    assert (other.returncode, "another inventory" in said(other)) == (2, True)
    drawn = lumctl("fabric", "show", file)
    assert (drawn.returncode, f"lumctl fabric trace {file}" in drawn.stderr) == (2, True)
    assert lumctl("fabric", "trace", "plan-00000000").returncode == 2
    assert lumctl("fabric", "trace", file, "--crosstalk").returncode == 2
    Path(file).write_text(json.dumps({**document, "title": "another"}), encoding="utf-8")
    assert "changed after it was made" in said(lumctl("fabric", "trace", file))


def test_a_swap_on_a_rack_that_was_never_programmed_is_refused(bare: Lumctl) -> None:
    refused = bare("swap", "plan", "finetune", "--failed", "s1-gpu0")
    assert refused.returncode == 5
    assert "never programmed from this store" in said(refused)


@pytest.mark.parametrize(
    ("faults", "code", "says"),
    [
        ([("mesh", "mesh-down")], 3, "mesh"),
        ([("mesh", "mesh-lying")], 6, "was rolled back: light was not verified"),
        ([("s3-gpu0-a", "dark")], 6, "was rolled back: light was not verified"),
        ([("mesh/port/13", "dark")], 6, "was rolled back: light was not verified"),
        ([("s3-gpu0", "row-remap-failed")], 5, "s3-gpu0 is failed, not ok"),
        ([("s3", "unreachable")], 5, "s3-gpu0 is unknown, not ok"),
    ],
    ids=["mesh-down", "mesh-lying", "dark-transmitter", "dark-port", "ill-spare", "lost-spare"],
)
def test_a_swap_that_cannot_be_done_leaves_all_as_it_was(
    lumctl: Lumctl, faults: list[tuple[str, str]], code: int, says: str
) -> None:
    plan = plan_after(lumctl)
    before = stands(lumctl)
    for component, kind in faults:
        assert lumctl("sim", "fault", component, kind).returncode == 0
    failed = lumctl("swap", "apply", plan, "--yes")
    assert failed.returncode == code, failed.stderr
    assert says in said(failed)
    assert stands(lumctl) == before
    lumctl("sim", "clear")
    assert lumctl("status").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("swap", "apply", "plan-00000000", "--yes"), 2, "no plan 'plan-00000000'"),
        (("swap", "show", "swap-9999"), 2, "no run 'swap-9999'"),
        (("swap", "rollback", "fabric-0001", "--yes"), 5, "whose earlier states were unknown"),
        (("job", "show", "finetun"), 2, "did you mean"),
        (("sim", "fault", "s1-gpu", "gpu-lost"), 2, "did you mean"),
        (("sim", "fault", "s1-gpu0", "gpu-los"), 2, "did you mean"),
        (("status", "-o", "jso"), 2, "'jso' is not a known output format"),
        (("runbook", "replay", "fabric-0001", "--target", "simm"), 2, "did you mean sim"),
        (("inventory", "show", "s1-gpu"), 2, "did you mean"),
    ],
)
def test_wrong_words_are_one_line_with_the_nearest_right_one(
    lumctl: Lumctl, words: tuple[str, ...], code: int, says: str
) -> None:
    done = lumctl(*words)
    assert done.returncode == code
    assert says in done.stderr
    said(done)


def test_without_a_terminal_and_without_yes_nothing_is_done(lumctl: Lumctl) -> None:
    plan = plan_after(lumctl)
    before = stands(lumctl)
    done = lumctl("swap", "apply", plan)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    shown = lumctl("swap", "apply", plan, "--dry-run", "-o", "json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["id"] == plan
    assert stands(lumctl) == before


def test_broken_yaml_is_told_at_its_place(bare: Lumctl, place: Path) -> None:
    broken = place / "broken.yaml"
    broken.write_text("lumctl: 1\nracks: [\n")
    done = bare("-i", str(broken), "status")
    assert done.returncode == 2
    assert f"{broken}:3:1" in said(done)


def test_a_simulator_that_does_not_run_is_said_to_be_unreachable(bare: Lumctl, place: Path) -> None:
    other = place / "other.yaml"
    other.write_text(example("prototype").read_text())
    done = bare("-i", str(other), "status", "--target", "sim")
    assert done.returncode == 3
    assert "--target sim sim up --detach" in done.stderr
    assert bare("-i", str(other), "check", "--target", "sim").returncode == 3


def test_an_edited_runbook_is_checked_before_its_first_step(lumctl: Lumctl, place: Path) -> None:
    plan = plan_after(lumctl)
    run = json.loads(lumctl("swap", "apply", plan, "--yes", "-o", "json").stdout)["run"]
    file = place / "edited.yaml"
    assert lumctl("runbook", "export", run, "--out", str(file)).returncode == 0
    assert lumctl("runbook", "export", run, "--out", str(file)).returncode == 2  # it is there already
    lumctl("sim", "clear")
    assert lumctl("swap", "rollback", run, "--yes").returncode == 0
    before, text = stands(lumctl), file.read_text()
    for old, new, code, says in (
        ("healthy: [s3-gpu0]", "healthy: [s9-gpu0]", 2, "s9-gpu0"),
        ("kept: ['finetune/2-0:ab', 'finetune/2-0:ba']", "kept: [nope]", 2, "nope"),
        ("kept: ['finetune/2-0:ab', 'finetune/2-0:ba']", "kept: []", 5, "without a proof that circuit"),
        ("device: mesh", "device: mush", 2, "mush"),
        ("changes: [[", "changes: [[999, '=', x], [", 2, "999"),
        ("finetune: [s0-gpu0, s3-gpu0, s2-gpu0]", "finetune: [s0-gpu0]", 2, "places 1 ranks"),
    ):
        assert old in text, old
        file.write_text(text.replace(old, new))
        for on in (("sim",), ("sim", "--running")):
            done = lumctl("runbook", "replay", str(file), "--target", *on, "--yes")
            assert done.returncode == code, (new, done.stderr)
            assert says in done.stderr
    assert stands(lumctl) == before
