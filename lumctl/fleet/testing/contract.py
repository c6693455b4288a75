"""The rules that a probe must keep, each with a test that states what breaks it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lumctl.fleet.probe_api import AcceleratorProbe, GpuReading
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, visible
from lumctl.fleet.probe_plugins import complaint, under_test
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeOutcome, ProbeStatus, Snapshot
from lumctl.fleet.testing.fixtures import KERNEL_LOG, Fixture, FixtureError, fixtures_of
from lumctl.health.memory import Memory
from lumctl.health.probe_rules import ProbeRulesError, read_rules
from lumctl.inventory.model import Accelerator, Host, Inventory, Rack, Role, Thresholds

_AT = 1_760_000_000.0
_BOOTED_AT = _AT - 3600.0
_HOST = "host"


@dataclass(frozen=True, slots=True)
class Judged:
    """The state of each accelerator by its PCI address, the rules with findings, and its reading.

    ``misbehaved`` states what the probe did wrong; it is empty if the probe returned a report.
    """

    states: Mapping[str, str]
    rules: Mapping[str, frozenset[str]]
    readings: Mapping[str, GpuReading]
    misbehaved: str = ""


def judged(probe: type[AcceleratorProbe], files: Mapping[str, str], accelerators: Iterable[str]) -> Judged:
    """Judge one host with these accelerators. Each command prints its file; a command without one does not answer."""
    gathered = Gathered(booted_at=_BOOTED_AT)
    outcomes: dict[str, ProbeOutcome] = {}
    misbehaved = ""
    for each in probes_for((), sudo=False, accelerators=probe.name):
        name = each.file or (KERNEL_LOG if each.name == "kernel" else "")
        # A host always has a kernel log; without a fixture for it, it is empty of events.
        if name not in files and each.name != "kernel":
            continue
        status, detail = each.take(ProbeAnswer(0, files.get(name, "[    0.000000] Linux version\n")), _AT, gathered)
        outcomes[each.name] = ProbeOutcome(each.name, status, _AT, 0.1, detail)
        if status is ProbeStatus.FAILED and detail.startswith(f"probe {probe.name!r} of "):
            misbehaved = detail
    seen = HostSnapshot(
        _HOST, _AT, reachable=True, probes=outcomes, booted_at=_BOOTED_AT, **visible(gathered, outcomes, None)
    )
    owned = tuple(accelerators)
    report = Memory().judge(
        _inventory(probe.name, owned), Snapshot(_AT, 0.0, {_HOST: seen}), (), losses={}, devices={}, now=_AT
    )
    found = report.accelerators
    return Judged(
        {pci: str(found[pci].state) for pci in owned},
        {pci: frozenset(finding.rule for finding in found[pci].findings) for pci in owned},
        {reading.pci: reading for reading in gathered.gpus},
        misbehaved,
    )


def _inventory(probe: str, accelerators: tuple[str, ...]) -> Inventory:
    return Inventory(
        path=Path("fixture.yaml"),
        digest="",
        racks={"rack": Rack("rack")},
        hosts={_HOST: Host(_HOST, "rack", _HOST, probe=probe)},
        accelerators={
            pci: Accelerator(pci, _HOST, "rack", "accelerator", 80.0, Role.ACTIVE, index, pci=pci)
            for index, pci in enumerate(accelerators)
        },
        transponders={},
        devices={},
        jobs={},
        thresholds=Thresholds(),
    )


_DAMAGED_A_LINE = 3
_MOST_MUTATIONS = 40
"""How many mutations of each kind are tested for each file. Every run picks the same ones."""
_NONSENSE = (
    "", "\n", "{}", "[]", "null", "[1, 2]", '{"a": [', "<html></html>", "\x00\x01\x02", "error: 5\n", "," * 99,
)  # fmt: skip
_PLAUSIBLE: Mapping[str, tuple[float, float, str]] = {
    "temperature_c": (-40, 150, "degrees Celsius"),
    "temperature_slowdown_c": (40, 150, "degrees Celsius"),
    "memory_temperature_c": (-40, 150, "degrees Celsius"),
    "memory_temperature_max_c": (40, 150, "degrees Celsius"),
    "utilization_percent": (0, 100, "percent"),
    "memory_utilization_percent": (0, 100, "percent"),
    "memory_total_mib": (256, 8 * 2**20, "MiB"),
    "memory_used_mib": (0, 8 * 2**20, "MiB"),
    "power_w": (0, 5000, "watts"),
    "power_limit_w": (10, 5000, "watts"),
    "sm_clock_mhz": (0, 10_000, "MHz"),
    "sm_clock_max_mhz": (100, 10_000, "MHz"),
    "pcie_generation": (1, 8, "a generation"),
    "pcie_generation_max": (1, 8, "a generation"),
    "pcie_width": (1, 32, "lanes"),
    "pcie_width_max": (1, 32, "lanes"),
}
"""The range of a reading in its proper unit, and that unit."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule: ``broken`` states how the probe breaks it, and is empty if the probe keeps it."""

    rule: str
    text: str
    broken: str = ""


