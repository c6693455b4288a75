"""Whether a spare can be used now, and how many spares of each rack and class any job can take."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lumctl.health.observation import Observation
from lumctl.health.replaced_faults import lanes_to_light
from lumctl.health.states import ComponentHealth, State, state_of
from lumctl.inventory.model import Accelerator, Role, classes_of
from lumctl.inventory.sharing import LEAST_SPARES, Preemption
from lumctl.printable import counted


@dataclass(frozen=True, slots=True)
class SparesOfPool:
    """The spares of one class in one rack by the inventory, and those of them that any job can take now.

    ``unread`` run no rank, and nothing is known of their state.
    """

    spares: tuple[str, ...]
    free: tuple[str, ...]
    unread: tuple[str, ...] = ()

    def is_low(self, least: int = LEAST_SPARES) -> bool:
        """Whether certainly fewer than ``least`` spares are left; all of them are never too few."""
        return len(self.free) + len(self.unread) < min(least, len(self.spares))

    def words(self, accelerator_class: str) -> str:
        """How many are free, in words: ``1 of 3 spares of H100 is free``."""
        are = "is" if len(self.free) == 1 else "are"
        return f"{len(self.free)} of {counted(len(self.spares), 'spares')} of {accelerator_class} {are} free"


def spares_by_pool(seen: Observation) -> dict[tuple[str, str], SparesOfPool]:
    """The spares of each rack and class that has any."""
    classes, pools = classes_of(seen.inventory.accelerators), dict[tuple[str, str], list[Accelerator]]()
    for each in seen.inventory.accelerators.values():
        if each.role is Role.SPARE:
            pools.setdefault((each.rack, classes[each.id]), []).append(each)
    return {
        key: SparesOfPool(
            spares=tuple(each.id for each in pool),
            free=tuple(each.id for each in pool if is_free(seen, each)),
            unread=tuple(each.id for each in pool if _is_unread(seen, each.id)),
        )
        for key, pool in pools.items()
    }


def _is_unread(seen: Observation, spare: str) -> bool:
    return seen.role_of(spare) is Role.SPARE and seen.report.accelerators[spare].state is State.UNKNOWN


def is_free(seen: Observation, spare: Accelerator) -> bool:
    """Whether any job can take a spare now: it was read and is fit, runs no rank, and is not reserved."""
    return seen.role_of(spare.id) is Role.SPARE and why_not_free(seen, spare) is None


def why_not_free(seen: Observation, spare: Accelerator) -> str | None:
    """Why not every job can take a spare that runs no rank; ``None`` if every job can."""
    if (reason := next(unfit_reasons(seen, spare.id), None) or unfit_group(seen, spare.id, ())) is not None:
        return reason
    if spare.reserved_for is not None:
        return f"is reserved for {spare.reserved_for}"
    return "is reserved" if spare.reserved else kept_by_filler(seen, spare.id)


def unfit_reasons(seen: Observation, accelerator: str) -> Iterator[str]:
    """Why an accelerator is not fit for use now, or soon will not be; being out of service alone is no reason."""
    health = seen.report.accelerators[accelerator]
    state = _state(health)
    if health.maintenance is not None:
        yield f"is in maintenance: {health.maintenance}"
    elif state is not State.OK:
        yield f"is {state}: {seen.report.why(health, seen.inventory.accelerators[accelerator].host)}"
    for lane in seen.inventory.transponders_of(accelerator):
        link = seen.report.links[lane.id]
        if link.maintenance is not None:
            yield f"its lane {lane.id} is in maintenance: {link.maintenance}"
        elif _state(link) is State.FAILED:
            why = link.findings[0].evidence if link.findings else "no finding gives the reason"
            yield f"its lane {lane.id} is failed: {why}"
    if seen.role_of(accelerator) is Role.SPARE:
        # A run has darkened its lanes since, so that a dead transmitter has no finding any more.
        for lane_id in lanes_to_light(seen.unproven(accelerator)):
            lit = f"lumctl device set {lane_id} transmit=on"
            yield f"its lane {lane_id} sent no light before it was replaced, and nothing shows that it does now: {lit}"


def _state(health: ComponentHealth) -> State:
    """The state of a component by its findings, whether or not it is in use."""
    return state_of(health.findings, otherwise=health.otherwise) if health.disabled else health.state


def unfit_group(seen: Observation, spare: str, gone: Collection[str]) -> str | None:
    """Why an accelerator that a spare is tied to makes the spare unusable, or ``None``."""
    for other in seen.inventory.tied_to(spare):
        if other.id in gone:
            return f"is tied to {other.id}, which is replaced"
        if seen.report.accelerators[other.id].state is State.FAILED:
            return f"is tied to {other.id}, which is failed"
    return None


def kept_by_filler(seen: Observation, spare: str) -> str | None:
    """Why a swap may not take a spare from the filler job on it; ``None`` if it may, or if there is none."""
    filler = seen.filler_on(spare)
    if filler is None or seen.inventory.sharing.preemption is not Preemption.NEVER:
        return None
    return f"runs filler job {filler.name}, which keeps it (sharing: preemption: never)"
