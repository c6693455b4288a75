"""The power of ten hosts fails, before the eyes of a daemon that may swap: it swaps nothing, and people still can."""

import time
from contextlib import closing

import pytest
from waiting import until
from watched import racks

from lumctl.devices.endpoints import sim_runtime_folder
from lumctl.health.states import State
from lumctl.inventory.load import load_inventory
from lumctl.sim.client import ask
from lumctl.sim.runtime import CONTROL_SOCKET
from lumctl.store import open_store

DARK = [f"h{host:02}" for host in range(1, 11)]
GPUS = [f"{host}-gpu{gpu}" for host in DARK for gpu in range(4)]
STALE = "h10-gpu0"
QUIET_S = 25.0
"""Longer than people here take to take back and continue, on a loaded machine."""
POLICY = (
    "  - {name: dead, how: apply, rules: [gpu.lost, gpu.xid, host.unreachable], kinds: [accelerator, host],"
    " stands_s: 1.5, oldest_s: 86400, cool_down_s: 0, limits: {accelerator_week: 99, rack_hour: 99, rack_day: 99},"
    f" breaker: {{window_s: {QUIET_S:g}, quiet_s: {QUIET_S:g}}}}}\n"
    "thresholds: {light_deadline_s: 2}\n"
)


@pytest.fixture
def rack(monkeypatch):
    for make in racks():
        made = make(POLICY, "rack64")
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
            monkeypatch.setenv(name, made.environment[name])
        yield made


def failures(store, since):
    return [row for row in store.health.transitions(since=since) if row.after is State.FAILED]


@pytest.mark.timeout(180)
def test_a_power_failure_causes_no_swap_and_people_take_back_and_go_on(rack):
    control = sim_runtime_folder(rack.inventory) / CONTROL_SOCKET

    plan = rack.data("swap", "plan", "train-b", "--failed", "h14-gpu1", "--even-if-healthy")["id"]
    ask(control, "fault", component="rail1", kind="device-half", value=None)
    rack("swap", "apply", plan, "--yes", code=7)
    ask(control, "clear", component="rail1")
    (half_done,) = (run["run"] for run in rack.swaps())
    rack.watch()

    # An accelerator falls off its bus with the supply, a moment before its host falls silent.
    failed_at = time.time()
    for name in GPUS:
        ask(control, "fault", component=name, kind="gpu-lost", value=None)
    assert f"of rack64 failed within {QUIET_S:g} s (" in rack.hear(
        "autopilot: rack64: the circuit breaker of policy dead opened: "
    )
    for name in DARK[:-1]:
        ask(control, "fault", component=name, kind="unreachable", value=None)
    assert rack.data("swap", "resume", half_done, "--yes")["outcome"] == "done"
    ask(control, "fault", component=DARK[-1], kind="unreachable", value=None)
    assert rack.data("swap", "rollback", half_done, "--yes")["outcome"] == "done"
    assert not any("closed" in line for line in rack.lines)
    with closing(open_store(load_inventory(rack.inventory), "rack64", "sim")) as store:
        until(lambda: set(DARK) <= {row.component for row in failures(store, failed_at)})
        assert len({row.component for row in failures(store, failed_at)} & set(GPUS)) >= 3

    # The power is back, and one accelerator is not.
    for name in (*DARK, *(gpu for gpu in GPUS if gpu != STALE)):
        ask(control, "clear", component=name)
    rack.hear(f"the circuit breaker of policy dead closed: nothing more has failed for {QUIET_S:g} s")
    (stale,) = (d for d in rack.data("policy", "explain", STALE)["decisions"] if d["kind"] == "accelerator")
    assert (stale["act"], stale["policy"]) == ("nothing", "dead")
    assert "the fault began before the circuit breaker closed, and is left to operators" in stale["because"]

    ask(control, "fault", component="h12-gpu2", kind="gpu-lost", value=None)
    rack.hear("autopilot: rack64: plan-", "): done")
    (swap,) = (swap for swap in rack.swaps() if swap["by"].startswith("autopilot"))
    assert (swap["outcome"], swap["title"]) == ("done", "train-b: replace h12-gpu2 by h16-gpu2")
    assert not any("unexpected" in line for line in rack.lines)
