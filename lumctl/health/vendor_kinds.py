"""Which kernel events of a probe plug-in last, and which lines end them, by the rules that the plug-in brings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lumctl.fleet.readings import AcceleratorEvent, GpuReading
from lumctl.health.identity import pci_slot
from lumctl.health.probe_rules import ProbeRule, rules_of
from lumctl.health.states import State


@dataclass(frozen=True, slots=True)
class VendorKinds:
    """The kinds of kernel events of a host's probe plug-in, by the plug-in's rules.

    The ``lasting`` ones count until something ends them, whatever their age; ``ends`` maps the kind of a line to the
    lasting kinds that it ends. ``slots`` are the PCI slots of the host's accelerators by their minor numbers.
    """

    lasting: frozenset[str] = frozenset()
    ends: Mapping[str, frozenset[str]] = field(default_factory=dict)
    slots: Mapping[int, str] = field(default_factory=dict)

    def slot(self, event: AcceleratorEvent) -> str:
        """Where an event happened: a PCI slot, or a number of which no accelerator is listed."""
        if event.pci is not None:
            return pci_slot(event.pci)
        return "" if event.minor is None else self.slots.get(event.minor, f"#{event.minor}")


def vendor_kinds(probe: str, gpus: Iterable[GpuReading]) -> VendorKinds:
    """Read them from the rules of a plug-in, and the numbers from the accelerators that it lists."""
    rules = [rule for rule in rules_of(probe).rules if rule.event and _is_lasting(rule)]
    ended_by: dict[str, set[str]] = {}
    for rule in rules:
        ended_by.setdefault(rule.event, set()).add(rule.ended_by)
    ends: dict[str, set[str]] = {}
    for kind, names in ended_by.items():
        # A line ends what all rules about it agree on.
        if len(names) == 1 and (name := next(iter(names))):
            ends.setdefault(name, set()).add(kind)
    return VendorKinds(
        frozenset(ended_by),
        {name: frozenset(kinds) for name, kinds in ends.items()},
        {gpu.minor: pci_slot(gpu.pci) for gpu in gpus if gpu.minor is not None},
    )


def _is_lasting(rule: ProbeRule) -> bool:
    return rule.line.state is not State.OK and not rule.line.window_s
