"""What may be done with existing circuits so that new ones find a route."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.fabric import Unroutable
from lumctl.inventory.wiring import Circuit
from lumctl.site import Observation


@dataclass(frozen=True)
class RerouteBudget:
    """What may be done with circuits that stand, and what new ways must not use.

    No way is led through the PUCs to ``avoid`` (by device). Circuits that are ``rerouted`` leave their ways; those of
    ``movable`` jobs do so where new ones find no way beside them.
    """

    avoid: Mapping[str, frozenset[int]] = field(default_factory=dict)
    rerouted: frozenset[str] = frozenset()
    movable: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    """Further jobs of which ``most_others`` circuits, all in all, may make room as well."""
    most_others: int = 0

    @property
    def may_move(self) -> frozenset[str]:
        """The jobs whose circuits may make room."""
        return self.movable | (self.others if self.most_others else frozenset())

    def require_few(self, moved: Iterable[Circuit]) -> None:
        """Require that no more circuits of others are moved than may be.

        Raises:
            Unroutable: there are more.
        """
        foreign = [circuit for circuit in moved if circuit.owner not in self.movable]
        if len(foreign) > self.most_others:
            names = ", ".join(circuit.id for circuit in foreign)
            raise Unroutable(
                tuple(circuit.ports for circuit in foreign),
                f"room was found by moving {len(foreign)} circuits of other jobs ({names}), and at most "
                f"{self.most_others} may be moved",
                proven=False,
                hint=f"lumctl swap plan --may-move {len(foreign)}, if their jobs can do without light meanwhile",
            )


NO_REROUTES = RerouteBudget()


def reroute_budgets(first: RerouteBudget, own: Collection[str], seen: Observation) -> list[RerouteBudget]:
    """What is tried one after the other: nothing makes room, circuits of one's own jobs do, a few of others do too."""
    wider = replace(first, movable=frozenset(own))
    if not first.most_others:
        return [first, wider]
    racks = {seen.inventory.jobs[job].rack for job in own}
    others = frozenset(job.name for job in seen.inventory.jobs.values() if job.rack in racks) - wider.movable
    return [replace(first, most_others=0), replace(wider, most_others=0), replace(wider, others=others)]
