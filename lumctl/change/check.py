"""The kind of step that finds how the rack is before anything moves."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from lumctl.change.concurrency import all_of
from lumctl.change.plan import Step
from lumctl.devices.errors import DeviceError
from lumctl.errors import RefusedError
from lumctl.health.evaluate import evaluate
from lumctl.health.states import State
from lumctl.inventory.wiring import Circuit
from lumctl.site import Site

if TYPE_CHECKING:
    from lumctl.change.steps import Bench

MOST_READS = 8
"""Reads side by side: beside the loop that reads its probes, a host may run nine commands over one connection."""

Evidence = Mapping[str, Any]


class Check:
    """Find how the rack is before anything moves: well spares, receivers that hear whom they should, transmitters."""

    def act(self, bench: "Bench", step: Step) -> Evidence:
        """Read hosts and light, all at once.

        Raises:
            RefusedError: an accelerator that has to be healthy is not.
        """
        circuits = [bench.before[name] for name in (*step.data["kept"], *step.data["replaced"])]
        carrying = {transmitter for circuit in circuits for _, transmitter in circuit.receivers}
        calls = [
            partial(self._hear, bench, circuits),  # the longest
            partial(require_healthy, bench.site, step.data["healthy"]),
            *(partial(self._look_at, bench, name) for name in bench.switched if name not in carrying),
        ]
        all_of(calls, most=MOST_READS)
        # Whom somebody hears, shines: only of the others has to be asked.
        bench.lit |= dict.fromkeys(carrying & set(bench.sound.values()) & set(bench.switched), True)
        unheard = [name for name in bench.switched if name in carrying and name not in bench.lit]
        all_of([partial(self._look_at, bench, name) for name in unheard], most=MOST_READS)
        lit = {receiver: power for receiver, power in bench.powers.items() if math.isfinite(power)}
        return {
            "sound": bench.sound,
            **({"powers": lit} if lit else {}),
            **({"transmitting": dict(sorted(bench.lit.items()))} if bench.lit else {}),
        }

    def undo(self, bench: "Bench", step: Step, evidence: Evidence | None) -> Evidence:  # noqa: ARG002 - as others
        """Nothing was done."""
        return {}

    @staticmethod
    def _hear(bench: "Bench", circuits: list[Circuit]) -> None:
        bench.sound = bench.light.sound(circuits)
        bench.powers = bench.light.powers(circuits)

    @staticmethod
    def _look_at(bench: "Bench", transponder: str) -> None:
        """Who cannot be asked now is heard of when it is switched."""
        with suppress(DeviceError):
            bench.lit[transponder] = bench.site.devices.transponder(transponder).transmitting()


def require_healthy(site: Site, accelerators: Sequence[str]) -> None:
    """Require of accelerators that a fresh reading says ok.

    Raises:
        RefusedError: one is not; it says why.
    """
    inventory = site.inventory
    if not accelerators:
        return
    snapshot = site.fleet.collect({inventory.accelerators[a].host for a in accelerators})
    now = site.now()
    events = site.recollection.events(snapshot, now)
    report = evaluate(inventory, snapshot, (), losses={}, devices={}, now=now, events=events)
    for accelerator in accelerators:
        health = report.accelerators[accelerator]
        if health.state is not State.OK:
            why = health.findings[0].evidence if health.findings else "there is no reading of it"
            raise RefusedError(f"{accelerator} is {health.state}, not ok: {why}")
