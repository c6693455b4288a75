"""Runbooks as an operator uses them: over two racks of one inventory, on a running simulator."""

import json
import re
import time
from pathlib import Path

import pytest
from forked_commands import run_lumctl

from lumctl.inventory.load import load_inventory
from lumctl.store import open_store

REPOSITORY = Path(__file__).parents[2]


def two_racks() -> str:
    """Two small racks: in each two hosts at work, a spare one, a mesh and a job."""
    head = "lumctl: 1\nracks:\n  r1: {}\n  r2: {}\ndefaults:\n  ssh: {user: lumctl}\n  transponder: {verify: [lldp]}\n"
    hosts, devices, lanes, jobs = "", "", "", ""
    for n in (1, 2):
        gpu = '{id: "{host}-gpu0", model: X100, memory_gib: 80, pci: 0000:1b:00.0'
        hosts += f"  - {{name: 'r{n}h[1-2]', rack: r{n}, accelerators: [{gpu}}}]}}\n"
        hosts += f"  - {{name: 'r{n}h3', rack: r{n}, accelerators: [{gpu}, role: spare}}]}}\n"
        devices += f"  - {{id: mesh{n}, rack: r{n}, kind: mesh, driver: smartlight, address: 'm{n}.example:65432',"
        devices += " geometry: {columns: 3, rows: 2}, settle_ms: 1}\n"
        lanes += f"  - {{id: 'r{n}h[1-3]-gpu0-a', accelerator: 'r{n}h[1-3]-gpu0', interface: eth2, device: mesh{n},"
        lanes += " port: [0, 5, 10]}\n"
        jobs += f"  - {{name: pair{n}, ranks: 'r{n}h[1-2]-gpu0', links: [{{kind: pairs, pairs: [[0, 1]]}}]}}\n"
    parts = f"hosts:\n{hosts}devices:\n{devices}transponders:\n{lanes}jobs:\n{jobs}"
    return f"{head}{parts}thresholds: {{light_deadline_s: 1.0}}\n"


