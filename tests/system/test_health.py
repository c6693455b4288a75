"""``lumctl health`` as a shell runs it on a simulator, process by process: what one says and sees, the next knows."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from forked_commands import run_lumctl

from lumctl.inventory.load import example

Lumctl = Callable[..., subprocess.CompletedProcess[str]]
GPU, SPARE = "s1-gpu0", "s3-gpu0"


@pytest.fixture(scope="module")
def lumctl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lumctl]:
    """Run lumctl on a simulator that is up; ``full_disk`` lets it write no file."""
    place = tmp_path_factory.mktemp("health")
    (place / "run").mkdir(mode=0o700)
    (place / "prototype.yaml").write_text(example("prototype").read_text())
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(place),
        "XDG_STATE_HOME": str(place / "state"),
        "XDG_RUNTIME_DIR": str(place / "run"),
        "LUMCTL_INVENTORY": str(place / "prototype.yaml"),
        "LUMCTL_TARGET": "sim",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*words: str, full_disk: bool = False) -> subprocess.CompletedProcess[str]:
        if not full_disk:
            return run_lumctl(*words, env=environment)
        return subprocess.run(
            ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", sys.executable, "-m", "lumctl", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    up = run("sim", "up", "--detach")
    assert up.returncode == 0, up.stderr
    yield run
    assert run("sim", "down").returncode == 0


@pytest.fixture(autouse=True)
def _well(lumctl: Lumctl) -> Iterator[None]:
    """Every test leaves a rack behind of which there is nothing to say."""
    yield
    lumctl("sim", "clear")
    for name in lumctl("health", "list", "-o", "name").stdout.split():
        lumctl("health", "ack", name, "--clear")
        lumctl("health", "maintain", name, "--end")
    # One GPU is lost in many tests; what a window covers is not remembered, or it would be degraded for a day.
    lumctl("health", "maintain", GPU, "--for", "1m", "--comment", "between two tests")
    lumctl("check")
    lumctl("health", "maintain", GPU, "--end")


def document(lumctl: Lumctl, *words: str) -> dict:
    done = lumctl(*words, "-o", "json")
    return json.loads(done.stdout)


def finding(lumctl: Lumctl, rule: str) -> dict:
    """What is found about the GPU by one rule."""
    (explained,) = document(lumctl, "health", "explain", GPU)["explanations"]
    return next(finding for finding in explained["findings"] if finding["rule"] == rule)


def test_what_is_acknowledged_rings_no_bell_until_it_has_cleared(lumctl: Lumctl) -> None:
    assert lumctl("check").returncode == 0
    lumctl("sim", "fault", GPU, "gpu-lost")
    assert lumctl("check").returncode == 2
    done = lumctl("health", "ack", GPU, "--comment", "part ordered", "--for", "2h")
    assert done.returncode == 0, done.stderr
    known = lumctl("check")
    assert known.returncode == 0
    assert re.search(r"LUMCTL OK - .*; \d acknowledged \|", known.stdout)
    assert lumctl("status").returncode == 4
    assert finding(lumctl, "gpu.lost")["acknowledged"].endswith(": part ordered")
    lumctl("sim", "clear")
    assert lumctl("check").returncode == 0
    assert lumctl("health", "list", "-o", "name").stdout == ""
    lumctl("sim", "fault", GPU, "gpu-lost")
    assert lumctl("check").returncode == 2


def test_what_is_acknowledged_does_not_hide_what_is_new(lumctl: Lumctl) -> None:
    lumctl("sim", "fault", GPU, "gpu-lost")
    lumctl("health", "ack", GPU, "--comment", "known")
    lumctl("sim", "fault", "s0-gpu0", "row-remap-failed")
    check = lumctl("check")
    assert check.returncode == 2
    assert "1 of 4 accelerators failed (s0-gpu0: " in check.stdout


def test_since_when_is_known_to_the_next_process_and_so_is_the_history(lumctl: Lumctl) -> None:
    lumctl("check")
    lumctl("sim", "fault", GPU, "row-remap-failed")
    lumctl("check")
    first = finding(lumctl, "gpu.row-remap")["since"]
    lumctl("check")
    assert finding(lumctl, "gpu.row-remap")["since"] == first
    lumctl("sim", "clear")
    lumctl("check")
    history = document(lumctl, "health", "explain", GPU)["history"]
    assert [(row["before"], row["after"]) for row in history[-2:]] == [("ok", "failed"), ("failed", "ok")]
    assert "gpu.row-remap" in history[-2]["rules"]


def test_since_when_a_host_is_lost_is_known_to_the_next_process(lumctl: Lumctl) -> None:
    """One reading is enough to remember it: a command waits until each host has answered or failed to."""
    lumctl("sim", "fault", "s2", "unreachable")
    assert "SINCE" not in lumctl("status").stdout, "it may have been lost for days"
    lumctl("check")

    def began() -> list[str]:
        return [each["since"] for each in document(lumctl, "status")["incidents"] if each["cause"] == "s2"]

    assert began() == began()
    lumctl("sim", "clear")
    lumctl("check")


def test_a_host_in_maintenance_may_go_and_counts_again_at_the_end(lumctl: Lumctl) -> None:
    opened = lumctl("health", "maintain", "s2", "--for", "30m", "--comment", "new fans")
    assert opened.returncode == 0, opened.stderr
    lumctl("sim", "fault", "s2", "unreachable")
    for _ in range(4):
        check = lumctl("check")
        assert check.returncode == 0, check.stdout
    assert "maintenance on s2" in check.stdout
    status = document(lumctl, "status")
    assert {a["state"] for a in status["accelerators"] if a["host"] == "s2"} == {"disabled"}
    assert [window["component"] for window in status["maintenance"]] == ["s2"]
    assert lumctl("health", "maintain", "s2", "--end").returncode == 0
    for _ in range(4):
        check = lumctl("check")
    assert check.returncode in {2, 3}
    assert re.match(r"LUMCTL \w+ - prototype: s2 \w+: ", check.stdout), check.stdout


def test_no_swap_takes_a_spare_in_maintenance(lumctl: Lumctl) -> None:
    lumctl("sim", "fault", GPU, "gpu-lost")
    lumctl("health", "maintain", "s3", "--for", "1h", "--comment", "new fans")
    refused = lumctl("swap", "plan", "finetune", "--failed", GPU)
    assert refused.returncode == 5
    assert f"{SPARE}: is in maintenance: s3 by " in refused.stderr
    lumctl("health", "maintain", "s3", "--end")
    assert lumctl("swap", "plan", "finetune", "--failed", GPU).returncode == 0


def test_a_swap_between_two_checks_is_no_fault_of_the_links_that_it_moves(lumctl: Lumctl) -> None:
    assert lumctl("check").returncode == 0
    lumctl("sim", "fault", GPU, "gpu-lost")
    plan = lumctl("swap", "plan", "finetune", "--failed", GPU, "-o", "name").stdout.strip()
    applied = lumctl("swap", "apply", plan, "--yes", "-o", "json")
    assert applied.returncode == 0, applied.stderr
    after = lumctl("check", "--least-spares", "0")
    assert (after.returncode, "finetune was not resumed after swap-0001" in after.stdout) == (1, True)
    lumctl("sim", "resume", "finetune")
    after = lumctl("check", "--least-spares", "0")
    assert after.returncode == 0, after.stdout
    after = lumctl("check")
    assert after.returncode == 1
    assert "WARNING - prototype: 0 of 1 spare of NVIDIA RTX 6000 Ada Generation are free" in after.stdout
    (low,) = document(lumctl, "check")["spares_low"]
    assert (low["free"], low["spares"]) == (0, 1)
    lumctl("sim", "clear")
    back = lumctl("swap", "rollback", json.loads(applied.stdout)["run"], "--yes")
    assert back.returncode == 0, back.stderr
    lumctl("sim", "resume", "finetune")
    after = lumctl("check")
    assert after.returncode == 0, after.stdout


def rules_of(lumctl: Lumctl, component: str) -> list[str]:
    return lumctl("health", "explain", component, "-o", "name").stdout.split()


def test_an_operator_ends_events_and_later_ones_count_again(lumctl: Lumctl) -> None:
    lumctl("sim", "fault", GPU, "gpu-lost")
    assert lumctl("check").returncode == 2
    done = lumctl("health", "clear", GPU, "--reason", "reseated, link retrained")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{GPU}: cleared gpu.xid: fell off the bus (XID 79)\n"
    # What nvidia-smi says is no event.
    assert rules_of(lumctl, GPU) == ["gpu.lost"]
    lumctl("check")
    assert rules_of(lumctl, GPU) == ["gpu.lost"]
    again = lumctl("health", "clear", GPU, "--reason", "reseated")
    assert (again.returncode, again.stdout) == (5, "")
    assert again.stderr.startswith(f"lumctl: {GPU} has no error events: there is nothing to clear\n  hint: ")
    lumctl("sim", "fault", GPU, "gpu-lost")
    assert set(rules_of(lumctl, GPU)) == {"gpu.xid", "gpu.lost"}
    lumctl("sim", "clear")
    assert lumctl("check").returncode == 0, "its host was booted"


def test_events_are_not_cleared_by_wrong_words(lumctl: Lumctl) -> None:
    lumctl("sim", "fault", GPU, "gpu-lost")
    for words, code, said in (
        ((GPU,), 2, "clearing events needs a reason"),
        ((GPU, "--reason", ""), 2, "clearing events needs a reason"),
        (("s1-gpu9", "--reason", "x"), 2, "did you mean s1-gpu0?"),
        ((GPU, "--rule", "gpu.xidd", "--reason", "x"), 2, "did you mean gpu.xid?"),
        ((GPU, "--rule", "gpu.lost", "--reason", "x"), 5, f"health clear {GPU} --reason TEXT"),
        (("s1", "--reason", "x"), 5, f"health clear {GPU} --reason TEXT"),
        (("mesh", "--reason", "x"), 5, "there is nothing to clear"),
    ):
        done = lumctl("health", "clear", *words)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        assert said in done.stderr
    assert "gpu.xid" in rules_of(lumctl, GPU)


def test_a_new_rule_is_not_covered_by_an_earlier_acknowledgement(lumctl: Lumctl) -> None:
    lumctl("sim", "fault", GPU, "overheat")
    assert lumctl("health", "ack", GPU, "--comment", "fan ordered").returncode == 0
    assert lumctl("check").returncode == 0
    listed = document(lumctl, "health", "list")["acknowledgements"]
    assert [(entry["rule"], entry["state"]) for entry in listed[0]["covers"]] == [("gpu.temperature", "degraded")]
    assert "gpu.temperature (degraded)" in lumctl("health", "list").stdout
    lumctl("sim", "fault", GPU, "row-remap-failed")
    assert lumctl("check").returncode == 2


def test_a_full_disk_blinds_nobody(lumctl: Lumctl) -> None:
    lumctl("check")
    lumctl("sim", "fault", GPU, "row-remap-failed")
    before = lumctl("health", "list", "-o", "json").stdout
    status = lumctl("status", "-o", "json", full_disk=True)
    assert status.returncode == 4, status.stderr
    states = {a["id"]: a["state"] for a in json.loads(status.stdout)["accelerators"]}
    assert states[GPU] == "failed"
    check = lumctl("check", full_disk=True)
    assert check.returncode == 2
    assert "; not remembered: the store cannot be written: " in check.stdout
    assert lumctl("health", "explain", GPU, full_disk=True).returncode == 0
    refused = lumctl("health", "ack", GPU, "--comment", "known", full_disk=True)
    assert refused.returncode == 5
    assert re.match(
        r"lumctl: the store cannot be written: .*\n  hint: it is at /\S*db: check its permissions", refused.stderr
    )
    assert lumctl("health", "list", "-o", "json").stdout == before
