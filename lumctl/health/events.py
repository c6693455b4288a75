"""The error events of one host that count: those in its kernel log, and those that earlier observations saw in it.

Of the events that a probe plug-in reads, the plug-in's rules say which last, and which lines end them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lumctl.fleet.readings import AcceleratorEvent, GpuReading, SxidEvent, XidEvent
from lumctl.health.identity import pci_slot
from lumctl.health.probe_rules import ProbeRule, rules_of
from lumctl.health.states import State

Event = XidEvent | SxidEvent | AcceleratorEvent
Identity = tuple[str, ...]
"""The identity of an event on one host in one boot."""


@dataclass(frozen=True, slots=True)
class HostEvents:
    """The events of one host that have not ended.

    ``vendor`` are the events that a probe plug-in reads. ``earlier`` are the identities of events that an earlier
    observation saw. ``left_log`` are the identities of events that newer lines have pushed out of the kernel log.
    ``slots`` are the PCI slots at which this boot of the host has listed its accelerators.
    """

    xids: tuple[XidEvent, ...]
    sxids: tuple[SxidEvent, ...]
    earlier: frozenset[Identity]
    left_log: frozenset[Identity]
    vendor: tuple[AcceleratorEvent, ...] = ()
    slots: Mapping[str, str] = field(default_factory=dict)


class Timed(Protocol):
    """A line of a log. ``at`` is ``None`` if the line has no time."""

    @property
    def at(self) -> float | None:
        """When it was written, in seconds since the epoch."""


def earliest_at(events: Iterable[Timed], *, default: float) -> float:
    """When the first of some events happened; ``default`` if none has a time."""
    return min((event.at for event in events if event.at is not None), default=default)


def count_text(events: Collection[Event], known: HostEvents | None) -> str:
    """How often an event occurred and whether its lines have left the log, as the end of a finding's evidence."""
    left = sum(event.identity in known.left_log for event in events) if known is not None else 0
    # Only some of the lines that have left the log are kept, so their number is a lower bound.
    times = f", {'at least ' if left else ''}{len(events)} times" if len(events) > 1 else ""
    if not left or left < len(events):
        return times
    return f"{times}; the {'line is' if left == 1 else 'lines are'} no longer in the kernel log"


def clear_hint(component: str, ends: str, events: Collection[Event], known: HostEvents | None) -> str:
    """How an operator ends events whose end lumctl could not see, as the last part of a finding's advice.

    It is empty at the first observation of an event, because nothing can have been repaired yet.
    """
    if known is None or ends == "age" or not any(event.identity in known.earlier for event in events):
        return ""
    when = "it was reset, but lumctl did not see the reset" if ends == "reset" else "it was repaired without a restart"
    return f"; if {when}: lumctl health clear {component} --reason TEXT"


@dataclass(frozen=True, slots=True)
class VendorKinds:
    """The kinds of kernel events of a host's probe plug-in, by the plug-in's rules.

    Events of a ``lasting`` kind count until something ends them, regardless of their age. ``ends`` maps the kind of a
    line to the lasting kinds that it ends. ``slots`` are the PCI slots of the host's accelerators by minor number.
    """

    lasting: frozenset[str] = frozenset()
    ends: Mapping[str, frozenset[str]] = field(default_factory=dict)
    slots: Mapping[int, str] = field(default_factory=dict)

    def slot(self, event: AcceleratorEvent) -> str:
        """Where an event happened: a PCI slot; ``#`` and the minor number if no listed accelerator has it; or empty."""
        if event.pci is not None:
            return pci_slot(event.pci)
        return "" if event.minor is None else self.slots.get(event.minor, f"#{event.minor}")


def vendor_kinds(probe: str, gpus: Iterable[GpuReading]) -> VendorKinds:
    """Read the kinds from the rules of a plug-in, and the minor numbers from the accelerators that it lists."""
    rules = [rule for rule in rules_of(probe).rules if rule.event and _is_lasting(rule)]
    ended_by: dict[str, set[str]] = {}
    for rule in rules:
        ended_by.setdefault(rule.event, set()).add(rule.ended_by)
    ends: dict[str, set[str]] = {}
    for kind, names in ended_by.items():
        # A line ends a kind only if all rules about the kind name the same line.
        if len(names) == 1 and (name := next(iter(names))):
            ends.setdefault(name, set()).add(kind)
    return VendorKinds(
        frozenset(ended_by),
        {name: frozenset(kinds) for name, kinds in ends.items()},
        {gpu.minor: pci_slot(gpu.pci) for gpu in gpus if gpu.minor is not None},
    )


def _is_lasting(rule: ProbeRule) -> bool:
    return rule.line.state is not State.OK and not rule.line.window_s
