"""The rules of probe plug-ins, which are data: each YAML file is read and checked once.

A rule uses one value of an accelerator's reading, or one kind of the plug-in's kernel events. Its cases have the fields
of lumctl's own rules; in addition, ``when`` names what they use.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any, get_type_hints

import yaml

from lumctl.errors import UsageError
from lumctl.fleet.probe_api import AcceleratorProbe
from lumctl.fleet.probe_plugins import file_of, installed, load
from lumctl.fleet.readings import GpuReading
from lumctl.health.states import LooksAt, State, Verdict
from lumctl.inventory.problems import nearest

SCHEMA = "lumctl/probe-rules/v1"
_TOP = ("schema", "edition", "rules")
_NUMBERS = ("limit", "window_s", "appears_after_s", "appears_looks", "clears_after_s")
_TEXTS = ("advice", "origin", "unit")
_CASE = ("when", "state", "strict", *_TEXTS, *_NUMBERS)
_WHEN = ("reading", "is", "event", "ended-by")
_SIMPLE = (float | None, int | None, bool | None, str | None)
_STANDARD = frozenset(name for name, hint in get_type_hints(GpuReading).items() if hint in _SIMPLE)
"""The standard readings that a rule may use."""


class ProbeRulesError(UsageError):
    """The rules of a plug-in have errors; ``problems`` lists all, each with file and line."""

    def __init__(self, probe: str, problems: tuple[str, ...]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"the rules of probe {probe!r} cannot be used: {problems[0]}{more}")
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ProbeRule:
    """One case of a rule. It applies if ``reading`` is one of ``among`` or reaches the limit of ``line``.

    With ``event``, it applies if the number of such events reaches the limit; an event ``ended_by`` ends all earlier
    ones.
    """

    line: Verdict
    reading: str = ""
    among: tuple[object, ...] = ()
    event: str = ""
    ended_by: str = ""


@dataclass(frozen=True, slots=True)
class ProbeRules:
    """The rules of one plug-in; if they cannot be used, ``problem`` says why."""

    rules: tuple[ProbeRule, ...] = ()
    problem: str = ""


def rules_of(probe: str) -> ProbeRules:
    """The rules of the plug-in of that name."""
    try:
        return _rules(load(probe))  # type: ignore[arg-type] # mypy takes the class for an instance
    except UsageError as error:
        return ProbeRules(problem=error.message)


# By class and not by name: the test kit replaces an installed class by another one.
@cache
def _rules(probe: type[AcceleratorProbe]) -> ProbeRules:
    try:
        return ProbeRules(read_rules(probe))
    except UsageError as error:
        return ProbeRules(problem=error.message)


def read_rules(probe: type[AcceleratorProbe]) -> tuple[ProbeRule, ...]:
    """Read and check the rules of a plug-in.

    Raises:
        ProbeRulesError: the file cannot be read, or its content is invalid.
    """
    path = file_of(probe, probe.rules)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ProbeRulesError(probe.name, (f"{path}: {getattr(error, 'strerror', None) or error}",)) from error
    reader = _Reader(probe, str(path))
    try:
        document = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        raise ProbeRulesError(probe.name, (f"{path}:{line}: {getattr(error, 'problem', error)}",)) from error
    rules = tuple(reader.rules(document))
    if reader.problems:
        raise ProbeRulesError(probe.name, tuple(reader.problems))
    return rules


def verdicts_of(rule: str) -> Mapping[str, Verdict]:
    """The cases of a plug-in's rule, by its id ``gpu.PROBE.RULE``; empty if no plug-in has it."""
    return {each.line.case: each.line for each in _of_rule(rule)}


def looks_at_of(rule: str) -> LooksAt:
    """The probes and readings that a rule of a plug-in uses."""
    found = _of_rule(rule)
    probes = frozenset("kernel" if each.event else "gpu" for each in found)
    return LooksAt(probes, tuple(dict.fromkeys(each.reading or "accelerator_events" for each in found)))


def all_lines() -> tuple[Verdict, ...]:
    """Every case of every rule of the plug-ins that are installed."""
    return tuple(each.line for offer in installed() for each in rules_of(offer.name).rules)


def _of_rule(rule: str) -> list[ProbeRule]:
    # The name may come from a store or a user, so only the probes that are installed are loaded.
    family, _, rest = rule.partition(".")
    probe, named, _ = rest.partition(".")
    if family != "gpu" or not named or probe not in {offer.name for offer in installed()}:
        return []
    return [each for each in rules_of(probe).rules if each.line.rule == rule]


