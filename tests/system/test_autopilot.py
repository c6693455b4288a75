"""The daemon with policies, as a process of its own on a simulated rack: what it does unasked, and what it leaves."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lumctl.inventory.examples import example

PATIENCE_S = 40.0
"""For a loaded machine."""
QUICK = "stands_s: 1, cool_down_s: 0, limits: {rack_hour: 9, rack_day: 9}"


class Rack:
    """A simulated rack of an inventory with policies, its daemon and its commands."""

    def __init__(self, place: Path, policies: str) -> None:
        (place / "run").mkdir(mode=0o700)
        inventory = place / "rack.yaml"
        inventory.write_text(f"{example('prototype').read_text()}\npolicies:\n{policies}")
        self.inventory = inventory
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_RUNTIME_DIR": str(place / "run"),
            "LUMCTL_INVENTORY": str(inventory),
            "LUMCTL_TARGET": "sim",
            "LANG": "C.UTF-8",
        }
        self.lines: list[str] = []
        self._daemon: subprocess.Popen[str] | None = None
        self._news = threading.Condition()
        self("sim", "up", "--detach")

    def __call__(self, *words: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "lumctl", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def data(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def watch(self) -> None:
        self._daemon = subprocess.Popen(
            [sys.executable, "-m", "lumctl", "watch", "--interval", "0.2", "--listen", "none"],
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.hear("watching ")

    def _read(self) -> None:
        assert self._daemon is not None
        for line in self._daemon.stderr:
            with self._news:
                self.lines.append(line.rstrip())
                self._news.notify()

    def hear(self, *words: str) -> str:
        def heard() -> str | None:
            return next((line for line in self.lines if all(word in line for word in words)), None)

        with self._news:
            found = self._news.wait_for(heard, PATIENCE_S)
        assert found, f"{words} in {self.lines}"
        return found

    def swaps(self) -> list[dict[str, Any]]:
        return [run for run in self.data("swap", "list")["runs"] if run["kind"] == "swap"]

    def places(self) -> list[str]:
        return [rank["accelerator"] for rank in self.data("job", "show", "finetune")["ranks"]]

    def decisions(self) -> list[dict[str, Any]]:
        """What the journal says was decided by a policy, oldest first."""
        return list(self.data("autopilot", "status")["racks"][0]["decisions"])

    def end(self) -> None:
        if self._daemon is not None:
            if self._daemon.poll() is None:
                self._daemon.send_signal(signal.SIGTERM)
            self._daemon.wait(PATIENCE_S)
            self._reader.join()
            self._daemon.stderr.close()
        self("sim", "down")


@pytest.fixture
def rack_with() -> Iterator[Callable[[str], Rack]]:
    made: list[Rack] = []
    # Not pytest's own folder: the path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))

    def make(policies: str) -> Rack:
        made.append(Rack(folder, policies))
        return made[-1]

    yield make
    for rack in made:
        rack.end()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(180)
def test_a_plan_waits_for_approval_and_is_applied_after_it(rack_with):
    rack = rack_with(f"  - {{name: ask, how: approve, rules: [gpu.lost], {QUICK}}}\n")
    rack.watch()
    rack("sim", "fault", "s1-gpu0", "gpu-lost")
    plan = rack.hear("lumctl swap approve plan-").rpartition(" ")[2]
    assert rack.swaps() == []
    (waiting,) = rack.data("autopilot", "status")["racks"][0]["waiting"]
    assert waiting["plan"] == plan
    rack("swap", "apply", plan, "--yes", code=5)  # nor by hand, before somebody has said yes
    approved = rack.data("swap", "approve", plan, "--comment", "go on")
    assert (approved["state"], approved["policy"]) == ("approved", "ask")
    rack.hear(f"prototype: {plan} (", "): done")
    assert [swap["outcome"] for swap in rack.swaps()] == ["done"]
    rack("swap", "approve", plan, code=5)  # it is spent


@pytest.mark.timeout(180)
def test_a_storm_causes_no_swap_and_taking_back_goes_on(rack_with):
    rack = rack_with(
        "  - {name: dead, how: apply, rules: [gpu.lost], stands_s: 8, cool_down_s: 0, oldest_s: 86400,"
        " limits: {rack_hour: 9, rack_day: 9}, breaker: {window_s: 8, quiet_s: 4}}\n"
    )
    by_hand = rack.data("swap", "plan", "finetune", "--failed", "s1-gpu0", "--even-if-healthy")["id"]
    run = rack.data("swap", "apply", by_hand, "--yes")["run"]
    rack.watch()
    faults = [Thread(target=rack, args=("sim", "fault", f"s{n}-gpu0", "gpu-lost")) for n in (0, 2, 3)]
    for fault in faults:
        fault.start()
    for fault in faults:
        fault.join()
    why = rack.hear("autopilot: prototype: the breaker of policy dead opened: ")
    assert "accelerators of prototype began to fail within 8 s" in why
    assert rack.data("swap", "rollback", run, "--yes")["outcome"] == "done"
    assert rack.places() == ["s0-gpu0", "s1-gpu0", "s2-gpu0"]
    rack.hear("the breaker of policy dead closed: ")
    rack("sim", "clear", "s3-gpu0")  # now there would be a spare
    rack.hear("s0-gpu0: nothing (dead): it began before the breaker closed")
    assert [swap["by"].startswith("autopilot") for swap in rack.swaps()] == [False]


@pytest.mark.timeout(180)
def test_a_dead_gpu_is_replaced_unasked_but_not_while_it_is_stopped(rack_with):
    rack = rack_with(f"  - {{name: dead, how: apply, rules: [gpu.lost], {QUICK}}}\n")
    rack.watch()
    sound = rack.inventory.read_text()
    rack.inventory.write_text("racks: [")  # stop works whatever else does not
    told = rack.data("autopilot", "stop", "--comment", "smoke")
    assert {way["way"].partition(" ")[0] for way in told["ways"] if way["worked"]} == {"file", "daemon"}
    rack.inventory.write_text(sound)
    rack("sim", "fault", "s1-gpu0", "gpu-lost")
    rack.hear("s1-gpu0: nothing (dead)", "stopped by ")
    rack("autopilot", "start", code=2)  # there is nobody to say yes
    rack("autopilot", "start", "--yes", "--comment", "no smoke")
    rack.hear("autopilot: prototype: plan-", "): done: runbook: ")
    (swap,) = rack.swaps()
    assert (swap["outcome"], swap["title"]) == ("done", "finetune: replace s1-gpu0 by s3-gpu0")
    assert swap["by"].startswith("autopilot: policy dead on ")
    assert rack.places() == ["s0-gpu0", "s3-gpu0", "s2-gpu0"]
    acts = [(d["component"], d["act"], d["reason"]) for d in rack.decisions()]
    assert acts.index(("s1-gpu0", "nothing", "switch")) < acts.index(("s1-gpu0", "apply", "allowed"))
    assert any(name.startswith("policy-") for name in rack("runbook", "list", "-o", "name").split())
    rack("runbook", "verify")