def check_probe(probe: type[AcceleratorProbe]) -> tuple[RuleResult, ...]:
    """Test a probe against every rule, without any host. Without fixtures, the rules that need them count as broken."""
    return tuple(RuleResult(rule, text, broken_by(probe, rule)) for rule, (text, _) in RULES.items())


def broken_by(probe: type[AcceleratorProbe], rule: str) -> str:
    """How a probe breaks one rule; empty if the probe keeps it."""
    try:
        with under_test(probe):
            return next(RULES[rule][1](probe), "")
    except FixtureError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a probe under test may do anything
        return f"{type(error).__name__}: {error}"


def _declaration(probe: type[AcceleratorProbe]) -> Iterator[str]:
    if vars(probe).get("api_version") != 1:
        yield "it does not state api_version = 1 itself"
    wrong = complaint(probe, probe.name)
    if wrong:
        yield f"it {wrong}"
    if probe.proven == AcceleratorProbe.proven:
        yield "it does not state what it was tested on, or that it was not run on hardware"


def _times(probe: type[AcceleratorProbe]) -> Iterator[str]:
    limit = Thresholds().stale_after_s
    for command in probe.commands:
        if command.needed and command.every_s + command.deadline_s > limit:
            yield (
                f"{command.run}: every_s {command.every_s:g} and deadline_s {command.deadline_s:g} are together more "
                f"than {limit:g} s, the maximum age of a reading"
            )


def _rules(probe: type[AcceleratorProbe]) -> Iterator[str]:
    try:
        rules = read_rules(probe)
    except ProbeRulesError as error:
        yield "; ".join(error.problems)
        return
    told = {rule.event for rule in rules} | {rule.ended_by for rule in rules}
    for line in probe.kernel_lines:
        if line.kind not in told:
            yield f"no rule checks kernel lines of kind {line.kind!r}"


def _fixtures(probe: type[AcceleratorProbe]) -> Iterator[str]:
    fixtures = fixtures_of(probe)
    states = {expected.state for fixture in fixtures for expected in fixture.expected.values()}
    if "ok" not in states or states <= {"ok"}:
        yield "the fixtures contain no accelerator that is ok, or none that is not ok"
    for fixture in fixtures:
        found = judged(probe, fixture.files, fixture.expected)
        if found.misbehaved:
            yield f"{fixture.name}: {found.misbehaved}"
        yield from _differences(fixture, found)


def _differences(fixture: Fixture, found: Judged) -> Iterator[str]:
    for pci, expected in fixture.expected.items():
        where = f"{fixture.name}: {pci}"
        reading = found.readings.get(pci)
        for name, wanted in (expected.readings or {}).items():
            value = None if reading is None else reading.vendor_values.get(name, getattr(reading, name, None))
            if value != wanted:
                yield f"{where}: {name} is {value!r}, expected {wanted!r}"
        if found.states[pci] != expected.state:
            rules = ", ".join(sorted(found.rules[pci])) or "no rule"
            yield f"{where} is {found.states[pci]} ({rules}), expected {expected.state}"
        for rule in expected.rules:
            if rule not in found.rules[pci]:
                yield f"{where}: rule {rule} found nothing"


def _units(probe: type[AcceleratorProbe]) -> Iterator[str]:
    for fixture in fixtures_of(probe):
        for reading in judged(probe, fixture.files, fixture.expected).readings.values():
            yield from (f"{fixture.name}: {reading.pci}: {wrong}" for wrong in _implausible(reading))


def _implausible(reading: GpuReading) -> Iterator[str]:
    for name, (least, most, unit) in _PLAUSIBLE.items():
        value = getattr(reading, name)
        if value is not None and not least <= value <= most:
            yield f"{name} is {value:g}, which is not in {unit}"
    used, total = reading.memory_used_mib, reading.memory_total_mib
    if used is not None and total is not None and used > total:
        yield f"memory_used_mib {used:g} is more than memory_total_mib {total:g}"


