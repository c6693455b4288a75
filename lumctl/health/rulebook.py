"""The rules as data: the meaning of each case of each rule for a component, with its origin and advice.

The YAML files in ``rules/`` hold the knowledge (numbers, limits, states, windows, advice); the modules next to them
contain the tests that decide which case applies to a component.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any

import yaml

from lumctl.health import probe_rules
from lumctl.health.states import DEFAULT_GRAVITY, Finding, LooksAt, State, Verdict

SCHEMA = "lumctl/health-rules/v1"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C is nine times as fast; it saves a tenth of a second in every command that judges."""


@dataclass(frozen=True, slots=True)
class Counter:
    """How a counter counts: its width in bits, and whether it stays at its greatest value or begins again at 0.

    ``full`` is the case of link.counter-full for a full counter; ``wider`` is a wider counter of the same events.
    """

    bits: int = 64
    saturates: bool = False
    full: str = "blind"
    wider: str = ""

    @property
    def greatest(self) -> int:
        """The greatest value that it can hold."""
        return (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class XidUnit:
    """A unit of NVLink 5 as the lines of one XID name it, and the case of gpu.xid for each of its errors.

    ``patterns`` are the lowest bits of IntrInfo, which differ between generations of the driver. ``by_reason``: bits 20
    to 25 of IntrInfo select the case, and the error status is 0. For all other units the error status selects the case,
    and these bits are 0.
    """

    unit: str
    patterns: tuple[str, ...]
    by_reason: bool
    actions: Mapping[int, str]

    def action(self, intr_info: int, error_status: int) -> str | None:
        """The case for a line; ``None`` if the line is about another unit, or the error is not in the catalogue."""
        reason = intr_info >> 20 & 0x3F
        if not any(f"{intr_info:032b}".endswith(pattern) for pattern in self.patterns):
            return None
        if self.by_reason:
            return self.actions.get(reason) if error_status == 0 else None
        return self.actions.get(error_status) if reason == 0 else None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All verdicts by rule and case; what rules use; how counters count; the action and meaning of each XID."""

    edition: str
    verdicts: Mapping[tuple[str, str], Verdict]
    looks_at: Mapping[str, LooksAt]
    counters: Mapping[str, Counter]
    xid_actions: Mapping[int, str]
    xid_meanings: Mapping[int, str]
    xid_units: Mapping[int, tuple[XidUnit, ...]]
    """Units of XIDs whose log lines have more detail than their numbers."""
    sxid_cases: Mapping[int, str]
    """The case of host.nvswitch for each SXid."""
    severities: Mapping[str, str]
    """The case of device.alarm for each severity word of devices, in lower case."""
    counted_by_unit: frozenset[int]
    """XIDs whose lines name the unit of the chip, so that repeated failures of one unit can be counted."""
    forgets_after_s: float
    """If there was no observation for longer than this, earlier memory no longer counts."""

    def rules(self) -> tuple[str, ...]:
        """The ids of all rules, each once."""
        return tuple(dict.fromkeys(rule for rule, _ in self.verdicts))

    def lines(self, rule: str | None = None) -> tuple[Verdict, ...]:
        """Every case of one rule, or of all, in the order of the files."""
        return tuple(line for line in self.verdicts.values() if rule in {None, line.rule})

    def windows(self) -> dict[str, dict[float, bool]]:
        """The time spans (s) over which each counter is counted, and whether the result is a rate."""
        found: dict[str, dict[float, bool]] = {}
        for line in self.verdicts.values():
            if line.counter:
                found.setdefault(line.counter, {})[line.window_s] = line.per_s > 0
        return found


@cache
def rulebook() -> Rulebook:
    """The rules that come with the program, read once."""
    verdicts: dict[tuple[str, str], Verdict] = {}
    looks_at: dict[str, LooksAt] = {}
    counters: dict[str, Counter] = {}
    actions: dict[int, str] = {}
    meanings: dict[int, str] = {}
    units: dict[int, tuple[XidUnit, ...]] = {}
    sxids: dict[int, str] = {}
    severities: dict[str, str] = {}
    by_unit: set[int] = set()
    forgets_after_s = inf
    editions: set[str] = set()
    documents = _documents()
    # Before the rules are read: the gravity of a rule may be in another file than the rule.
    gravity = {
        name: rank for document in documents for rank, names in document.get("gravity", {}).items() for name in names
    }
    for document in documents:
        edition = document["edition"]
        editions.add(edition)
        for rule, cases in document.get("rules", {}).items():
            for case, line in cases.items():
                rank = gravity.get(f"{rule}/{case}", gravity.get(rule, DEFAULT_GRAVITY))
                state = State(line.pop("state"))
                verdicts[rule, case] = Verdict(rule, case, state, gravity=rank, edition=edition, **line)
        for rule, seen in document.get("looks-at", {}).items():
            looks_at[rule] = LooksAt(frozenset(seen.get("probes", ())), tuple(seen.get("readings", ())))
        counters |= {name: Counter(**kind) for name, kind in document.get("counters", {}).items()}
        actions |= {xid: action for action, xids in document.get("actions", {}).items() for xid in xids}
        meanings |= document.get("meanings", {})
        for entry in document.get("sub-codes", ()):
            units[entry["xid"]] = (*units.get(entry["xid"], ()), _unit(entry))
        sxids |= {sxid: case for case, listed in document.get("sxids", {}).items() for sxid in listed}
        severities |= {word: case for case, words in document.get("severities", {}).items() for word in words}
        by_unit |= set(document.get("counted-by-unit", ()))
        forgets_after_s = min(forgets_after_s, document.get("forgets-after-s", inf))
    return Rulebook(
        max(editions),
        verdicts,
        looks_at,
        counters,
        actions,
        meanings,
        units,
        sxids,
        severities,
        frozenset(by_unit),
        forgets_after_s,
    )


# The fields of an entry that are not cases.
_XID_UNIT = frozenset({"xid", "unit", "before-575", "since-575", "by"})


def _unit(entry: Mapping[str, Any]) -> XidUnit:
    actions = {code: case for case in entry.keys() - _XID_UNIT for code in entry[case]}
    patterns = (entry["before-575"], entry["since-575"])
    return XidUnit(entry["unit"], patterns, entry.get("by") == "reason", actions)


def _documents() -> list[dict[str, Any]]:
    folder = files("lumctl.health") / "rules"
    sources = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda e: e.name)
    documents = [yaml.load(source.read_text(encoding="utf-8"), _LOADER) for source in sources]  # noqa: S506 - a safe one
    return [document for document in documents if document["schema"] == SCHEMA]


def verdict(rule: str, case: str) -> Verdict:
    """One case of a rule, of lumctl itself or of a probe plug-in."""
    line = rulebook().verdicts.get((rule, case))
    return line if line is not None else probe_rules.verdicts_of(rule)[case]


def has_case(rule: str, case: str) -> bool:
    """Whether a rule knows a case: for cases that a device names in its own words."""
    return (rule, case) in rulebook().verdicts or case in probe_rules.verdicts_of(rule)


def looks_at(rule: str) -> LooksAt:
    """The probes and readings that a rule uses."""
    seen = rulebook().looks_at.get(rule)
    return seen if seen is not None else probe_rules.looks_at_of(rule)


def all_lines() -> tuple[Verdict, ...]:
    """Every case of every rule: those of lumctl itself, then those of the installed probe plug-ins."""
    return (*rulebook().lines(), *probe_rules.all_lines())


def lines_of(rule: str) -> tuple[Verdict, ...]:
    """Every case of one rule, of lumctl itself or of a probe plug-in."""
    return rulebook().lines(rule) or tuple(probe_rules.verdicts_of(rule).values())


def all_rules() -> tuple[str, ...]:
    """The ids of the rules of :func:`all_lines`, each once."""
    return tuple(dict.fromkeys(line.rule for line in all_lines()))


QUOTED = 160
"""Characters of a log line or of a device's text that a finding repeats."""
COMPONENT, ABOUT = "COMPONENT", "ABOUT"
"""The places of the component's name, and of what distinguishes the finding, in the commands of an advice."""


def advice_of(line: Verdict, component: str, about: str = "") -> str:
    """The advice of a case for this component."""
    return line.advice.replace(COMPONENT, component).replace(ABOUT, about)


def found(component: str, rule: str, case: str, evidence: str, *, since: float, about: str = "") -> Finding:
    """A finding about a component: the verdict of a rule's case, with the evidence, and its advice for this component.

    Errors of sessions and drivers begin with the component's name; it is removed, because a finding has it already.
    """
    line = verdict(rule, case)
    evidence = evidence.removeprefix(f"{component}: ").removeprefix(f"{component} at ")
    advice = advice_of(line, component, about)
    return Finding(component, rule, line.state, evidence, advice, since, case, about=about, gravity=line.gravity)
