"""How the autopilot of a rack stands, as data: the switch, breakers, limits, what waits, and what it decided last."""

from typing import Any

from lumctl.autopilot import switch
from lumctl.autopilot.memory import DAY_S, DECISION, HOUR_S, REMARK, WEEK_S
from lumctl.autopilot.notebook import WHO, Notebook
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import How
from lumctl.store import ASKED, Store

MOST_DECISIONS = 10
ACTS = {True: "running", False: "ready"}
"""What nothing stops, by whether a daemon answers."""


def rack_status(inventory: Inventory, rack: str, store: Store, *, now: float, watched: bool = False) -> dict[str, Any]:
    """The state of one rack's autopilot: ``off`` (no policies), ``stopped``, ``halted``, ``running`` or ``ready``.

    ``watched``: a daemon answers. Where nothing stops the autopilot and none is known to run, it is ``ready``: a daemon
    on another machine would act.

    Raises:
        StoreError: the store cannot be read.
    """
    memory = Notebook(store).recall(inventory.policies, now)
    stopped = switch.thrown(switch.places([rack], [store.files])) or memory.stopped
    state = "off" if not inventory.policies else "stopped" if stopped else "halted" if memory.halted else ACTS[watched]
    policies = []
    for policy in inventory.policies:
        breaker = memory.breakers.get(policy.name)
        is_open = breaker is not None and breaker.open_since is not None
        policies.append(
            {
                "policy": policy.name,
                "how": policy.how.value,
                "breaker": None if policy.how is How.NOTIFY else "open" if is_open else "closed",
                "breaker_since": breaker.open_since if breaker and is_open else None,
                "breaker_why": breaker.why if breaker and is_open else None,
                "swaps_hour": len(memory.tried(since=now - HOUR_S)),
                "most_hour": policy.limits.rack_hour,
                "swaps_day": len(memory.tried(since=now - DAY_S)),
                "most_day": policy.limits.rack_day,
            }
        )
    waiting = [
        {
            "plan": a.plan,
            "title": (store.plan(a.plan) or {}).get("title", ""),
            "policy": a.policy,
            "made_by": a.made_by,
            "asked_at": a.asked_at,
            "expires_at": a.expires_at,
        }
        for a in store.approvals()
        if a.state == ASKED and a.expires_at > now
    ]
    remarks = store.remarks(since=now - WEEK_S)
    own = [r.at for r in remarks if r.kind in {DECISION, REMARK} and str(r.data.get("who", "")).startswith(WHO)]
    decided = [
        {"at": remark.at, **told}
        for remark in remarks
        if remark.kind == DECISION
        for told in remark.data.get("decisions", ())
        if told.get("policy") is not None
    ]
    return {
        "rack": rack,
        "state": state,
        "why": stopped or memory.halted,
        "policies": policies,
        "last_decided_at": max(own, default=None),
        "waiting": waiting,
        "decisions": decided[-MOST_DECISIONS:],
    }