class _Reader:
    """Reads a document from its nodes, which know their lines; ``problems`` collects the errors."""

    def __init__(self, probe: type[AcceleratorProbe], path: str) -> None:
        self.problems: list[str] = []
        self._probe = probe
        self._path = path

    def rules(self, document: yaml.Node | None) -> Iterator[ProbeRule]:
        if document is None:
            self.problems.append(f"{self._path}:1: is empty")
            return
        top = self._mapping(document, _TOP)
        schema = self._value(top.get("schema"))
        if schema != SCHEMA:
            self._note(top.get("schema", document), f"found schema {schema!r}, expected {SCHEMA!r}")
        edition = self._value(top.get("edition"))
        if not isinstance(edition, str):
            self._note(top.get("edition", document), 'expected edition, a quoted date such as "2026-11-25"')
        if "rules" not in top:
            self._note(document, "expected rules")
            return
        for rule, cases in self._mapping(top["rules"]).items():
            if not rule.startswith(f"gpu.{self._probe.name}.") or rule.count(".") != 2:  # noqa: PLR2004 - dots
                self._note(cases, f"found rule {rule!r}, expected gpu.{self._probe.name}.NAME")
            for case, node in self._mapping(cases).items():
                found = self._case(rule, case, node, str(edition))
                if found is not None:
                    yield found

    def _case(self, rule: str, case: str, node: yaml.Node, edition: str) -> ProbeRule | None:
        before = len(self.problems)
        entry = self._mapping(node, _CASE)
        said: dict[str, Any] = {}
        for name in _NUMBERS:
            if name in entry:
                said[name] = self._number(name, entry[name])
        for name in _TEXTS:
            text = self._value(entry[name]) if name in entry else ""
            if not isinstance(text, str) or (not text and name != "unit"):
                self._note(entry.get(name, node), f"expected {name}, a text")
            said[name] = text
        if "strict" in entry:
            said["strict"] = self._value(entry["strict"]) is True
        word = self._value(entry.get("state"))
        states = [str(state) for state in State if state is not State.DISABLED]
        if word not in states:
            self._note(entry.get("state", node), _unknown("state", word, states))
        when = self._mapping(entry["when"], _WHEN) if "when" in entry else {}
        looks = {"reading", "event"} & when.keys()
        if len(looks) != 1:
            self._note(entry.get("when", node), "expected when, with either a reading or an event")
        elif "reading" in looks:
            self._check_reading(when, has_limit="limit" in entry)
        else:
            self._check_event(when)
        if len(self.problems) > before:
            return None
        # A case about an event may state none: then one event is enough.
        said.setdefault("limit", 1.0)
        line = Verdict(rule, case, State(word), said.pop("advice"), said.pop("origin"), edition=edition, **said)
        among = self._value(when.get("is")) if "is" in when else ()
        return ProbeRule(
            line,
            reading=str(self._value(when.get("reading")) or ""),
            among=tuple(among) if isinstance(among, list | tuple) else (among,),
            event=str(self._value(when.get("event")) or ""),
            ended_by=str(self._value(when.get("ended-by")) or ""),
        )

    def _check_reading(self, when: Mapping[str, yaml.Node], *, has_limit: bool) -> None:
        name = self._value(when["reading"])
        known = sorted({*self._probe.values, *_STANDARD})
        if name not in known:
            self._note(when["reading"], _unknown("reading", name, known))
        if ("is" in when) is has_limit:
            self._note(when["reading"], "expected either `is` or `limit` for a reading")
        if "ended-by" in when:
            self._note(when["ended-by"], "found ended-by, which is only allowed for an event")

    def _check_event(self, when: Mapping[str, yaml.Node]) -> None:
        kinds = sorted({line.kind for line in self._probe.kernel_lines})
        for key in ("event", "ended-by"):
            if key in when and self._value(when[key]) not in kinds:
                self._note(when[key], _unknown("event", self._value(when[key]), kinds))
        if "is" in when:
            self._note(when["is"], "found is, which is only allowed for a reading")

    def _number(self, name: str, node: yaml.Node) -> float | int:
        value = self._value(node)
        whole = name == "appears_looks"
        kinds = int if whole else int | float
        if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value) or value < 0:
            self._note(node, f"found {name} {value!r}, expected a {'whole ' if whole else ''}number of at least 0")
            return 0
        return value

    def _mapping(self, node: yaml.Node, known: tuple[str, ...] | None = None) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            self._note(node, "expected a mapping")
            return {}
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if known is not None and name not in known:
                self._note(key, _unknown("field", name, known))
            # YAML's own loader silently keeps the last of two equal keys.
            elif name in found:
                self._note(key, f"found {name!r} twice")
            else:
                found[name] = value
        return found

    @staticmethod
    def _value(node: yaml.Node | None) -> Any:
        # Values are made from their nodes one at a time, because only a node knows its line.
        return None if node is None else yaml.SafeLoader("").construct_document(node)

    def _note(self, node: yaml.Node, problem: str) -> None:
        self.problems.append(f"{self._path}:{node.start_mark.line + 1}: {problem}")


def _unknown(what: str, found: object, known: tuple[str, ...] | list[str]) -> str:
    near = nearest(str(found), known)
    meant = f"did you mean {near}? " if near else ""
    listed = ", ".join(known) if len(known) < 12 else ""  # noqa: PLR2004 - more fill no line
    return f"found {what} {found!r}, which is not known; {meant}{f'known: {listed}' if listed else ''}".rstrip(" ;")
