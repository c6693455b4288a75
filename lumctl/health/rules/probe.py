"""The rules that a probe plug-in brings as data, asked about one accelerator that it reads."""

from collections.abc import Iterator
from dataclasses import replace

from lumctl.fleet.readings import AcceleratorEvent, GpuReading
from lumctl.health.events import clear_hint, count_text
from lumctl.health.probe_rules import ProbeRule, rules_of
from lumctl.health.rulebook import found
from lumctl.health.rules.cases import GpuCase
from lumctl.health.states import Finding, State
from lumctl.inventory.model import NVIDIA_SMI

_MOST_CHARACTERS = 160


def plugin_rules(case: GpuCase) -> Iterator[Finding]:
    """Every rule of the plug-in; without them nothing that it reads can be ok."""
    if case.probe == NVIDIA_SMI:
        return
    known = rules_of(case.probe)
    if known.problem:
        yield found(case.id, "gpu.probe", "rules", known.problem, since=case.read_at)
    for rule in known.rules:
        if rule.event:
            yield from _by_event(case, rule)
        elif case.reading is not None:
            yield from _by_reading(case, case.reading, rule)


def _by_reading(case: GpuCase, reading: GpuReading, rule: ProbeRule) -> Iterator[Finding]:
    line, name = rule.line, rule.reading
    value = reading.vendor_values.get(name, getattr(reading, name, None))
    if rule.among:
        hit = value in rule.among
    else:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        hit = number is not None and (number > line.limit if line.strict else number >= line.limit)
    if hit:
        evidence = f"{name.replace('_', ' ')}: {_said(value)} {line.unit}".rstrip()
        yield found(case.id, line.rule, line.case, evidence, since=case.read_at)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else str(value)[:_MOST_CHARACTERS]


def _by_event(case: GpuCase, rule: ProbeRule) -> Iterator[Finding]:
    line = rule.line
    events: list[AcceleratorEvent] = []
    for event in case.vendor_events:
        if rule.ended_by and event.kind == rule.ended_by:
            events.clear()
        elif event.kind == rule.event and _is_within(event, case, line.window_s):
            events.append(event)
    if len(events) >= line.limit:
        evidence = f"{events[-1].text[:_MOST_CHARACTERS]}{count_text(events, case.events)}"
        since = min((event.at for event in events if event.at is not None), default=case.read_at)
        finding = found(case.id, line.rule, line.case, evidence, since=since)
        ends = "age" if line.state is State.OK or line.window_s else "reset" if rule.ended_by else "reboot"
        yield replace(finding, advice=finding.advice + clear_hint(case.id, ends, events, case.events))


def _is_within(event: AcceleratorEvent, case: GpuCase, window_s: float) -> bool:
    return event.at is None or window_s <= 0 or event.at > case.now - window_s


RULES = (plugin_rules,)
