"""The rules as data: what each case of each rule means for a component, with its origin and the advice it gives.

The YAML files in ``rules/`` hold the knowledge (numbers, limits, states, advice); the modules ``gpu``, ``link``,
``circuit`` and ``host`` hold the tests that decide which case a component is in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any

import yaml

from lumctl.health.states import Finding, State

SCHEMA = "lumctl/health-rules/v1"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One case of a rule. ``limit`` is in the unit of the reading; infinite where the case has none.

    State ``ok`` makes a note: shown to whoever looks, but of no weight.
    """

    rule: str
    case: str
    state: State
    advice: str
    origin: str
    limit: float = inf


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All verdicts by rule and case; what each XID asks for and means."""

    edition: str
    verdicts: Mapping[tuple[str, str], Verdict]
    xid_actions: Mapping[int, str]
    xid_meanings: Mapping[int, str]

    def rules(self) -> tuple[str, ...]:
        """The ids of all rules, each once."""
        return tuple(dict.fromkeys(rule for rule, _ in self.verdicts))


@cache
def rulebook() -> Rulebook:
    """The rules that come with the program, read once."""
    verdicts: dict[tuple[str, str], Verdict] = {}
    actions: dict[int, str] = {}
    meanings: dict[int, str] = {}
    editions: set[str] = set()
    for document in _documents():
        editions.add(document["edition"])
        for rule, cases in document["rules"].items():
            for case, line in cases.items():
                verdicts[rule, case] = Verdict(rule, case, State(line.pop("state")), **line)
        actions |= {xid: action for action, xids in document.get("actions", {}).items() for xid in xids}
        meanings |= document.get("meanings", {})
    return Rulebook(max(editions), verdicts, actions, meanings)


def _documents() -> list[dict[str, Any]]:
    folder = files("lumctl.health") / "rules"
    sources = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda e: e.name)
    documents = [yaml.safe_load(source.read_text(encoding="utf-8")) for source in sources]
    return [document for document in documents if document["schema"] == SCHEMA]


def verdict(rule: str, case: str) -> Verdict:
    """One case of a rule."""
    return rulebook().verdicts[rule, case]


def has_case(rule: str, case: str) -> bool:
    """Whether a rule knows a case: for cases that a device names in its own words."""
    return (rule, case) in rulebook().verdicts


def found(component: str, rule: str, case: str, evidence: str, *, since: float) -> Finding:
    """A finding about a component: the verdict of a rule's case with what was seen.

    Errors of sessions and drivers begin with the component's name, which a finding carries already.
    """
    line = verdict(rule, case)
    return Finding(component, rule, line.state, evidence.removeprefix(f"{component}: "), line.advice, since)
