"""The light paths of a change of circuits: added, removed and kept circuits, the cells to write, and the loss."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lumctl.change.plan import PlannedChange, PlannedCircuit
from lumctl.context import Observation
from lumctl.errors import RefusedError
from lumctl.fabric import FabricStates, LightPath, Unroutable
from lumctl.fabric.paths import path_loss_db
from lumctl.inventory.model import Inventory
from lumctl.inventory.wiring import Circuit, CircuitEnd

States = Mapping[int, str]
"""The states of a device, by PUC or ingress port: see :mod:`lumctl.inventory.wiring`."""


def planned_circuits(
    inventory: Inventory, circuits: Iterable[Circuit], states: Mapping[str, States]
) -> tuple[PlannedCircuit, ...]:
    """Present circuits, with their paths if the states of the devices are known."""
    fabric = FabricStates(inventory, states)
    return tuple(with_budget(inventory, circuit, fabric.path_of(circuit)) for circuit in circuits)


def with_budget(inventory: Inventory, circuit: Circuit, path: LightPath | None) -> PlannedCircuit:
    """A circuit with its path, loss and expected power; the last two are ``None`` if it has no path."""
    loss = None if path is None else path_loss_db(inventory, path)
    lanes = inventory.transponders
    # The weaker transmitter and the less sensitive receiver: light must suffice in both directions.
    sent = min(lanes[transmitter].tx_power_dbm for _, transmitter in circuit.receivers)
    needed = max(lanes[end.transponder].rx_sensitivity_dbm for end in (circuit.a, circuit.b))
    return PlannedCircuit(
        id=circuit.id,
        owner=circuit.owner,
        direction=circuit.direction.value,
        ends=(_end(circuit.a), _end(circuit.b)),
        segments=path.segments if path else (),
        fibres=path.fibres if path else (),
        loss_db=None if loss is None else round(loss, 3),
        expected_rx_dbm=None if loss is None else round(sent - loss, 3),
        margin_db=None if loss is None else round(sent - loss - needed, 3),
    )


def _end(end: CircuitEnd) -> dict[str, str | int]:
    return {"lane": end.transponder, "device": end.device, "port": end.port}


class TooWeak(RefusedError):  # noqa: N818 - the word for such light
    """A planned circuit would bring a receiver less power than it needs."""

    def __init__(self, message: str, circuit: PlannedCircuit) -> None:
        super().__init__(message)
        self.circuit = circuit


def require_light(inventory: Inventory, circuits: Iterable[PlannedCircuit]) -> None:
    """Require that every circuit brings its receivers the power that they need.

    Raises:
        TooWeak: a circuit does not.
    """
    for circuit in circuits:
        needed = max(inventory.transponders[str(end["lane"])].rx_sensitivity_dbm for end in circuit.ends)
        if circuit.expected_rx_dbm is not None and circuit.expected_rx_dbm < needed:
            raise TooWeak(
                f"circuit {circuit.id} would arrive with {circuit.expected_rx_dbm:.1f} dBm over {len(circuit.pucs)} "
                f"PUCs, but its receiver needs {needed:.1f} dBm",
                circuit,
            )


@dataclass(frozen=True)
class RerouteBudget:
    """How far present circuits may be rerouted, and which PUCs and fibres new paths must not use.

    No path uses the PUCs to ``avoid`` (by device) or the ``avoid_fibres``. Circuits that are ``rerouted`` leave their
    paths; those of ``movable`` jobs do so if new circuits find no path next to them.
    """

    avoid: Mapping[str, frozenset[int]] = field(default_factory=dict)
    rerouted: frozenset[str] = frozenset()
    movable: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    """Further jobs. Up to ``most_others`` of their circuits, in total, may make room as well."""
    most_others: int = 0
    avoid_fibres: frozenset[str] = frozenset()

    @property
    def may_move(self) -> frozenset[str]:
        """The jobs whose circuits may make room."""
        return self.movable | (self.others if self.most_others else frozenset())

    def require_few(self, moved: Iterable[Circuit]) -> None:
        """Require that no more circuits of other jobs are moved than allowed.

        Raises:
            Unroutable: more of them are moved.
        """
        foreign = [circuit for circuit in moved if circuit.owner not in self.movable]
        if len(foreign) > self.most_others:
            names = ", ".join(circuit.id for circuit in foreign)
            raise Unroutable(
                tuple(circuit.ports for circuit in foreign),
                f"making room would move {len(foreign)} circuits of other jobs ({names}), but at most "
                f"{self.most_others} may be moved",
                proven=False,
            )


NO_REROUTES = RerouteBudget()


def reroute_budgets(first: RerouteBudget, own: Collection[str], seen: Observation) -> list[RerouteBudget]:
    """The budgets to try in order: no circuit makes room; circuits of the ``own`` jobs do; a few others do too."""
    wider = replace(first, movable=frozenset(own))
    if not first.most_others:
        return [first, wider]
    racks = {seen.inventory.jobs[job].rack for job in own}
    others = frozenset(job.name for job in seen.inventory.jobs.values() if job.rack in racks) - wider.movable
    return [replace(first, most_others=0), replace(wider, most_others=0), replace(wider, others=others)]


@dataclass(frozen=True)
class LightPaths:
    """The changes that turn one set of circuits into another. ``writes`` are the cells to program, by device.

    Circuits that are ``moved`` make room: they are both in ``remove`` and in ``add``, and keep their ends.
    """

    add: tuple[PlannedCircuit, ...] = ()
    remove: tuple[PlannedCircuit, ...] = ()
    keep: tuple[PlannedCircuit, ...] = ()
    writes: Mapping[str, tuple[PlannedChange, ...]] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()

    @property
    def total_pucs(self) -> int:
        """Cells that the new circuits run through."""
        return sum(len(circuit.pucs) for circuit in self.add)

    @property
    def changed_pucs(self) -> int:
        """Cells that are written."""
        return sum(len(cells) for cells in self.writes.values())

    @property
    def worst_loss_db(self) -> float:
        """The highest loss among the new circuits."""
        return max((circuit.loss_db or 0.0 for circuit in self.add), default=0.0)


def with_rewritten(paths: LightPaths, states: Mapping[str, States]) -> LightPaths:
    """The same light paths, with every cell of some devices written; unchanged cells get their present state again."""
    writes = dict(paths.writes)
    for device, held in states.items():
        changed = {cell.puc: cell for cell in writes.get(device, ())}
        writes[device] = tuple(
            changed.get(cell, PlannedChange(device, cell, state, state)) for cell, state in sorted(held.items())
        )
    return replace(paths, writes=writes)
