"""The daemon's autopilot: put together with what the daemon has, and counted for whoever watches it."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lumctl.daemon.autopilot.checking import require_sound
from lumctl.daemon.autopilot.pilot import Pilot
from lumctl.daemon.autopilot.telling import Tell, silent
from lumctl.daemon.troubles import Troubles
from lumctl.inventory.model import Inventory
from lumctl.site import Site
from lumctl.store import open_store


def pilot_of(
    inventory: Inventory, target: str, troubles: Troubles, say: Callable[[str], None], tell: Tell | None
) -> Pilot:
    """The autopilot of an inventory; it does nothing before it sees a look by an inventory with policies.

    Raises:
        InventoryError: a policy names a rule that there is not.
    """
    require_sound(inventory)

    def trouble(place: str, error: Exception | None) -> None:
        if error is None:
            troubles.passed(place)
        else:
            troubles.arose(place, error)

    return Pilot(
        lambda current: Site(current, target),
        lambda rack: open_store(inventory, rack, target),
        say,
        tell=tell or silent,
        trouble=trouble,
    )


class Piloting(Collector):
    """The autopilot's metrics; none where it has nothing to do."""

    def __init__(self, pilot: Pilot) -> None:
        self._pilot = pilot

    def describe(self) -> list[Metric]:
        """Nothing: they are made for each scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Everything, for one scrape."""
        states = self._pilot.states()
        if not states:
            return
        running = GaugeMetricFamily(
            "lumctl_autopilot_running", "Whether the autopilot of a rack may act.", labels=["rack"]
        )
        breakers = GaugeMetricFamily(
            "lumctl_autopilot_breaker_open", "Whether a policy's breaker is open.", labels=["rack", "policy"]
        )
        decisions = CounterMetricFamily(
            "lumctl_autopilot_decisions", "Decisions that were new, by what was decided.", labels=["rack", "act"]
        )
        attempts = CounterMetricFamily(
            "lumctl_autopilot_attempts", "Swaps that were tried, by how they ended.", labels=["rack", "outcome"]
        )
        for rack, state in states.items():
            running.add_metric([rack], float(state["running"]))
            for policy, is_open in state["breakers"].items():
                breakers.add_metric([rack, policy], float(is_open))
            for (what, word), count in state["counts"].items():
                (decisions if what == "decision" else attempts).add_metric([rack, word], count)
        yield from (running, breakers, decisions, attempts)
