"""The ledger of spares as documents, and in words for an operator."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lumctl.errors import LumctlError
from lumctl.health.replaced_faults import ReplacedFault, lanes_to_light
from lumctl.printable import counted
from lumctl.spares.ledger import OUT, SWAPPED_OUT, USABLE, LedgerEntry, SpareState
from lumctl.spares.placements import RankMove
from lumctl.store import ways_to_finish
from lumctl.time_text import iso_or_none, moment_with_age

_IN_WORDS = {SpareState.IN_REPAIR: "in repair", SpareState.IN_MAINTENANCE: "in maintenance"}


def entry_document(entry: LedgerEntry, accelerator_class: str, target: str, now: float) -> dict[str, Any]:
    """An entry as data. ``job`` and ``rank`` are what runs on it, for a swapped-out one what ran on it before."""
    each, move = entry.accelerator, entry.move
    job, rank = entry.place or (entry.home if entry.state in SWAPPED_OUT else None) or (None, None)
    return {
        "accelerator": each.id,
        "rack": each.rack,
        "class": accelerator_class,
        "host": each.host,
        "model": each.model,
        "memory_gib": each.memory_gib,
        "role": each.role.value,
        "state": entry.state.value,
        "usable": entry.state in USABLE,
        "job": job,
        "rank": rank,
        "taken_by": entry.taken_by,
        "filler": entry.filler,
        "run": move.run if move else None,
        "since": iso_or_none(move.at if move else None),
        "until": iso_or_none(entry.until),
        "interrupted": entry.interrupted,
        "reserved": each.reserved,
        "reserved_for": each.reserved_for,
        "tied": each.tied,
        "reasons": [*entry.reasons, *(fault.words for fault in entry.unproven)],
        "words": entry_words(entry, now),
        "command": command_of(entry, target),
    }


def count_document(entries: Iterable[LedgerEntry]) -> dict[str, int]:
    """How many spares are free (of these, how many burn in), reserved, moving, taken, and out for whatever reason."""
    counts = Counter(entry.state for entry in entries)
    return {
        "free": sum(counts[state] for state in USABLE),
        "burning_in": counts[SpareState.BURNING_IN],
        "reserved": counts[SpareState.RESERVED],
        "moving": counts[SpareState.MOVING],
        "taken": counts[SpareState.TAKEN],
        "out": sum(counts[state] for state in OUT),
    }


def count_words(entries: Iterable[LedgerEntry]) -> str:
    """The same in words: ``2 free (1 burning in), 1 taken, 2 out (1 failed, 1 in repair)``."""
    entries = list(entries)
    counts = count_document(entries)
    fresh = f" ({counts['burning_in']} burning in)" if counts["burning_in"] else ""
    out = Counter(entry.state for entry in entries if entry.state in OUT)
    why = ", ".join(f"{out[state]} {_IN_WORDS.get(state, state.value)}" for state in OUT if out[state])
    some = [f"{counts[state]} {state}" for state in ("reserved", "moving") if counts[state]]
    parts = [f"{counts['free']} free{fresh}", *some, f"{counts['taken']} taken", f"{counts['out']} out"]
    return ", ".join(parts) + (f" ({why})" if why else "")


def entry_words(entry: LedgerEntry, now: float) -> str:
    """Who uses an accelerator, since when and by which run, and why nobody else can, in words."""
    who, *rest = _parts(entry, now)
    taken = entry.state is not SpareState.MOVING and entry.move
    since = f" since {moment_with_age(taken.at, now)}, by {taken.run}" if taken else ""
    return "; ".join(part for part in (f"{who}{since}", *rest, *_reasons(entry)) if part)


def brief_words(entry: LedgerEntry, now: float) -> str:
    """The same for a table that has columns for rank, age and run; of several reasons only the first."""
    parts = list(_parts(entry, now))
    if entry.state is SpareState.TAKEN:
        parts[0] = f"in place of {entry.move.before}" if entry.move and entry.move.before else ""
    if entry.state in SWAPPED_OUT:
        parts[0] = f"{entry.taken_by} runs it"
    first, *others = [*_reasons(entry), ""]
    more = f" (and {counted(len(others) - 1, 'more reasons', 'more reason')})" if others[1:] else ""
    return "; ".join(part for part in (*parts, f"{first}{more}") if part)


def _parts(entry: LedgerEntry, now: float) -> Iterator[str]:
    """Who uses an accelerator or may use it, then what else is to be said, without the reasons."""
    each, until = entry.accelerator, None if entry.until is None else moment_with_age(entry.until, now)
    match entry.state:
        case SpareState.MOVING if entry.move:
            how = "was interrupted while it moved" if entry.interrupted else "moves"
            yield f"{entry.move.run} {how} {move_words(entry.move)}"
        case SpareState.FREE if entry.filler:
            yield f"runs filler job {entry.filler}, which gives it up to a job that needs it"
        case SpareState.FREE:
            yield "was read just now and is ok"
        case SpareState.BURNING_IN:
            yield (
                f"burns in until {until}: new, or out of service lately; it can be used, but swaps take others first"
            )
        case SpareState.RESERVED:
            yield f"for {each.reserved_for}" if each.reserved_for else f"used only if it is named: --spare {each.id}"
            yield f"ranks behind others until {until}" if until else ""
        case SpareState.REPAIRED | SpareState.IN_REPAIR if entry.home:
            yield f"its rank {entry.home[1]} of {entry.home[0]} runs on {entry.taken_by}"
            yield "was read just now and is ok again" if entry.state is SpareState.REPAIRED else ""
        case SpareState.IN_MAINTENANCE:
            yield f"{''.join(entry.reasons[:1])}{f' until {until}' if until else ''}"
        case _ if entry.place:
            # A rank that returned to where the inventory places it replaces nothing there.
            away = entry.place != entry.home
            instead = f" in place of {entry.move.before}" if away and entry.move and entry.move.before else ""
            yield f"runs rank {entry.place[1]} of {entry.place[0]}{instead}"
        case SpareState.NOT_A_SPARE:
            yield f"no job uses it, and its role in the inventory is {each.role}"
        case _:
            yield ""


def _reasons(entry: LedgerEntry) -> tuple[str, ...]:
    """Why it cannot be used, unless that is said already: work on an accelerator is work on its lanes too."""
    if entry.state in {SpareState.MOVING, SpareState.IN_MAINTENANCE}:
        return ()
    return (*entry.reasons, *(fault.words for fault in entry.unproven))


def move_words(move: RankMove) -> str:
    """A move of a rank: ``rank 1 of train from h1-gpu0 to h5-gpu0``."""
    start = f" from {move.before}" if move.before else ""
    return f"rank {move.rank} of {move.job}{start}{f' to {move.after}' if move.after else ''}"


def history_words(move: RankMove, accelerator: str) -> str:
    """What a move did with one of its accelerators."""
    back = ", undone" if move.undone else ", not ended" if move.is_open else ""
    rank = f"rank {move.rank} of {move.job}"
    if move.after == accelerator:
        return f"took {rank}{f' from {move.before}' if move.before else ''}{back}"
    return f"gave up {rank} to {move.after}{back}" if move.after else f"released from {rank}{back}"


def command_of(entry: LedgerEntry, target: str) -> str | None:
    """The command that returns an accelerator to its job, or the two that finish an interrupted run."""
    if entry.state is SpareState.MOVING and entry.interrupted and entry.move:
        return ways_to_finish(entry.move.run, target)
    if entry.state in SWAPPED_OUT and entry.home:
        return f"lumctl swap plan {entry.home[0]} --back --target {target}"
    return None


def advice(
    entries: Iterable[LedgerEntry], target: str, refusals: Mapping[str, LumctlError | None] = MappingProxyType({})
) -> Iterator[tuple[str, str]]:
    """For the accelerators that swaps took out of each job: what to do, and the command for it, empty if none works.

    ``refusals`` are why no return can be planned and applied now, by job; ``None`` if one can.
    """
    by_job: dict[tuple[str, SpareState, bool], list[LedgerEntry]] = {}
    for entry in entries:
        if entry.state in SWAPPED_OUT and entry.home:
            by_job.setdefault((entry.home[0], entry.state, not entry.reasons), []).append(entry)
    for (job, state, is_fit), those in by_job.items():
        names = ", ".join(entry.accelerator.id for entry in those)
        are = "is" if len(those) == 1 else "are"
        ranks = f"{counted(len(those), 'ranks')} of {job}"
        refused = refusals.get(job)
        if state is SpareState.REPAIRED and refused is not None:
            why = "; ".join(filter(None, (refused.message, refused.hint)))
            yield f"{names} {are} ok again, but {ranks} cannot return now: {why}", ""
        elif state is SpareState.REPAIRED:
            yield f"{names} {are} ok again: return {ranks}", command_of(those[0], target) or ""
        elif is_fit:
            yield _show_repair(job, [fault for entry in those for fault in entry.unproven], ranks, target)
        else:
            yield f"repair {names}; then return {ranks}", command_of(those[0], target) or ""


def _show_repair(job: str, faults: Sequence[ReplacedFault], ranks: str, target: str) -> tuple[str, str]:
    """What to do about accelerators that are ok, but whose earlier faults are not shown to be gone."""
    names = ", ".join(dict.fromkeys(fault.component for fault in faults))
    why = "; ".join(fault.words for fault in faults)
    if lanes := lanes_to_light(faults):
        command = "; ".join(f"lumctl device set {lane} transmit=on --target {target}" for lane in lanes)
        it, sends = ("it", "it sends") if len(lanes) == 1 else ("them", "they send")
        return f"{why}: repair {names}, then light {it}; {ranks} can return when {sends}", command
    command = f"lumctl swap plan {job} --back --even-if-unproven --target {target}"
    return f"{why}: repair {names}; then return {ranks}", command
