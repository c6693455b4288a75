"""Which spare takes a failed accelerator's place, and why no other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumctl.change.plan import Candidate, Replacement
from lumctl.errors import LumctlError, RefusedError
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.inventory.wiring import circuits_of
from lumctl.site import Observation
from lumctl.swap.lightpaths import LightPaths, States, light_paths


@dataclass(frozen=True)
class Choice:
    """The replacements decided on, the light paths that they need, and every candidate with its reasons."""

    replacements: tuple[Replacement, ...]
    paths: LightPaths
    candidates: tuple[Candidate, ...]


def choose(
    seen: Observation, states: dict[str, States], job: str, failed: Sequence[str], named: Sequence[str]
) -> Choice:
    """Replace each failed accelerator by the spare whose light paths are shortest and touch the fewest cells.

    ``named`` are the spares the operator insists on, in the order of ``failed``; they are held to the same rules.

    Raises:
        RefusedError: there is no usable spare; the message says why each was not taken.
    """
    taken: list[Replacement] = []
    candidates: list[Candidate] = []
    paths = LightPaths()
    for at, accelerator in enumerate(failed):
        pool = [named[at]] if named else _spares(seen)
        weighed = [(spare, _weigh(seen, states, job, taken, accelerator, spare)) for spare in pool]
        usable = sorted(
            ((spare, found) for spare, found in weighed if isinstance(found, LightPaths)),
            key=lambda option: (option[1].total_pucs, option[1].changed_pucs, option[0]),
        )
        if not usable:
            raise _none_usable(seen, accelerator, weighed)
        best, paths = usable[0]
        candidates += _explained(accelerator, best, weighed)
        taken.append(Replacement(job, seen.assignment[job].index(accelerator), accelerator, best))
    return Choice(tuple(taken), paths, tuple(candidates))


def _spares(seen: Observation) -> list[str]:
    return [a for a in seen.inventory.accelerators if seen.role_of(a) is Role.SPARE]


def _weigh(
    seen: Observation, states: dict[str, States], job: str, taken: Sequence[Replacement], failed: str, spare: str
) -> LightPaths | str:
    """The light paths that a spare would need, or why it cannot be taken."""
    for objection in _objections(seen, taken, failed, spare):
        return objection
    ranks = list(seen.assignment[job])
    for replacement in taken:
        ranks[replacement.rank] = replacement.spare
    ranks[ranks.index(failed)] = spare
    try:
        after = circuits_of(seen.inventory, {**seen.assignment, job: tuple(ranks)})
        return light_paths(seen.inventory, seen.circuits, after, states)
    except LumctlError as error:
        return error.message


def _objections(seen: Observation, taken: Sequence[Replacement], failed: str, spare: str) -> Iterator[str]:
    old, new = seen.inventory.accelerators[failed], seen.inventory.accelerators[spare]
    place, role = seen.place_of(spare), seen.role_of(spare)
    if any(replacement.spare == spare for replacement in taken):
        yield "already taken by this plan"
    if place is not None:
        yield f"runs rank {place[1]} of {place[0]}"
    if role is not Role.SPARE:
        yield f"is {role}, not a spare"
    if new.rack != old.rack:
        yield f"is in rack {new.rack}, not {old.rack}"
    if new.model != old.model or new.memory_gib < old.memory_gib:
        yield f"is {new.model} with {new.memory_gib:g} GiB, {failed} is {old.model} with {old.memory_gib:g} GiB"
    yield from _ill(seen, spare)


def _ill(seen: Observation, spare: str) -> Iterator[str]:
    """Why a spare is not fit for work now, or will not be for long."""
    health = seen.report.accelerators[spare]
    if health.maintenance is not None:
        yield f"is in maintenance: {health.maintenance}"
    elif health.state is not State.OK:
        why = health.findings[0].evidence if health.findings else "there is no reading of it"
        yield f"is {health.state}: {why}"
    for lane in seen.inventory.transponders_of(spare):
        link = seen.report.links[lane.id]
        if link.maintenance is not None:
            yield f"its lane {lane.id} is in maintenance: {link.maintenance}"
        elif link.state is State.FAILED:
            yield f"its lane {lane.id} is failed: {link.findings[0].evidence}"


def _explained(failed: str, best: str, weighed: Sequence[tuple[str, LightPaths | str]]) -> Iterator[Candidate]:
    for spare, found in weighed:
        if isinstance(found, str):
            yield Candidate(failed, spare, chosen=False, reasons=(found,))
        else:
            through = f"{found.total_pucs} PUCs in new circuits, " if found.total_pucs else ""
            budget = f"{through}{found.changed_pucs} cells to write, worst loss {found.worst_loss_db:.2f} dB"
            verdict = "the shortest light paths" if spare == best else "longer light paths than the one chosen"
            yield Candidate(failed, spare, chosen=spare == best, reasons=(verdict, budget))


def _none_usable(seen: Observation, failed: str, weighed: Sequence[tuple[str, LightPaths | str]]) -> RefusedError:
    if not weighed:
        return RefusedError(
            f"rack {seen.inventory.accelerators[failed].rack} has no spare left for {failed}",
            hint="mark one with `role: spare` in the inventory, or roll an earlier swap back: lumctl swap list",
        )
    why = "; ".join(f"{spare}: {found}" for spare, found in weighed[:4])
    more = f"; and {len(weighed) - 4} more" if len(weighed) > 4 else ""  # noqa: PLR2004
    return RefusedError(f"no spare can take the place of {failed}: {why}{more}")
