"""The rules as data: the meaning of each case of each rule for a component, with its origin and advice.

The YAML files in ``rules/`` hold the knowledge (numbers, limits, states, windows, advice); the modules beside them
hold the tests that decide which case applies to a component.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import inf
from types import ModuleType
from typing import Any

import yaml

from lumctl.health.states import DEFAULT_GRAVITY, Finding, State

SCHEMA = "lumctl/health-rules/v1"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C nine times as fast: a tenth of a second of every command that judges."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case of a rule. ``limit`` has the unit ``unit`` of the reading; it is infinite if the case has none.

    If a case counts, ``counter`` names the count, ``window_s`` is its time span, and ``per_s`` makes it a rate (0:
    the events of the window). ``strict``: the limit itself is still ok. ``limits`` are further numbers by name.

    A finding becomes active after its case was seen for ``appears_after_s`` and in ``appears_looks`` new readings,
    and stays until the case was not seen for ``clears_after_s``. State ``ok`` makes a note, which is shown but has no
    weight. ``gravity`` ranks findings of equal states. ``edition`` is that of the file. ``ends`` is what ends an
    event of the kernel log: ``age``, ``reset`` (a GPU reset or a reboot of its host), or ``reboot``; an operator may
    end it as well.
    """

    rule: str
    case: str
    state: State
    advice: str
    origin: str
    limit: float = inf
    unit: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    counter: str = ""
    window_s: float = 0.0
    per_s: float = 0.0
    strict: bool = False
    appears_after_s: float = 0.0
    appears_looks: int = 1
    clears_after_s: float = 0.0
    ends: str = "age"
    gravity: int = DEFAULT_GRAVITY
    edition: str = ""

    @property
    def at_once(self) -> bool:
        """Whether one look is enough to find it."""
        return self.appears_looks <= 1 and self.appears_after_s <= 0

    def reached_by(self, events: int) -> bool:
        """Whether the number of events in the window fulfils the case."""
        value = self.rate(events)
        return value > self.limit if self.strict else value >= self.limit

    def rate(self, events: int) -> float:
        """So many events in the window, in the unit of the limit."""
        return events * self.per_s / self.window_s if self.per_s else events


@dataclass(frozen=True, slots=True)
class Counter:
    """How a counter counts: in so many bits, and whether it stays at its greatest value or begins again at 0.

    ``full`` is the case of link.counter-full that it makes when it is full; ``wider`` is a counter that sees the same.
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
class LooksAt:
    """What a rule looks at: the probes without which it sees nothing, and the readings by their names."""

    probes: frozenset[str] = frozenset()
    readings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class XidUnit:
    """A unit of NVLink 5 as the lines of one XID name it, and the case of gpu.xid for each of its errors.

    ``patterns`` are the lowest bits of IntrInfo, which differ between generations of the driver. ``by_reason``: bits 20
    to 25 of it decide, which are 0 of every other unit; else the error status does.
    """

    unit: str
    patterns: tuple[str, ...]
    by_reason: bool
    actions: Mapping[int, str]

    def action(self, intr_info: int, error_status: int) -> str | None:
        """The case for a line; ``None`` if the line is of another unit, or the error is not in the catalogue."""
        reason = intr_info >> 20 & 0x3F
        if not any(f"{intr_info:032b}".endswith(pattern) for pattern in self.patterns):
            return None
        if self.by_reason:
            return self.actions.get(reason) if error_status == 0 else None
        return self.actions.get(error_status) if reason == 0 else None


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All verdicts by rule and case; what rules look at; how counters count; what each XID asks for and means."""

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
    return line if line is not None else _probe_rules().verdicts_of(rule)[case]


def has_case(rule: str, case: str) -> bool:
    """Whether a rule knows a case: for cases that a device names in its own words."""
    return (rule, case) in rulebook().verdicts or case in _probe_rules().verdicts_of(rule)


def looks_at(rule: str) -> LooksAt:
    """What a rule looks at."""
    seen = rulebook().looks_at.get(rule)
    return seen if seen is not None else _probe_rules().looks_at_of(rule)


def all_lines() -> tuple[Verdict, ...]:
    """Every case of every rule: those of lumctl itself, then those of the probe plug-ins that are installed."""
    return (*rulebook().lines(), *_probe_rules().all_lines())


def lines_of(rule: str) -> tuple[Verdict, ...]:
    """Every case of one rule, of lumctl itself or of a probe plug-in."""
    return rulebook().lines(rule) or tuple(_probe_rules().verdicts_of(rule).values())


def all_rules() -> tuple[str, ...]:
    """The ids of all rules, each once, as of :func:`all_lines`."""
    return tuple(dict.fromkeys(line.rule for line in all_lines()))


def _probe_rules() -> ModuleType:
    """The rules of plug-ins, which most racks never ask for."""
    from lumctl.health import probe_rules  # noqa: PLC0415 - it is made of what is in this module

    return probe_rules


def found(component: str, rule: str, case: str, evidence: str, *, since: float, about: str = "") -> Finding:
    """A finding about a component: the verdict of a rule's case with what was seen.

    Errors of sessions and drivers begin with the component's name, which a finding carries already.
    """
    line = verdict(rule, case)
    evidence = evidence.removeprefix(f"{component}: ").removeprefix(f"{component} at ")
    return Finding(component, rule, line.state, evidence, line.advice, since, case, about=about, gravity=line.gravity)
