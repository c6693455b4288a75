"""A kernel log that comes bit by bit: what it told so far, each event once, and not without end."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from lumctl.fleet.parsers.kernel_log import KernelEvents, parse_kernel_log

_MOST = 512
"""How many events of a sort are kept before those are thinned out that came most often."""
_MOST_ALIKE = 32
"""How many of them stay of those that tell the same of the same part."""


class _Identified(Protocol):
    @property
    def stamp(self) -> str: ...

    @property
    def identity(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=_Identified)


def extended(before: KernelEvents, text: str, *, booted_at: float | None) -> KernelEvents:
    """What a log told so far, with whole lines that were added to it."""
    after = parse_kernel_log(text, booted_at=booted_at)
    return replace(
        before,
        xids=kept(before.xids, after.xids, lambda event: (event.pci, event.xid)),
        sxids=kept(before.sxids, after.sxids, lambda event: (event.pci, event.sxid)),
        nics=kept(before.nics, after.nics, lambda event: (event.interface, event.pci, event.kind)),
        fallen=kept(before.fallen, after.fallen, lambda event: event.pci),
        host=kept(before.host, after.host, lambda event: (event.kind, event.device)),
        lines=before.lines + after.lines,
        unread=after.unread or before.unread,
    )


def kept(before: tuple[E, ...], after: Iterable[E], sort: Callable[[E], Hashable]) -> tuple[E, ...]:
    """Old and new events without those told twice, in order. Where there are too many, the newest of each sort."""
    known = {event.identity for event in before}
    found = list(before)
    for event in after:
        if not event.stamp or event.identity not in known:
            known.add(event.identity)
            found.append(event)
    if len(found) <= _MOST:
        return tuple(found)
    seen: Counter[Hashable] = Counter()
    newest: list[E] = []
    for event in reversed(found):
        seen[sort(event)] += 1
        if seen[sort(event)] <= _MOST_ALIKE:
            newest.append(event)
    return tuple(reversed(newest[:_MOST]))
