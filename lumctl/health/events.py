"""The error events of one host that count at a look: what its kernel log shows, and what earlier looks saw in it."""

from collections.abc import Collection
from dataclasses import dataclass

from lumctl.fleet.readings import AcceleratorEvent, SxidEvent, XidEvent

Event = XidEvent | SxidEvent | AcceleratorEvent
Identity = tuple[str, ...]
"""The identity of an event on one host in one boot."""


@dataclass(frozen=True, slots=True)
class HostEvents:
    """The events of one host that nothing has ended.

    ``vendor`` are those that a probe plug-in reads. ``earlier`` are the identities of those that an earlier look saw,
    ``left_log`` those of them that the kernel log no longer shows: its newer lines have replaced them.
    """

    xids: tuple[XidEvent, ...]
    sxids: tuple[SxidEvent, ...]
    earlier: frozenset[Identity]
    left_log: frozenset[Identity]
    vendor: tuple[AcceleratorEvent, ...] = ()


def count_text(events: Collection[Event], known: HostEvents | None) -> str:
    """How often an event came and whether its line has left the log, as the end of a finding's evidence."""
    left = sum(event.identity in known.left_log for event in events) if known is not None else 0
    # Of lines that have left the log only some are kept.
    times = f", {'at least ' if left else ''}{len(events)} times" if len(events) > 1 else ""
    if not left or left < len(events):
        return times
    return f"{times}; the {'line has' if left == 1 else 'lines have'} left the kernel log"


def clear_hint(component: str, ends: str, events: Collection[Event], known: HostEvents | None) -> str:
    """How an operator ends events whose end lumctl could not see, as the last part of a finding's advice.

    It is empty at the first observation of an event, because nothing can have been repaired yet.
    """
    if known is None or ends == "age" or not any(event.identity in known.earlier for event in events):
        return ""
    when = "it was reset and lumctl did not see it" if ends == "reset" else "it was repaired without a restart"
    return f"; if {when}: lumctl health clear {component} --reason TEXT"