class Shell:
    """Runs lumctl on a simulator of two racks."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.inventory = place / "racks.yaml"
        self.inventory.write_text(two_racks())
        runtime = place / "run"
        runtime.mkdir(mode=0o700)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_RUNTIME_DIR": str(runtime),
            "LUMCTL_INVENTORY": str(self.inventory),
            "LUMCTL_TARGET": "sim",
            "LANG": "C.UTF-8",
        }

    def __call__(self, *words, code=0, **others):
        done = run_lumctl(*words, env=self.environment | others, cwd=self.place)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done

    def data(self, *words, code=0):
        return json.loads(self(*words, "-o", "json", code=code).stdout)


@pytest.fixture(scope="module")
def lumctl(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("racks"))
    shell("sim", "up", "--detach")
    yield shell
    shell("sim", "down")


@pytest.fixture(scope="module")
def swap(lumctl):
    """A swap on rack r1 that was done, and undone."""
    lumctl("sim", "fault", "r1h2-gpu0", "gpu-lost")
    plan = lumctl("swap", "plan", "pair1", "--failed", "r1h2-gpu0", "-o", "name").stdout.strip()
    done = lumctl.data("swap", "apply", plan, "--yes")
    (lumctl.place / "done.json").write_text(json.dumps(done))
    run = done["run"]
    lumctl("sim", "clear")
    lumctl("swap", "rollback", f"r1/{run}", "--yes")
    return f"r1/{run}"


@pytest.mark.timeout(180)
def test_a_swap_of_one_rack_is_planned_anew_on_the_other(lumctl, swap):
    lumctl("runbook", "export", swap, "--as-template", "--out", "again.yaml")
    other = ("--set", "failed=r2h1-gpu0", "--set", "rack=r2")
    on_sim = lumctl.data("runbook", "replay", "again.yaml", *other, "--target", "sim")
    assert (on_sim["outcome"], on_sim["identical"]) == ("done", None)
    wrong = lumctl("runbook", "replay", "again.yaml", "--set", "failed=r2h1-gpu0", "--target", "sim", code=5)
    assert "step 1 is for rack r2, but this runbook is for r1" in wrong.stderr
    lumctl("sim", "fault", "r2h1-gpu0", "gpu-lost")
    running = ("--target", "sim", "--running")
    asked = lumctl("runbook", "replay", "again.yaml", "--set", "failed=r2h1-gpu0", "--set", "rack=r2", *running, code=2)
    assert "stdin is not a terminal" in asked.stderr
    done = lumctl.data(
        "runbook", "replay", "again.yaml", "--set", "failed=r2h1-gpu0", "--set", "rack=r2", *running, "--yes"
    )
    assert (done["on"], done["outcome"], len(done["runs"])) == ("r2", "done", 1)
    ranks = lumctl.data("job", "show", "pair2")["ranks"]
    assert [rank["accelerator"] for rank in ranks] == ["r2h3-gpu0", "r2h2-gpu0"]
    lumctl("sim", "clear")
    lumctl("swap", "rollback", f"r2/{done['run']}", "--yes")


PROMISED = {
    "run": {"run", "outcome", "target", "plan", "seconds", "stages", "verified", "runbook", "journal_head"},
    "shown": {"run", "outcome", "rack", "by", "plan_digest", "journal", "journal_head"},
    "runbook": {"id", "title", "recorded", "start", "end", "replacements", "circuits", "steps", "journal_head"},
    "replay": {"runbook", "on", "run", "runs", "outcome", "identical", "first_difference", "rehearsal"},
    "diff": {"a", "b", "same", "summary", "differences", "seconds"},
}


def test_the_fields_that_scripts_are_promised_are_there(lumctl, swap):
    done = json.loads((lumctl.place / "done.json").read_text())
    assert done.keys() >= PROMISED["run"]
    assert all(phase.keys() >= {"name", "seconds"} for phase in done["stages"])
    assert lumctl.data("swap", "show", swap).keys() >= PROMISED["shown"]
    shown = lumctl.data("runbook", "show", swap)
    assert shown.keys() >= PROMISED["runbook"]
    exported = json.loads(lumctl("runbook", "export", swap, "-o", "json").stdout)
    assert exported.keys() >= PROMISED["runbook"] | {"schema"}
    heads = [lumctl.data("runbook", "head")["heads"][0], shown["journal_head"], exported["journal_head"]]
    assert heads[0] == heads[1] == heads[2]
    assert done["journal_head"]["seq"] < heads[0]["seq"]
    lumctl("runbook", "verify", "--head", "done.json")
    assert lumctl.data("runbook", "diff", swap, swap).keys() >= PROMISED["diff"]


def test_what_is_rehearsed_says_that_nothing_was_recorded(lumctl, swap):
    known = lumctl("runbook", "list", "-o", "name").stdout
    lumctl("runbook", "export", swap, "--as-template", "--out", "rehearsed.yaml")
    done = lumctl("runbook", "replay", "rehearsed.yaml", "--target", "sim")
    assert "swap-00" not in done.stdout.partition(":")[2]
    assert "no run was recorded" in done.stderr
    replayed = lumctl.data("runbook", "replay", swap, "--target", "sim")
    assert replayed.keys() >= PROMISED["replay"]
    assert (replayed["rehearsal"], "journal_head" in replayed) == (True, False)
    assert lumctl("runbook", "list", "-o", "name").stdout == known


def test_a_replay_of_an_unknown_run_names_the_targets_that_were_searched(lumctl, swap):
    near = swap[:-1]
    for environment, targets in (({}, "sim or rack"), ({"LUMCTL_TARGET": "rack"}, "rack or sim")):
        refused = lumctl("runbook", "replay", near, "--target", "sim", code=2, **environment)
        assert f"no run '{near}' on target {targets}" in refused.stderr
        assert f"did you mean {swap}?" in refused.stderr
    refused = lumctl("runbook", "replay", "nothing", "--target", "sim", code=2)
    for hint in re.findall(r"lumctl (runbook list --target \w+)", refused.stderr):
        lumctl(*hint.split())


def test_the_target_of_a_replay_is_given_and_no_variable_replaces_it(lumctl, swap):
    asked = lumctl("runbook", "replay", swap, code=2)  # LUMCTL_TARGET is sim
    assert "the target of a replay must be given" in asked.stderr
    (command,) = re.findall(r"lumctl (runbook replay .*)", asked.stderr)
    assert "identical" in lumctl(*command.split()).stdout
    wrong = lumctl("runbook", "replay", swap, "--target", "rack", "--running", code=2)
    assert "--running goes with --target sim" in wrong.stderr


def test_a_run_of_the_simulator_is_found_by_a_shell_that_is_aimed_at_the_rack(lumctl, swap):
    done = lumctl("runbook", "replay", swap, "--target", "sim", LUMCTL_TARGET="rack")
    assert "identical" in done.stdout


def test_an_export_goes_to_standard_output_in_the_wanted_format(lumctl, swap):
    assert lumctl("runbook", "export", swap).stdout.startswith("# What was done")
    assert lumctl("runbook", "export", swap, "-o", "md").stdout.startswith("# ")
    inventory = str(lumctl.inventory)
    pasted = lumctl("runbook", "export", swap, "-o", "md", "-i", inventory, "--target", "sim").stdout
    commands = re.findall(r"`(lumctl .*?)`", pasted)
    assert commands
    assert all(f"lumctl -i {inventory} " in command and "--target sim" in command for command in commands)
    assert "did you mean md" in lumctl("runbook", "export", swap, "-o", "mdx", code=2).stderr
    lumctl("runbook", "export", swap, "--out", "incident.md")
    assert (lumctl.place / "incident.md").read_text().startswith("# ")
    assert lumctl("runbook", "export", swap, "-o", "name").stdout == swap.partition("/")[2] + "\n"


def test_what_is_no_runbook_file_is_told_how_one_is_made(lumctl, swap):
    refused = lumctl("runbook", "lint", swap, code=2)
    assert f"lumctl runbook export {swap} --out FILE" in refused.stderr
    (lumctl.place / "none.json").write_text("{")
    assert "lumctl runbook head --out FILE" in lumctl("runbook", "verify", "--head", "none.json", code=2).stderr


def test_steps_that_do_not_lead_to_the_end_are_found_before_a_replay(lumctl, swap):
    lumctl("runbook", "export", swap, "--out", "short.yaml", "--force")
    file = lumctl.place / "short.yaml"
    steps = re.split(r"(?m)^(?=- id: |end:)", file.read_text())
    file.write_text("".join(step for step in steps if "do: assign" not in step.partition("\n")[2][:20]))
    (problem,) = lumctl.data("runbook", "lint", "short.yaml", code=2)["problems"]
    assert "`end` states that pair1 runs rank 1 on r1h3-gpu0" in problem["message"]
    lumctl("runbook", "export", swap, "--out", "twice.yaml", "--force")
    file = lumctl.place / "twice.yaml"
    first = next(step for step in steps if step.startswith("- id: "))
    file.write_text(file.read_text().replace(first, first * 2))
    twice = lumctl("runbook", "replay", "twice.yaml", "--target", "sim", code=2)
    assert "two of its steps have the same id '1'" in twice.stderr


def test_a_drill_tells_whether_it_would_work_today_and_leaves_the_rack_alone(lumctl, swap):
    before = lumctl("swap", "list", "-o", "name").stdout
    drilled = lumctl.data("runbook", "replay", swap, "--drill")
    assert (drilled["on"], drilled["identical"]) == ("drill", True)
    lumctl("sim", "fault", "r1h3-gpu0", "gpu-lost")
    ill = lumctl.data("runbook", "replay", swap, "--drill", code=5)
    assert "r1h3-gpu0 is failed" in ill["first_difference"]["replayed"]
    lumctl("sim", "clear")
    assert lumctl("swap", "list", "-o", "name").stdout == before


def test_an_edited_runbook_is_compared_with_its_run(lumctl, swap):
    lumctl("runbook", "export", swap, "--out", "edited.yaml", "--force")
    same = lumctl.data("runbook", "diff", swap, "edited.yaml", "--exit-code")
    assert (same["same"], same["differences"]) == (True, [])
    file = lumctl.place / "edited.yaml"
    text = file.read_text()
    file.write_text(text.replace("healthy: [r1h3-gpu0]", "healthy: []"))
    different = lumctl.data("runbook", "diff", swap, "edited.yaml", "--exit-code", code=5)
    assert [each["part"] for each in different["differences"]] == ["steps"]
    file.write_text(text.replace("healthy: [r1h3-gpu0]", "healty: [r1h9-gpu0]"))
    problems = lumctl.data("runbook", "lint", "edited.yaml", code=2)["problems"]
    assert len(problems) == 2
    assert all(problem["line"] > 1 and problem["column"] for problem in problems)
    assert any("did you mean 'healthy'" in str(problem["hint"]) for problem in problems)


def test_what_touches_no_device_is_a_run_too_also_while_the_rack_is_being_changed(lumctl, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(lumctl.place / "state"))
    store = open_store(load_inventory(lumctl.inventory), "r1", "sim")
    lease = store.leases.acquire("r1", "a swap", term_s=60.0, now=time.time())
    said = lumctl.data("health", "maintain", "r1h1", "--comment", "a fan", "--for", "1h")
    ended = lumctl.data("health", "maintain", "r1h1", "--end")
    store.leases.release(lease)
    store.close()
    listed = lumctl("runbook", "list", "--kind", "maintain", "-o", "name").stdout.split()
    assert listed == [ended["run"], said["run"]]
    assert said["run"] not in lumctl("swap", "list", "-o", "name").stdout.split()
    assert lumctl.data("runbook", "replay", f"r1/{ended['run']}", "--target", "sim")["identical"] is True
    refused = lumctl("swap", "rollback", f"r1/{said['run']}", "--yes", code=5)
    assert "only recorded what an operator stated" in refused.stderr


def test_the_example_of_the_manual_works(lumctl, tmp_path):
    manual = (REPOSITORY / "man" / "lumctl-runbook.7").read_text().replace("\\-", "-")
    example = next(block for block in re.findall(r"\.RS\n(.*?)\.RE", manual, re.DOTALL) if "intents:" in block)
    file = tmp_path / "dead.yaml"
    file.write_text(example)
    given = ("--set", "failed=s1-gpu0", "--set", "host=s1", "-i", str(REPOSITORY / "inventories" / "prototype.yaml"))
    lumctl("runbook", "lint", str(file), *given)
    done = lumctl.data("runbook", "replay", str(file), "--target", "sim", *given)
    assert (done["outcome"], len(done["runs"])) == ("done", 2)
