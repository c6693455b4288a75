"""A rack of sixteen hosts with four accelerators each, whose components fail when a test says so."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lumctl.daemon.autopilot.decision import Decision, decide
from lumctl.daemon.autopilot.memory import DECISION, REMARK, AutopilotMemory, Event
from lumctl.daemon.autopilot.policy import BreakerState, next_breaker_state, onsets_of
from lumctl.daemon.autopilot.rehearsal import look_at
from lumctl.health.observation import Observation
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.inventory.policies import Breaker, How, Policy, Selector
from lumctl.inventory.wiring import initial_assignment

NOW = 1_800_000_000.0
RACK = "rack64"


class Remark:
    """As the journal holds it."""

    def __init__(self, at: float, kind: str, data: dict[str, Any]) -> None:
        self.at, self.kind, self.data = at, kind, data


class Scene:
    """A rack, a clock, a memory and policies: everything that a decision depends on."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self.now = NOW
        self.states: dict[tuple[str, str], Transition] = {}
        self.assignment = dict(initial_assignment(inventory))
        self.policies: list[Policy] = []
        self.memory = AutopilotMemory()
        self.onsets: dict[tuple[str, str], float] = {}

    def policy(self, how: How = How.APPLY, *, name: str = "p", match: dict[str, Any] | None = None, **fields: Any):
        matching = Selector(**{"rules": ("gpu.lost",), **(match or {})})
        made = Policy(name, how, matching, **{"stands_s": 30.0, "breaker": Breaker(), **fields})
        self.policies.append(made)
        return made

    def fail(
        self, component: str, rule: str = "gpu.lost", *, kind: str = "accelerator", evidence: str = "", **more: Any
    ):
        after = more.get("after", State.FAILED)
        row = Transition(self.now, component, kind, State.OK, after, (rule,), evidence or f"{rule} was seen")
        self.states[kind, component] = row

    def heal(self, component: str, kind: str = "accelerator") -> None:
        self.states.pop((kind, component))

    def remark(self, event: Event, **data: Any) -> None:
        self.memory.take([Remark(self.now, REMARK, {"event": event.value, **data})])

    def look(self) -> Observation:
        return look_at(self.inventory, "rack", self.states, self.assignment, self.now)

    def decide(self) -> dict[str, Decision]:
        """One look of the autopilot: breakers first, then decisions by what they are about."""
        look = self.look()
        keep_s = max((max(p.breaker.window_s, p.breaker.quiet_s) for p in self.policies), default=0.0) + 1
        self.onsets = onsets_of(look, RACK, self.onsets, keep_s=keep_s)
        for policy in self.policies:
            before = self.memory.breakers.get(policy.name, BreakerState())
            after = next_breaker_state(before, policy.breaker, look, RACK, self.onsets, self.now)
            if after != before:
                event = Event.BREAKER_CLOSED if after.open_since is None else Event.BREAKER_OPENED
                self.remark(event, policy=policy.name, why=after.why)
        found = decide(self.policies, look, RACK, self.memory, self.onsets, now=self.now)
        return {decision.fault.component: decision for decision in found}


@pytest.fixture(scope="session")
def rack64() -> Inventory:
    """Its jobs' light may move while they run."""
    found = load_inventory(example("rack64"))
    return replace(found, jobs={name: replace(job, needs_no_pause=True) for name, job in found.jobs.items()})


@pytest.fixture
def scene(rack64: Inventory) -> Scene:
    return Scene(rack64)


@pytest.fixture
def remark() -> Callable[..., Remark]:
    return Remark


__all__ = ["DECISION", "NOW", "RACK", "Remark", "Scene"]
