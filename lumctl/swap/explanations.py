"""Why a spare was chosen, or why none can be: in words, and as the candidates of a plan."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from lumctl.change.plan import Candidate, counted_changes
from lumctl.context import Observation
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.model import Role
from lumctl.inventory.sharing import SpareHosts
from lumctl.printable import counted
from lumctl.spares.fitness import unfit_reasons
from lumctl.swap.constraints import HOSTS_IN_WORDS, constraints_of
from lumctl.swap.light_paths import LightPaths
from lumctl.swap.ranking import LATELY_S, UNKNOWN, AcceleratorRecord, FailedRank, Score, objections, why_behind

NOT_NAMED = "another one was requested for it"
_SHOWN = 4


class ReplacementPlanner(Protocol):
    """A function that plans to replace some accelerators by any spares."""

    def __call__(self, failed: Sequence[str], /, *, may_move: int = 0) -> str | LumctlError:
        """The command that does so, or its refusal. Up to ``may_move`` circuits of other jobs may make room."""
        ...


def no_attempt(_failed: Sequence[str], /, *, may_move: int = 0) -> LumctlError:  # noqa: ARG001 - a ReplacementPlanner
    """Refuse without an attempt: for a choice that itself is only an attempt."""
    return LumctlError("not attempted")


FreedBy = Callable[[Sequence[str]], str]
"""A function that finds commands that free spares for some accelerators; empty if there are none."""


def nothing_frees(_failed: Sequence[str]) -> str:
    """No command: for a choice that itself is only an attempt."""
    return ""


class NoSpareError(RefusedError):
    """No spare can replace an accelerator now, alone or beside others."""


@dataclass(frozen=True)
class Considered:
    """A spare for a failed accelerator: its score, or the objection to it.

    ``crowded``: its light cannot be routed next to the present circuits. ``apart_from`` names the spare chosen for an
    accelerator that is tied to the failed one, if the spare considered here is not tied to that spare. ``kept``: it
    could be used, but the sharing of spares gives it to others.
    """

    failed: str
    spare: str
    objection: str
    score: Score | None = None
    paths: LightPaths | None = None
    record: AcceleratorRecord = UNKNOWN
    crowded: bool = False
    apart_from: str = ""
    kept: bool = False


def candidates_of(row: Sequence[Considered], chosen: Mapping[str, str]) -> Iterator[Candidate]:
    """The candidates for one failed accelerator: the usable spares by rank, then the others."""
    ranked = _ranked(row)
    best = next((cell for cell in ranked if cell.spare == chosen[cell.failed]), None)
    for rank, cell in enumerate(ranked, start=1):
        taken = cell is best
        verdict = "the only one that fits" if len(ranked) == 1 and taken else _verdict(cell, best, chosen)
        parts = cell.score.parts() if cell.score else {}
        reasons = (verdict, *_told(cell))
        yield Candidate(cell.failed, cell.spare, chosen=taken, reasons=reasons, rank=rank, score=parts)
    for cell in row:
        if cell.score is None and cell.objection != NOT_NAMED:
            yield Candidate(cell.failed, cell.spare, chosen=False, reasons=(cell.objection,))


def reasons_why(row: Sequence[Considered], chosen: Mapping[str, str], *, named: bool) -> Iterator[str]:
    """Why a failed accelerator gets its spare, in one line; then a line for each spare that ranks before it."""
    failed = row[0].failed
    spare = chosen[failed]
    if named:
        yield f"{spare} replaces {failed}: it was requested"
        return
    ranked = _ranked(row)
    at = next(place for place, cell in enumerate(ranked) if cell.spare == spare)
    mine, unfit = ranked[at], len(row) - len(ranked)
    others = "" if unfit == 0 else f"; {counted(unfit, 'others')} cannot replace it"
    if len(ranked) == 1:
        only = (
            "there is no other spare" if unfit == 0 else f"of {len(row)} spares it is the only one that can replace it"
        )
        yield f"{spare} replaces {failed}: {only}"
    elif at == 0:
        behind = ranked[1]
        yield (
            f"{spare} replaces {failed}: it ranks first of {len(ranked)}, before {behind.spare}: "
            f"{_behind(behind, mine)}{others}"
        )
    else:
        yield f"{spare} replaces {failed}: it ranks {at + 1} of {len(ranked)}{others}"
    for better in ranked[:at]:
        whose = next((other for other, taken in chosen.items() if taken == better.spare), None)
        if whose is not None:
            yield f"{better.spare} would rank before it, but is used for {whose}: this combination costs least"
        else:
            yield f"{better.spare} would rank before it, but {_no_way(better)}"


def none_usable(
    seen: Observation,
    failures: Sequence[FailedRank],
    table: Sequence[Sequence[Considered]],
    served: Mapping[int, int],
    attempt: ReplacementPlanner,
    freed_by: FreedBy,
) -> NoSpareError:
    """The refusal with the reason why the first failure without a spare gets none.

    ``served`` is a largest assignment, failure -> spare, by row and column of ``table``. ``attempt`` checks the
    commands of the hint, and ``freed_by`` finds commands that free a spare.
    """
    at = next(row for row in range(len(failures)) if row not in served)
    failed, every = failures[at].accelerator, [failure.accelerator for failure in failures]
    if not table[at]:
        return NoSpareError(
            f"rack {seen.inventory.accelerators[failed].rack} has no spare left for {failed}",
            hint=freed_by(every) or "repair an accelerator, or mark one with `role: spare` in the inventory",
        )
    whose = {column: failures[row].accelerator for row, column in served.items()}
    said = [
        f"{cell.spare}: {cell.objection or f'this plan already uses it for {whose[column]}'}"
        for column, cell in enumerate(table[at])
        if cell.objection != NOT_NAMED
    ]
    more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    message = f"no spare can replace {failed}: {'; '.join(said[:_SHOWN])}{more}"
    if not served and (beside := _others_in_the_way(seen, failures, table)):
        command = attempt(every, may_move=beside)
        if isinstance(command, str):
            return NoSpareError(message, hint=f"if circuits of other jobs may be moved to make room: {command}")
    others = [failures[row].accelerator for row in sorted(served)]
    if others and isinstance(command := attempt(others), str):
        return NoSpareError(message, hint=f"the others can be replaced: {command}")
    hint = _one_at_a_time(others, attempt) or freed_by(every) or _what_may_help(seen, failures, table[at], attempt)
    return NoSpareError(message, hint=hint)


def no_fitting_hosts(seen: Observation, failures: Sequence[FailedRank]) -> NoSpareError:
    """The refusal if each failure has a spare, but not on hosts that their jobs allow together."""
    wanted = {
        f"{job} requires spares on {HOSTS_IN_WORDS[hosts]}"
        for job in dict.fromkeys(failure.job for failure in failures)
        if (hosts := constraints_of(seen.inventory, job).hosts) is not SpareHosts.ANY
    }
    names = ", ".join(failure.accelerator for failure in failures)
    return NoSpareError(
        f"{names} cannot be replaced together: {' and '.join(sorted(wanted))}, but the spares are not",
        hint="see: lumctl spare list",
    )


def _what_may_help(
    seen: Observation, failures: Sequence[FailedRank], row: Sequence[Considered], attempt: ReplacementPlanner
) -> str:
    """What to do if none of the spares of a failure can be used."""
    if any(cell.kept for cell in row):
        return "see who else waits for spares: lumctl spare queue"
    if _is_named(seen, failures, row):
        found = attempt([failure.accelerator for failure in failures])
        if isinstance(found, str):
            return f"let lumctl choose the spare: {found}"
        return "; ".join(filter(None, [f"letting lumctl choose the spare does not help: {found.message}", found.hint]))
    ill = [cell for cell in row if any(unfit_reasons(seen, cell.spare))]
    if ill:
        # Its health may not be all that keeps it from this rank, and then its repair does not help.
        of_use = next((cell for cell in ill if not _other_objections(seen, failures, cell)), None)
        again = f"; once it is healthy again, try: {_plan(failures)}" if of_use else ""
        return f"see why: lumctl health explain {(of_use or ill[0]).spare}{again}"
    return "see where light leads now: lumctl fabric show"


def _other_objections(seen: Observation, failures: Sequence[FailedRank], cell: Considered) -> set[str]:
    """What keeps a spare from a failed rank, besides its own health."""
    failure = next(each for each in failures if each.accelerator == cell.failed)
    gone = {each.accelerator for each in failures}
    return {*objections(seen, failure, cell.spare, gone=gone)} - {*unfit_reasons(seen, cell.spare)}


def _is_named(seen: Observation, failures: Sequence[FailedRank], row: Sequence[Considered]) -> bool:
    """Whether spares were requested by name: then others of the rack were not considered, or not for this failure."""
    rack, considered = seen.inventory.accelerators[failures[0].accelerator].rack, {cell.spare for cell in row}
    return any(cell.objection == NOT_NAMED for cell in row) or any(
        each.rack == rack and seen.role_of(each.id) is Role.SPARE and each.id not in considered
        for each in seen.inventory.accelerators.values()
    )


def _one_at_a_time(failed: Sequence[str], attempt: ReplacementPlanner) -> str:
    """The command that replaces the first of some accelerators that can be replaced alone; empty if none can."""
    attempts = (attempt([name]) for name in failed[:_SHOWN]) if len(failed) > 1 else ()
    command = next((found for found in attempts if isinstance(found, str)), None)
    return f"replace one at a time: {command}" if command else ""


def _plan(failures: Sequence[FailedRank]) -> str:
    return f"lumctl swap plan --failed {','.join(failure.accelerator for failure in failures)}"


def no_joint_way(
    failures: Sequence[FailedRank],
    refusals: Sequence[LumctlError],
    tried: int,
    attempt: ReplacementPlanner,
    *,
    cut: bool,
) -> RefusedError:
    """The refusal if each failure has a usable spare, but no choice of spares has light paths for all."""
    names = ", ".join(failure.accelerator for failure in failures)
    why = refusals[0].message if refusals else "no route was found"
    choices = f"{counted(tried, 'choices')} of spares"
    alone = _one_at_a_time([failure.accelerator for failure in failures], attempt)
    hint = alone or "none of them can be replaced alone either; see where light leads now: lumctl fabric show"
    if cut:
        return RefusedError(
            f"no routes were found to replace {names} together: {choices} tried, there are more; the best fails: {why}",
            hint=f"choose the spares with --spare; {alone}" if alone else hint,
        )
    return RefusedError(
        f"{names} cannot be replaced together: all {choices} were tried; the best fails: {why}", hint=hint
    )


def _others_in_the_way(seen: Observation, failures: Sequence[FailedRank], table: Sequence[Sequence[Considered]]) -> int:
    """How many circuits of other jobs there are, if light could not be routed next to the present circuits; else 0."""
    own = {failure.job for failure in failures}
    crowded = any(cell.crowded for row in table for cell in row)
    return sum(circuit.owner not in own for circuit in seen.circuits) if crowded else 0


def _ranked(row: Sequence[Considered]) -> list[Considered]:
    usable = [(cell.score.cost, at, cell) for at, cell in enumerate(row) if cell.score is not None]
    return [cell for _, _, cell in sorted(usable, key=lambda each: each[:2])]


def _verdict(cell: Considered, best: Considered | None, chosen: Mapping[str, str]) -> str:
    if cell is best or best is None or cell.score is None or best.score is None:
        return "the best of all" if cell is best else "not chosen"
    if cell.score.cost > best.score.cost:
        return f"behind {best.spare}: {_behind(cell, best)}"
    whose = next((other for other, taken in chosen.items() if taken == cell.spare), None)
    return f"this plan uses it for {whose}" if whose else _no_way(cell)


def _no_way(cell: Considered) -> str:
    if cell.apart_from:
        return f"is not tied to {cell.apart_from}"
    return "leaves no routes for all circuits"


def _behind(worse: Considered, better: Considered) -> str:
    if worse.score is None or better.score is None:
        return "it cannot be used"
    return why_behind(worse.score, better.score)


def _told(cell: Considered) -> Iterator[str]:
    if cell.paths is not None and not cell.paths.add and not cell.paths.writes:
        # Its links lead to others that are replaced too, so by itself it has no circuit.
        yield "its circuits depend on the other spares"
    elif cell.paths is not None:
        through = f"{cell.paths.total_pucs} PUCs in new circuits, " if cell.paths.total_pucs else ""
        written = " and ".join(counted_changes(chain(*cell.paths.writes.values()))) or "nothing"
        yield f"{through}{written} to write, worst loss {cell.paths.worst_loss_db:.2f} dB"
        if cell.paths.moved:
            makes = "makes" if len(cell.paths.moved) == 1 else "make"
            yield f"{', '.join(sorted(cell.paths.moved))} {makes} room"
    if cell.record.faults:
        count = "once" if cell.record.faults == 1 else f"{cell.record.faults} times"
        yield f"degraded or failed {count} in the last {LATELY_S / 86_400:.0f} days"
