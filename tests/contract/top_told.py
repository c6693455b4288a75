"""What the dashboard's sources tell of runbooks and policies in these tests, by hand."""

from lumctl.inventory.policies import DAY_MINUTES, ApprovalTerms, Hours, How, Policy, PolicySubject, Selector

LOST, START = "r1-h2-g1", 1_795_000_000.0
"""As in the rack of the dashboard's tests."""
STEPS = (
    ("1", "check that r1-h4-g0 is healthy", 0.31),
    ("2", "program 14 cells of mesh1", 0.08),
    ("3", "show that each receiver hears its transmitter", 1.12),
)


def runbook(**changed):
    """A runbook as ``runbook_of`` gives it: the swap of the lost accelerator."""
    steps = [
        {"id": number, "do": "check", "title": title, "data": {}, "seconds": seconds, "outcome": {"done": True},
         "precondition": f"what step {number} needs", "verification": f"what step {number} proves",
         "undo": "the cells as they were" if number == "2" else ""}
        for number, title, seconds in STEPS
    ]  # fmt: skip
    circuit = {
        "id": "llm/4-5",
        "ends": [
            {"lane": "r1-h2-g0-l1", "device": "mesh1", "port": 9},
            {"lane": "r1-h4-g0-l0", "device": "mesh1", "port": 24},
        ],
        "segments": [{"device": "mesh1", "ports": [9, 24], "pucs": [1, 2, 3]}],
        "loss_db": 4.2,
    }
    recorded = {
        "at": "2026-11-18T06:40:00.000+00:00",
        "ended": "2026-11-18T06:40:01.510+00:00",
        "by": "ops@bastion",
        "rack": "r1",
        "target": "sim",
        "outcome": "done",
        "kind": "swap",
        "lumctl": "0.1.0",
        "undoes": None,
        "undone_by": None,
        "plan": "1" * 64,
        "inventory": {"path": "rack.yaml", "digest": "0" * 64},
    }
    return {
        "id": "swap-0007",
        "title": f"llm: replace {LOST} by r1-h4-g0",
        "recorded": recorded,
        "parameters": {"failed": {"what": "the accelerator to replace", "default": LOST}, "rack": {"what": "the rack"}},
        "replacements": [{"job": "llm", "rank": 5, "failed": LOST, "spare": "r1-h4-g0"}],
        "why": ["r1-h4-g0 has the shortest light paths"],
        "circuits": {"add": [circuit], "remove": [], "keep": [circuit] * 10},
        "steps": steps,
        "start": {"assignment": {"llm": [LOST]}},
        "end": {"assignment": {"llm": ["r1-h4-g0"]}},
        **changed,
    }


def autopilot(**changed):
    """The autopilot of that rack: one policy with an open breaker, a plan that waits, two decisions."""
    policy = {
        "policy": "replace", "how": "approve", "breaker": "open", "breaker_since": START - 90,
        "breaker_why": "3 of 16 accelerators failed within 300 s",
        "swaps_hour": 1, "most_hour": 1, "swaps_day": 1, "most_day": 3,
    }  # fmt: skip
    asked = {
        "plan": "plan-1a2b3c4d",
        "title": f"llm: replace {LOST} by r1-h4-g0",
        "policy": "replace",
        "made_by": "autopilot: policy replace on console",
        "asked_at": START - 60,
        "expires_at": START + 3540,
    }
    return {
        "rack": "r1",
        "state": "running",
        "why": None,
        "policies": [policy],
        "last_decided_at": START - 60,
        "waiting": [asked],
        "decisions": [
            decision(START - 95, act="nothing", because="has lasted 0.0 s, must last 30 s", conditions=[STANDS]),
            decision(START - 60, act="ask", because="gpu.lost: nvidia-smi does not list it", plan="plan-1a2b3c4d"),
        ],
        **changed,
    }


STANDS = {"name": "stands", "holds": False, "told": "has lasted 0.0 s, must last 30 s", "until": START - 65}
QUIET = {"name": "quiet", "holds": True, "told": "not on the list of components to leave alone", "until": None}
HOUR = {"name": "rack-hour", "holds": False, "told": "1 of 1 swaps in r1 within an hour", "until": START + 1800}


def decision(at, **changed):
    """One decision about the lost accelerator, as the journal keeps it."""
    finding = {"rule": "gpu.lost", "state": "failed", "since": START - 95, "evidence": "nvidia-smi does not list it"}
    values = {"at": at, "key": f"accelerator:{LOST}", "component": LOST, "policy": "replace", "how": "approve",
              "reason": "news", "finding": finding, "accelerators": [LOST], "conditions": [], "plan": None}  # fmt: skip
    return {**values, **changed}


def policy():
    """The policy as the inventory has it."""
    return Policy(
        "replace",
        How.APPROVE,
        Selector(("gpu.lost", "gpu.xid/restart-machine"), (PolicySubject.ACCELERATOR,), ("failed",)),
        quiet=("r1-h3-*",),
        hours=(Hours(frozenset(range(5)), 8 * 60, DAY_MINUTES - 60),),
        approval=ApprovalTerms(by_another=True, expires_s=3600.0),
    )
