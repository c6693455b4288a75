"""A ticket about a component as Markdown: failure, place, start time, evidence, past actions, next command."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lumctl.health.identity import gpu_readings
from lumctl.health.observation import Observation, place_of
from lumctl.health.states import CircuitHealth, ComponentHealth, Finding, State, gravest_first, kind_and_id
from lumctl.inventory.model import Accelerator, Inventory
from lumctl.inventory.wiring import initial_assignment
from lumctl.printable import printable
from lumctl.store import StoredRun
from lumctl.time_text import moment_with_age

_MOST_RUNS, _MOST_MEMBERS, _MOST_FINDINGS, _MOST_EVENTS = 5, 12, 12, 8


def ticket_text(seen: Observation, component: str, runs: Sequence[StoredRun]) -> str:
    """The ticket; ``runs`` are those of its rack, newest first. Texts of hosts are escaped."""
    return "".join(f"{printable(line)}\n" for line in _lines(seen, component, runs))


def _lines(seen: Observation, component: str, runs: Sequence[StoredRun]) -> Iterator[str]:
    healths = [group[component] for group in seen.report.groups().values() if component in group]
    findings = _findings(seen, component)
    state = next((each.state for each in healths), findings[0].state if findings else State.UNKNOWN)
    yield from (f"# {component} is {state}{f': {findings[0].evidence}' if findings else ''}", "")
    yield from (f"- {label}: {said}" for label, said in _facts(seen, component, healths, findings))
    yield from ("", "## Evidence", "")
    for finding in findings[:_MOST_FINDINGS]:
        about = "" if finding.component == component else f"{finding.component}: "
        yield f"- {finding.state}: {about}{finding.evidence} ({finding.rule}, since {_when(seen, finding.since)})"
        if finding.acknowledged:
            yield f"  - acknowledged: {finding.acknowledged}"
    if len(findings) > _MOST_FINDINGS:
        yield f"- and {len(findings) - _MOST_FINDINGS} more findings"
    if not findings:
        yield "- no rule finds a fault now"
    yield from (f"- kernel log: {line}" for line in _kernel_lines(seen, component))
    yield from ("", "## Done", "")
    done = [run for run, _ in zip(runs_about(seen.inventory, component, runs), range(_MOST_RUNS), strict=False)]
    for run in done:
        undone = f", undone by {run.undone_by}" if run.undone_by else ""
        yield f"- {run.id}: {run.state}{undone}: {run.title}; by {run.who}, {_when(seen, run.started_at)}"
    if not done:
        yield "- no run has changed it"
    yield from ("", "## Next", "")
    yield from _next(seen, component, findings, done)


def _facts(
    seen: Observation,
    component: str,
    healths: Sequence[ComponentHealth | CircuitHealth],
    findings: Sequence[Finding],
) -> Iterator[tuple[str, str]]:
    if findings:
        yield "Since", _when(seen, min(finding.since for finding in findings))
    yield "Where", _where(seen, component, healths)
    accelerator = seen.inventory.accelerators.get(component)
    if accelerator is not None:
        yield from _identity(seen, accelerator)
    yield "Affected", "; ".join(_affected(seen, component)) or "no job"
    for incident in seen.report.incidents:
        if component in (incident.cause, *incident.members):
            yield "Incident", f"{incident.id} since {_when(seen, incident.since)}: {_members(incident.members)}"
    for health in healths:
        if health.maintenance:
            yield "Maintenance", health.maintenance
    yield "Read", f"{_when(seen, seen.at)}, target {seen.target}"


def _where(seen: Observation, component: str, healths: Sequence[ComponentHealth | CircuitHealth]) -> str:
    inventory = seen.inventory
    if (accelerator := inventory.accelerators.get(component)) is not None:
        return f"rack {accelerator.rack}, host {accelerator.host}, index {accelerator.index}"
    if (lane := inventory.transponders.get(component)) is not None:
        return f"host {lane.host}, interface {lane.interface}, fibre to {lane.lane.device} (send {lane.lane.tx})"
    if (host := inventory.hosts.get(component)) is not None:
        return f"rack {host.rack}, address {host.address}"
    if (device := inventory.devices.get(component)) is not None:
        return f"rack {device.rack}, {device.kind}, address {device.address}"
    circuit = next((each for each in seen.circuits if each.id == component), None)
    if circuit is not None:
        return f"{circuit.a.transponder} to {circuit.b.transponder} through {', '.join(seen.devices_of(circuit))}"
    return next((kind_and_id(each)[0] for each in healths), "a cause of several findings")


def _identity(seen: Observation, accelerator: Accelerator) -> Iterator[tuple[str, str]]:
    """The data that a vendor requests first: the model, the serial number, the addresses."""
    reading = gpu_readings(seen.inventory, seen.snapshot).get(accelerator.id)
    serial = reading.raw.get("serial") if reading is not None else None
    known = {
        "model": (reading.product if reading is not None else None) or accelerator.model,
        "serial": serial if serial not in {"N/A", "0"} else None,
        "UUID": reading.uuid if reading is not None else accelerator.uuid,
        "PCI": accelerator.pci,
    }
    yield "Part", ", ".join(f"{label} {value}" for label, value in known.items() if value)


def _affected(seen: Observation, component: str) -> Iterator[str]:
    """The ranks that run on it now, and those that ran on it until a swap."""
    before = initial_assignment(seen.inventory)
    for name in dict.fromkeys(parts_of(seen.inventory, component)):
        if name not in seen.inventory.accelerators:
            continue
        if (place := seen.place_of(name)) is not None:
            yield f"{place[0]} rank {place[1]} runs on {name}"
        elif (earlier := place_of(before, name)) is not None:
            job, rank = earlier
            now = seen.assignment.get(job, ())
            where = f", which runs on {now[rank]} now" if rank < len(now) else ""
            yield f"{name} was {job} rank {rank}{where}"
    owners = {each.owner for each in seen.circuits if component in {each.id, *seen.devices_of(each)}}
    yield from (f"light of {owner}" for owner in sorted(owners))


def _findings(seen: Observation, component: str) -> Sequence[Finding]:
    """Its own findings; for a cause without any, those of the components that it affects."""
    groups = list(seen.report.groups().values())
    own = [finding for group in groups if component in group for finding in group[component].findings]
    if own:
        return gravest_first(own)
    members = {m for incident in seen.report.incidents if incident.cause == component for m in incident.members}
    found = [finding for group in groups for name in group if name in members for finding in group[name].findings]
    return gravest_first(found)


def _kernel_lines(seen: Observation, component: str) -> Iterator[str]:
    """The newest XID lines of the accelerator."""
    accelerator = seen.inventory.accelerators.get(component)
    host = seen.snapshot.hosts.get(accelerator.host) if accelerator is not None else None
    if accelerator is None or host is None:
        return
    for event in [each for each in host.xids if each.pci == accelerator.pci][-_MOST_EVENTS:]:
        yield event.text


def _next(seen: Observation, component: str, findings: Sequence[Finding], done: Sequence[StoredRun]) -> Iterator[str]:
    """The commands that repair it, the manual repair, and where to read more."""
    steps: list[str] = []
    for remedy in seen.remedies_of(component):
        command = f"{remedy.command} --target {seen.target}" if remedy.command else ""
        steps += (remedy.by_hand, command) if remedy.hand_first else (command, remedy.by_hand)
    advice = [finding.advice for finding in findings][:1]
    yield from (f"- {step}" for step in dict.fromkeys(filter(None, steps or advice)))
    yield f"- lumctl health explain {component} --target {seen.target}"
    yield from (f"- lumctl runbook export {run.id} -o md --target {seen.target}" for run in done[:1])


def _members(members: Sequence[str]) -> str:
    more = len(members) - _MOST_MEMBERS
    return ", ".join(members[:_MOST_MEMBERS]) + (f" and {more} more" if more > 0 else "")


def _when(seen: Observation, at: float) -> str:
    return moment_with_age(at, seen.at)


def runs_about(inventory: Inventory, component: str, runs: Iterable[StoredRun]) -> Iterator[StoredRun]:
    """The runs that concern a component or its parts, in the order in which they are given."""
    names = frozenset(parts_of(inventory, component))
    return (run for run in runs if not names.isdisjoint(_changed_by(run.plan)))


def parts_of(inventory: Inventory, component: str) -> Iterator[str]:
    """A component, the accelerators of a host, and the lanes of these."""
    yield component
    accelerators: Collection[str] = [each.id for each in inventory.accelerators_of(component)]
    if component in inventory.accelerators:
        accelerators = (component,)
    yield from accelerators
    for lane in inventory.transponders.values():
        if lane.accelerator in accelerators:
            yield lane.id


def _changed_by(plan: Mapping[str, Any]) -> Iterator[str]:
    """The components that a plan changes."""
    for each in plan.get("replacements", ()):
        yield from (str(each.get(key)) for key in ("failed", "spare", "job"))
    for each in plan.get("puc_changes", ()):
        yield str(each.get("device"))
    circuits = plan.get("circuits", {})
    for each in (*circuits.get("add", ()), *circuits.get("remove", ())):
        yield str(each.get("id"))
        for end in each.get("ends", ()):
            yield from (str(end.get(key)) for key in ("lane", "device"))
