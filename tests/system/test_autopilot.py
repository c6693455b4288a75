"""The daemon with policies, as a process of its own on a simulated rack: what it does unasked, and what it leaves."""

import json
import os
import re

import pytest
from waiting import until
from watched import racks

QUICK = "stands_s: 1, cool_down_s: 0, limits: {rack_hour: 9, rack_day: 9}"


@pytest.fixture
def rack_with():
    yield from racks()


@pytest.mark.timeout(180)
def test_a_plan_waits_for_approval_and_is_applied_after_it(rack_with):
    rack = rack_with(
        f"  - {{name: ask, how: approve, rules: [gpu.lost], {QUICK}, escalate: {{after_s: 0, hook: pager}}}}\n"
        "receivers:\n  - {name: pager, command: [/bin/sh, -c, cat > ~/paged]}\n"
    )
    os.mkfifo(rack.paged)
    rack.watch()
    rack("sim", "fault", "s1-gpu0", "gpu-lost")
    plan = next(word for word in rack.hear("lumctl swap approve plan-").split() if word.startswith("plan-"))
    assert rack.swaps() == []
    (waiting,) = rack.data("autopilot", "status")["racks"][0]["waiting"]
    assert (waiting["plan"], waiting["title"]) == (plan, "finetune: replace s1-gpu0 by s3-gpu0")
    assert json.loads(rack.paged.read_text())["autopilot"]["plan"] == plan
    rack("swap", "apply", plan, "--yes", code=5)  # nor by hand, before somebody has said yes
    approved = rack.data("swap", "approve", plan, "--comment", "continue")
    assert (approved["state"], approved["policy"]) == ("approved", "ask")
    rack.hear(f"prototype: {plan} (", "): done")
    assert [swap["outcome"] for swap in rack.swaps()] == ["done"]
    rack("swap", "approve", plan, code=5)  # it is spent


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
    rack.hear("s1-gpu0: nothing (dead): stopped by ")  # and no longer for want of time as well
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


@pytest.mark.timeout(180)
def test_a_swap_that_its_guard_rolled_back_is_told_with_why_nothing_was_tried_since(rack_with):
    policy = f"  - {{name: dead, how: apply, rules: [gpu.xid], {QUICK}}}\n"
    rack = rack_with(policy, delay_ms=1500)  # long enough for the daemon to die in the midst of its swap
    rack.watch()
    rack("sim", "fault", "s1-gpu0", "gpu-lost")
    rack.hear("autopilot: 1. ")
    rack.daemon.kill()
    rack.end_daemon()
    told = until(lambda: "rolled back" in (said := rack("autopilot", "status")) and said)
    assert re.search(
        r"^s1-gpu0: plan-\w+ \(swap-\d+\) of .* was rolled back by its revert guard: its engine died\n"
        r"  nothing has been tried since: no daemon has checked it since; start one: lumctl watch\n",
        told,
        re.MULTILINE,
    ), told
    rack.watch()  # as the hint says
    rack.hear("autopilot: s1-gpu0: nothing (dead): ", "1 of 1 swaps of it within a week")
    (attempt,) = rack.data("autopilot", "status")["racks"][0]["failed_attempts"]
    assert (attempt["outcome"], attempt["by_guard"], attempt["accelerators"]) == ("rolled-back", True, ["s1-gpu0"])
    assert attempt["not_tried_since"] == "1 of 1 swaps of it within a week"


@pytest.mark.timeout(180)
def test_what_no_spare_can_serve_waits_in_the_queue_and_is_served_when_a_spare_returns(rack_with):
    more = f"{QUICK}, oldest_s: 2, breaker: {{share: 1}}"
    rack = rack_with(f"  - {{name: dead, how: apply, rules: [gpu.lost], {more}}}\n", "ring8")
    rack.watch()
    for run, lost in (("swap-0001", "h1-gpu0"), ("swap-0002", "h2-gpu0")):
        rack("sim", "fault", lost, "gpu-lost")
        rack.hear(f"({run}): done")
    rack("sim", "fault", "h3-gpu0", "gpu-lost")
    rack.hear("no plan for h3-gpu0", "demand-0001 in the queue: lumctl spare queue")
    (demand,) = rack.data("spare", "queue")["demands"]
    assert (demand["accelerators"], demand["state"], demand["given"]) == (["h3-gpu0"], "waiting", [])
    rack("sim", "clear", "h1-gpu0")
    rack("swap", "apply", rack.data("swap", "plan", "train", "--back")["id"], "--yes")
    rack.hear("can replace h3-gpu0 of train, which demand-0001 waits for: lumctl swap plan train --failed h3-gpu0")
    # The fault is older than the policy allows, but it waits in the queue.
    until(lambda: "h3-gpu0" not in rack.places("train"))
    (ended,) = rack.data("spare", "queue", "--all")["demands"]
    assert (ended["state"], ended["run"]) == ("served", rack.swaps()[0]["run"])
    rack("runbook", "verify")


@pytest.mark.timeout(180)
def test_a_demand_whose_accelerator_works_again_ends(rack_with):
    rack = rack_with("  - {name: none, how: notify, rules: [gpu.lost]}\n", "ring8")
    rack.watch()
    for lost in ("h1-gpu0", "h5-gpu0", "h5-gpu1"):
        rack("sim", "fault", lost, "gpu-lost")
    refused = rack.said("swap", "plan", "--failed", "h1-gpu0", code=5).stderr
    assert "to wait for a spare: lumctl swap plan --failed h1-gpu0 --queue" in " ".join(refused.split())
    assert (
        rack("swap", "plan", "--failed", "h1-gpu0", "--queue") == "train waits for a spare for h1-gpu0 (demand-0001)\n"
    )
    rack("swap", "plan", "--failed", "h1-gpu0", "--queue", "--dry-run", code=2)
    rack("sim", "clear", "h1-gpu0")
    rack.hear("queue: demand-0001 of train ends: h1-gpu0 is ok again")
    (ended,) = rack.data("spare", "queue", "--all")["demands"]
    assert (ended["state"], ended["why"]) == ("needless", "h1-gpu0 is ok again")
