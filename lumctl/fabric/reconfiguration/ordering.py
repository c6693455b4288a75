"""From one configuration of a mesh to another: what is written when, who goes dark for it, and what power it takes.

PUCs that no circuit of the new configuration uses are left as they are. What carries nothing live is written first, all
at once; then the circuits that stand on both sides by different ways are switched over, one batch after the other. In a
batch only the circuits it names go dark, for as long as its PUCs take to settle.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lumctl.devices.types import PucChange, PucState
from lumctl.errors import LumctlError, UsageError
from lumctl.fabric.errors import InconsistentFabricError, named
from lumctl.fabric.geometry import Mesh, PortPair
from lumctl.fabric.reconfiguration.groups import in_turn
from lumctl.fabric.routing import Route
from lumctl.fabric.tracing import Pass, trace

_NO_STUCK: Mapping[int, PucState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Heater:
    """What the phase shifters of a PUC draw: a planning value, as vendors state none for single PUCs.

    ``bar_pi`` and ``cross_pi`` are the phase difference of each state in units of pi. In a coupler between two 50:50
    splitters equal phases cross the light and a difference of pi keeps it in bar, so that is the default: bar draws,
    cross does not. A device that is made or biased the other way has them exchanged.
    """

    mw_per_pi: float = 90.0
    bar_pi: float = 1.0
    cross_pi: float = 0.0

    def draw_mw(self, state: PucState) -> float:
        """What one PUC draws in a state, in mW."""
        return self.mw_per_pi * (self.bar_pi if state is PucState.BAR else self.cross_pi)

    def total_mw(self, mesh: Mesh, states: Mapping[int, PucState]) -> float:
        """What all PUCs of a mesh draw, in mW."""
        return sum(self.draw_mw(states.get(puc, PucState.BAR)) for puc in range(mesh.puc_count))


_HEATER = Heater()


@dataclass(frozen=True, slots=True)
class Batch:
    """PUCs that are written at once. ``circuits`` are the live ones that go dark until they have settled."""

    circuits: tuple[PortPair, ...]
    changes: tuple[PucChange, ...]


@dataclass(frozen=True, slots=True)
class Reconfiguration:
    """How a mesh gets from one configuration to another. Powers are the drive power of the whole mesh in mW.

    ``peak_mw`` is reached if in some batch all PUCs that are switched on draw already while those that are switched off
    still do. ``together`` are the circuits that cannot be switched one after the other, as each stands in the new way
    of the next: a batch switches all of them.
    """

    batches: tuple[Batch, ...]
    together: tuple[tuple[PortPair, ...], ...]
    before_mw: float
    after_mw: float
    peak_mw: float
    settle_ms: float

    @property
    def changes(self) -> tuple[PucChange, ...]:
        """All PUCs that change, by number."""
        return tuple(sorted((c for batch in self.batches for c in batch.changes), key=lambda change: change.puc))


def reconfigure(
    mesh: Mesh,
    states: Mapping[int, PucState],
    routes: Sequence[Route],
    *,
    live: Collection[PortPair] = (),
    stuck: Mapping[int, PucState] = _NO_STUCK,
    heater: Heater = _HEATER,
    settle_ms: float = 0.0,
) -> Reconfiguration:
    """The way from what stands to ``routes``, the circuits of the new configuration.

    ``live`` are the circuits that carry traffic now. Those that the new configuration has too keep their light but for
    their own switch-over, by whichever end they are written; the others are given up from the start. ``settle_ms`` is
    how long a PUC takes to settle.

    Raises:
        UsageError: routes want a PUC in both states, or a stuck one in its other state.
        InconsistentFabricError: a live circuit is not what the states make.
    """
    standing = {**states, **stuck}
    wanted = _wanted(routes, stuck)
    new = {frozenset(planned.ports): planned for planned in routes}
    stood = _stood(mesh, standing, live)
    staying = {pair: passes for pair, passes in stood.items() if frozenset(pair) in new}
    going = {puc: state for puc, state in sorted(wanted.items()) if standing.get(puc, PucState.BAR) is not state}
    moved = [pair for pair, passes in staying.items() if set(passes) != set(new[frozenset(pair)].passes)]
    standing_in = {puc: [pair for pair in moved if any(p == puc for p, _ in staying[pair])] for puc in going}
    groups = in_turn(
        moved,
        {
            pair: {other for puc in new[frozenset(pair)].pucs for other in standing_in.get(puc, ()) if other != pair}
            for pair in moved
        },
    )
    turn = {pair: at for at, group in enumerate(groups, start=1) for pair in group}
    written: list[list[PucChange]] = [[] for _ in range(len(groups) + 1)]
    for puc, state in going.items():
        at = max((turn[pair] for pair in standing_in[puc]), default=0)
        written[at].append(PucChange(puc, standing.get(puc, PucState.BAR), state))
    batches = tuple(
        Batch(group, tuple(changes)) for group, changes in zip(((), *groups), written, strict=True) if changes
    )
    _prove(mesh, standing, batches, staying, routes)
    before_mw, powers = heater.total_mw(mesh, standing), _powers(mesh, standing, batches, heater)
    return Reconfiguration(
        batches=batches,
        together=tuple(group for group in groups if len(group) > 1),
        before_mw=before_mw,
        after_mw=heater.total_mw(mesh, {**standing, **going}),
        peak_mw=max((before_mw, *powers)),
        settle_ms=settle_ms * len(batches),
    )


def _wanted(routes: Iterable[Route], stuck: Mapping[int, PucState]) -> dict[int, PucState]:
    wanted = dict(stuck)
    for planned in routes:
        for puc, state in planned.passes:
            if wanted.setdefault(puc, state) is not state:
                why = "it is stuck in the other" if puc in stuck else "another route wants it in the other"
                raise UsageError(f"{named([planned.ports])} wants PUC {puc} in {state.word}: {why}")
    return wanted


def _stood(mesh: Mesh, states: Mapping[int, PucState], live: Iterable[PortPair]) -> dict[PortPair, tuple[Pass, ...]]:
    stood = {}
    for port, expected in live:
        found = trace(mesh, states, port)
        if found.exit != expected:
            raise InconsistentFabricError(
                f"circuit {port}:{expected} is said to be live, but light from port {port} leaves at {found.exit}",
                hint="read or re-assert the mesh's states first",
            )
        stood[port, expected] = found.passes
    return stood


def _powers(mesh: Mesh, states: Mapping[int, PucState], batches: Iterable[Batch], heater: Heater) -> Iterable[float]:
    """The most that is drawn while each batch settles: what goes up is up, and what goes down is not down yet."""
    now = dict(states)
    for batch in batches:
        drawn = heater.total_mw(mesh, now)
        for change in batch.changes:
            before = now.get(change.puc, PucState.BAR)
            drawn += max(0.0, heater.draw_mw(change.after) - heater.draw_mw(before))
            now[change.puc] = change.after
        yield drawn


def _prove(
    mesh: Mesh,
    states: Mapping[int, PucState],
    batches: Iterable[Batch],
    staying: Mapping[PortPair, tuple[Pass, ...]],
    routes: Iterable[Route],
) -> None:
    """Trace after every batch: who was not in it stands as before, who was in it stands where it should."""
    now, held = dict(states), dict(staying)
    target = {ports: planned.passes for planned in routes for ports in (planned.ports, planned.ports[::-1])}
    target |= {planned.ports[::-1]: planned.passes[::-1] for planned in routes}
    for batch in batches:
        now.update((change.puc, change.after) for change in batch.changes)
        held |= {pair: target[pair] for pair in batch.circuits}
        _require(mesh, now, held)
    _require(mesh, now, {planned.ports: planned.passes for planned in routes})


def _require(mesh: Mesh, states: Mapping[int, PucState], held: Mapping[PortPair, tuple[Pass, ...]]) -> None:
    for (port, end), passes in held.items():
        found = trace(mesh, states, port)
        if (found.exit, found.passes) != (end, passes):
            raise LumctlError(f"circuit {port}:{end} does not trace", hint="a defect: please report it")