def _cut(text: str) -> Iterator[str]:
    """For each line, the text up to the middle of it. A text that ends with a line could be a valid, shorter table."""
    lines = text.splitlines(keepends=True)
    for count, line in enumerate(lines):
        if len(line) > 2:  # noqa: PLR2004 - a character and the end of the line
            yield "".join(lines[:count]) + line[: len(line) // 2]


def _without_a_line(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    yield from ("".join([*lines[:at], *lines[at + 1 :]]) for at in range(len(lines)))


def _damaged(text: str) -> Iterator[str]:
    """The text with one character replaced. Every run replaces the same ones."""
    chance, lines = Random(text), text.splitlines(keepends=True)  # noqa: S311 - no secret
    for at, line in enumerate(lines):
        places = [place for place, character in enumerate(line) if not character.isspace()]
        for place in chance.sample(places, min(_DAMAGED_A_LINE, len(places))):
            damaged = f"{line[:place]}\x00{line[place + 1 :]}"
            yield "".join([*lines[:at], damaged, *lines[at + 1 :]])


def _mutations(how: Callable[[str], Iterator[str]]) -> Callable[[type[AcceleratorProbe]], Iterator[str]]:
    def broken(probe: type[AcceleratorProbe]) -> Iterator[str]:
        for fixture in fixtures_of(probe):
            untouched = judged(probe, fixture.files, fixture.expected)
            for name, text in fixture.files.items():
                if name == KERNEL_LOG:
                    continue  # a dropped or damaged kernel line leaves nothing to find
                mutations = list(enumerate(how(text)))
                chance = Random(f"{fixture.name}/{name}")  # noqa: S311 - no secret
                for number, mutated in chance.sample(mutations, min(_MOST_MUTATIONS, len(mutations))):
                    found = judged(probe, {**fixture.files, name: mutated}, fixture.expected)
                    for wrong in _wrongs(fixture, untouched, found, cut=how is _cut):
                        yield f"{fixture.name}: {name}, mutation {number}: {wrong}"

    return broken


def _wrongs(fixture: Fixture, untouched: Judged, found: Judged, *, cut: bool) -> Iterator[str]:
    if found.misbehaved:
        yield found.misbehaved
    for pci in fixture.expected:
        if untouched.states[pci] != "ok" and found.states[pci] == "ok":
            yield f"{pci} is {untouched.states[pci]}, but was reported as ok"
        if cut and untouched.states[pci] == "ok" and found.states[pci] == "failed":
            yield (
                f"{pci} is ok, but was reported as failed: a truncated answer does not prove that a component is absent"
            )


def _nonsense(probe: type[AcceleratorProbe]) -> Iterator[str]:
    """Test that no accelerator is ok and nothing is raised if a tool prints nonsense."""
    fixture = fixtures_of(probe)[0]
    for text in _NONSENSE:
        for name in (name for name in fixture.files if name != KERNEL_LOG):
            found = judged(probe, dict.fromkeys(fixture.files, text) | {KERNEL_LOG: "", name: text}, fixture.expected)
            if found.misbehaved:
                yield f"if a tool prints {text[:20]!r}: {found.misbehaved}"
            if "ok" in found.states.values():
                yield f"if a tool prints {text[:20]!r}, an accelerator is ok"


def _purity(probe: type[AcceleratorProbe]) -> Iterator[str]:
    for fixture in fixtures_of(probe):
        first, second = (judged(probe, fixture.files, fixture.expected) for _ in range(2))
        if first != second:
            yield f"{fixture.name}: the same outputs give other readings the second time"


RULES: Mapping[str, tuple[str, Callable[[type[AcceleratorProbe]], Iterator[str]]]] = {
    "declaration": ("it declares what it is, and what it was tested on", _declaration),
    "times": ("required commands run often enough to keep readings fresh", _times),
    "rules": ("its rules are valid, and check every kind of kernel line that it reads", _rules),
    "fixtures": ("its fixtures give the readings and verdicts that they state", _fixtures),
    "units": ("its readings are in the units of GpuReading", _units),
    "purity": ("the same outputs give the same readings", _purity),
    "nonsense": ("output that it cannot parse raises nothing and makes no accelerator ok", _nonsense),
    "cut": ("a truncated answer makes no bad accelerator ok, and no good one lost", _mutations(_cut)),
    "dropped-lines": ("an answer that lacks a line makes no bad accelerator ok", _mutations(_without_a_line)),
    "damage": ("a damaged character makes no bad accelerator ok", _mutations(_damaged)),
}
"""Each rule of the contract: its text and its test."""
