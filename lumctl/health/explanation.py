"""Why a component is in its state, as data: the rules that judged it, the readings that they used, their findings."""

from collections.abc import Mapping
from dataclasses import dataclass

from lumctl.devices.types import DeviceReading
from lumctl.errors import UsageError
from lumctl.fleet.readings import Snapshot
from lumctl.health.readings_text import ENDED_WELL, ReadingText, readings_of
from lumctl.health.rulebook import all_lines, lines_of, looks_at, rulebook, verdict
from lumctl.health.states import CircuitHealth, Finding, Health, HealthReport, Incident, State, Verdict, kind_and_id
from lumctl.inventory.model import NVIDIA_SMI, Inventory, Role
from lumctl.inventory.problems import nearest

_FAMILIES = {"accelerator": "gpu.", "link": "link.", "circuit": "circuit.", "host": "host.", "device": "device."}


@dataclass(frozen=True, slots=True)
class ExplainedFinding:
    """A finding with its rule's case in the rulebook (limit, window, origin, edition)."""

    finding: Finding
    line: Verdict


@dataclass(frozen=True, slots=True)
class Check:
    """One rule for components of this kind: its cases, the readings of this component that it uses, and the result.

    ``told`` is false if the rule could not judge because its probes returned nothing in this observation. ``found`` is
    whether it has findings.
    """

    rule: str
    cases: tuple[Verdict, ...]
    readings: tuple[ReadingText, ...]
    told: bool
    found: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about the state of one component. ``because`` gives the reason for the state in one line."""

    component: str
    kind: str
    state: State
    because: str
    read_at: float | None
    maintenance: str | None
    standing: tuple[ExplainedFinding, ...]
    checks: tuple[Check, ...]
    incidents: tuple[Incident, ...]


def explain(
    report: HealthReport,
    component: str,
    *,
    inventory: Inventory,
    snapshot: Snapshot,
    devices: Mapping[str, DeviceReading],
) -> tuple[Explanation, ...]:
    """Explain every component with a name: a host and its only accelerator may share one.

    Raises:
        UsageError: the report has no such component.
    """
    named = [group[component] for group in report.groups().values() if component in group]
    if not named:
        near = nearest(component, (name for group in report.groups().values() for name in group))
        raise UsageError(f"no component is called {component!r}", hint=f"did you mean {near}?" if near else None)
    return tuple(_explained(report, health, inventory, snapshot, devices) for health in named)


def _explained(
    report: HealthReport,
    health: Health,
    inventory: Inventory,
    snapshot: Snapshot,
    devices: Mapping[str, DeviceReading],
) -> Explanation:
    kind, name = kind_and_id(health)
    readings = readings_of(health, report, inventory=inventory, snapshot=snapshot, devices=devices)
    found = {finding.rule for finding in health.findings}
    plugin = f"gpu.{_probe_of(health, inventory)}."
    own = tuple(dict.fromkeys(line.rule for line in all_lines() if line.rule.startswith(plugin)))
    checks = tuple(
        Check(
            rule,
            lines_of(rule),
            tuple(readings[wanted] for wanted in looks_at(rule).readings if wanted in readings),
            told=bool(health.seen) and looks_at(rule).probes <= health.seen,
            found=rule in found,
        )
        for rule in (*rulebook().rules(), *own)
        if rule.startswith(_FAMILIES[kind])
    )
    named = {finding.incident for finding in health.findings} - {None}
    # By membership too: a component without findings may be unknown because of an incident.
    incidents = tuple(i for i in report.incidents if i.id in named or name in i.members)
    hosts = _hosts_of(health, inventory)
    return Explanation(
        component=name,
        kind=kind,
        state=health.state,
        because=_because(report, health, inventory, incidents) or _well(kind, checks, _failed_probes(hosts, snapshot)),
        read_at=health.read_at,
        maintenance=health.maintenance,
        standing=tuple(ExplainedFinding(finding, verdict(finding.rule, finding.case)) for finding in health.findings),
        checks=checks,
        incidents=incidents,
    )


def _because(
    report: HealthReport,
    health: Health,
    inventory: Inventory,
    incidents: tuple[Incident, ...],
) -> str:
    """The reason for a state; empty if the component is ok."""
    if health.maintenance is not None:
        return f"in maintenance: {health.maintenance}"
    if health.disabled:
        accelerator = inventory.accelerators.get(_accelerator_of(health, inventory))
        by_inventory = accelerator is None or accelerator.role is Role.DISABLED
        return f"out of service: {'the inventory disables it' if by_inventory else 'a swap took it out of its job'}"
    telling = next((finding for finding in health.findings if finding.state is health.state), None)
    if telling is not None and health.state is not State.OK:
        return f"{telling.rule} ({telling.case}): {telling.evidence}"
    if health.state is State.OK:
        return ""
    hosts = [report.hosts[host] for host in _hosts_of(health, inventory)]
    ill = [f"{host.id} ({host.state.value})" for host in hosts if host.state is not State.OK]
    if ill:
        return f"its host is not healthy: {', '.join(ill)}"
    return f"part of {incidents[0].id}" if incidents else "it has no readings"


def _well(kind: str, checks: tuple[Check, ...], failed: frozenset[str]) -> str:
    """Why a component is ok, and what was not checked: a probe failed, or the driver does not support a reading."""
    if kind == "device" and (unread := [check.rule for check in checks if not check.told]):
        return f"no fault was found, but its driver lacks the readings of these rules: {', '.join(unread)}"
    blind = [check.rule for check in checks if not check.told and looks_at(check.rule).probes & failed]
    if not blind:
        return "every rule checked it and found no fault"
    return f"no fault was found, but its host did not report what these rules check: {', '.join(blind)}"


def _failed_probes(hosts: list[str], snapshot: Snapshot) -> frozenset[str]:
    """The probes that failed on some hosts, by their names in the rules' data."""
    return frozenset(
        name.partition(":")[0]
        for host in hosts
        if host in snapshot.hosts
        for name, outcome in snapshot.hosts[host].probes.items()
        if outcome.status not in ENDED_WELL
    )


def _probe_of(health: Health, inventory: Inventory) -> str:
    """The probe that reads an accelerator."""
    kind, name = kind_and_id(health)
    return inventory.hosts[inventory.accelerators[name].host].probe if kind == "accelerator" else NVIDIA_SMI


def _accelerator_of(health: Health, inventory: Inventory) -> str:
    """The accelerator that a component is, or whose lane it is; its own name for other kinds."""
    kind, name = kind_and_id(health)
    return inventory.transponders[name].accelerator if kind == "link" else name


def _hosts_of(health: Health, inventory: Inventory) -> list[str]:
    """The hosts through which a component is read."""
    kind, name = kind_and_id(health)
    if isinstance(health, CircuitHealth):
        hosts = [inventory.transponders[end.transponder].host for end in health.ends]
    elif kind == "accelerator":
        hosts = [inventory.accelerators[name].host]
    else:
        hosts = [inventory.transponders[name].host] if kind == "link" else []
    return list(dict.fromkeys(hosts))
