"""Whether an accelerator may take a failed one's place at all, light aside; and which one fails."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lumctl.health.judging import state_of
from lumctl.health.states import ComponentHealth, State
from lumctl.inventory.model import Role
from lumctl.site import Observation
from lumctl.swap.groups import ill_tie


@dataclass(frozen=True, slots=True)
class Failure:
    """An accelerator to replace, and the rank that runs on it."""

    job: str
    rank: int
    accelerator: str


def objections(
    seen: Observation,
    failure: Failure,
    spare: str,
    *,
    named: bool = False,
    avoid: Collection[str] = (),
    gone: Collection[str] = (),
) -> Iterator[str]:
    """Why a spare cannot be taken, whatever else is chosen. ``named``: somebody insists on it.

    ``avoid`` are lanes that no circuit may use, ``gone`` the accelerators that are replaced.
    """
    failed = failure.accelerator
    old, new = seen.inventory.accelerators[failed], seen.inventory.accelerators[spare]
    place, role = seen.place_of(spare), seen.role_of(spare)
    if place is not None:
        yield f"runs rank {place[1]} of {place[0]}"
    if role is not Role.SPARE:
        yield f"is {role}, not a spare"
    if new.rack != old.rack:
        yield f"is in rack {new.rack}, not {old.rack}"
    if new.model != old.model or new.memory_gib < old.memory_gib:
        yield f"is {new.model} with {new.memory_gib:g} GiB, {failed} is {old.model} with {old.memory_gib:g} GiB"
    if new.reserved_for not in {None, failure.job} and not named:
        yield f"is kept for {new.reserved_for}: --spare {spare} takes it all the same"
    if new.reserved and not named:
        yield f"is reserved: --spare {spare} takes it all the same"
    yield from ill(seen, spare)
    if (tie := ill_tie(seen, spare, gone)) is not None:
        yield tie
    for lane in seen.inventory.transponders_of(spare):
        if lane.id in avoid:
            yield f"its lane {lane.id} is to be avoided"


def ill(seen: Observation, accelerator: str) -> Iterator[str]:
    """Why an accelerator is not fit for work now, or will not be for long. One that is out of service may be well."""
    health = seen.report.accelerators[accelerator]
    state = _state(health)
    if health.maintenance is not None:
        yield f"is in maintenance: {health.maintenance}"
    elif state is not State.OK:
        why = health.findings[0].evidence if health.findings else "there is no reading of it"
        yield f"is {state}: {why}"
    for lane in seen.inventory.transponders_of(accelerator):
        link = seen.report.links[lane.id]
        if link.maintenance is not None:
            yield f"its lane {lane.id} is in maintenance: {link.maintenance}"
        elif _state(link) is State.FAILED:
            yield f"its lane {lane.id} is failed: {link.findings[0].evidence}"


def _state(health: ComponentHealth) -> State:
    """The state that its findings give it, be it in use or not."""
    return state_of(health.findings, otherwise=health.otherwise) if health.disabled else health.state
