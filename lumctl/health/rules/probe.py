"""The rules of a probe plug-in, applied to one accelerator that it reads."""

from collections.abc import Iterator
from dataclasses import replace

from lumctl.fleet.readings import AcceleratorEvent, GpuReading
from lumctl.health.events import clear_hint, count_text, earliest_at
from lumctl.health.probe_rules import ProbeRule, rules_of
from lumctl.health.rulebook import QUOTED, found
from lumctl.health.rules.cases import GpuCase
from lumctl.health.states import Finding, State
from lumctl.inventory.model import NVIDIA_SMI


def plugin_rules(case: GpuCase) -> Iterator[Finding]:
    """The findings of the plug-in's rules, or that these cannot be used; then no accelerator that it reads is ok."""
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
    return f"{value:g}" if isinstance(value, int | float) else str(value)[:QUOTED]


def _by_event(case: GpuCase, rule: ProbeRule) -> Iterator[Finding]:
    line = rule.line
    events: list[AcceleratorEvent] = []
    for event in case.vendor_events:
        if rule.ended_by and event.kind == rule.ended_by:
            events.clear()
        elif event.kind == rule.event and _is_within(event, case, line.window_s):
            events.append(event)
    if len(events) >= line.limit:
        evidence = f"{events[-1].text[:QUOTED]}{count_text(events, case.events)}"
        since = earliest_at(events, default=case.read_at)
        finding = found(case.id, line.rule, line.case, evidence, since=since)
        ends = "age" if line.state is State.OK or line.window_s else "reset" if rule.ended_by else "reboot"
        yield replace(finding, advice=finding.advice + clear_hint(case.id, ends, events, case.events))


def _is_within(event: AcceleratorEvent, case: GpuCase, window_s: float) -> bool:
    return event.at is None or window_s <= 0 or event.at > case.now - window_s


RULES = (plugin_rules,)
