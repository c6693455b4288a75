"""The details of a rack: its components, health, daemon, and the changes in progress; pure."""

from collections.abc import Iterator

from lumctl.health.observation import host_states
from lumctl.health.states import State
from lumctl.inventory.model import Role
from lumctl.printable import counted
from lumctl.tui.look.marks import Marks, age, duration
from lumctl.tui.panes.racks import rack_rows
from lumctl.tui.panes.rows import counts_cell
from lumctl.tui.views.policy_text import MEANINGS
from lumctl.tui.views.records import RecordedLook
from lumctl.tui.views.sections import Detail, Fact, Section

MOST_FINDINGS = 20
"""The most findings of a rack that are shown here; their pane has all."""


def describe_rack(seen: RecordedLook, rack: str, now: float) -> Detail:
    """The details of a rack."""
    head = next((row for row in rack_rows(seen, Marks({})) if row.key == f"rack:{rack}"), None)
    sections = (
        Section("looked at", tuple(_look(seen, rack, now))),
        Section("in it", tuple(_contents(seen, rack))),
        Section("findings, worst first", tuple(_findings(seen, rack, now))),
        Section("changes", tuple(_changes(seen, rack, now))),
        Section("autopilot", tuple(_autopilot(seen, rack, now))),
    )
    return Detail(rack, "rack", head.state if head else State.UNKNOWN, (), sections)


def _look(seen: RecordedLook, rack: str, now: float) -> Iterator[Fact]:
    written = seen.observation.inventory.racks[rack]
    yield "target", seen.observation.target
    if written.location:
        yield "location", written.location
    yield "newest observation", f"{age(seen.observation.at, now)} ago"
    if seen.records.watched is not None:
        daemon = "a daemon (lumctl watch), whose observations are shown"
        yield "looked at by", daemon if seen.records.watched else "this dashboard itself: no daemon answers here"
    if written.gateway is not None:
        yield "gateway", f"{written.gateway}" + (f" on {written.gateway_via}" if written.gateway_via else "")


def _contents(seen: RecordedLook, rack: str) -> Iterator[Fact]:
    observation = seen.observation
    inventory, report = observation.inventory, observation.report
    hosts = [host.name for host in inventory.hosts.values() if host.rack == rack]
    devices = [device for device in inventory.devices.values() if device.rack == rack]
    accelerators = {each.id for each in inventory.accelerators.values() if each.rack == rack}
    answered = sum(read.reachable for name in hosts if (read := observation.snapshot.hosts.get(name)) is not None)
    for device in devices:
        health = report.devices.get(device.id)
        yield device.id, f"{device.kind}, driver {device.driver}: {health.state if health else State.UNKNOWN}"
    ports = {each.driver for each in inventory.transponders.values() if each.host in hosts}
    yield "transponders by", ", ".join(sorted(ports)) or "none"
    states = counts_cell(state for name, state in host_states(observation).items() if name in hosts).text
    yield "hosts", f"{states}; {answered} of {counted(len(hosts), 'hosts')} answered"
    yield "accelerators", counts_cell(h.state for name, h in report.accelerators.items() if name in accelerators).text
    yield "spares", _spares(seen, rack)
    own = {device.id for device in devices}
    lit = [circuit.state for circuit in report.circuits.values() if not own.isdisjoint(circuit.devices)]
    yield "circuits", counts_cell(lit).text


def _spares(seen: RecordedLook, rack: str) -> str:
    """The number of free spares, those of them that are not ok, and the spares in use."""
    observation = seen.observation
    spares = [a.id for a in observation.inventory.accelerators.values() if a.rack == rack and a.role is Role.SPARE]
    placed, health = observation.places(), observation.report.accelerators
    used = [f"{name} ({placed[name][0]} rank {placed[name][1]})" for name in spares if name in placed]
    free = [name for name in spares if name not in placed]
    ill = [name for name in free if name not in health or health[name].state is not State.OK]
    told = f"{len(free)} free" + (f" ({', '.join(ill)} not healthy)" if ill else "")
    return f"{told}, {len(used)} used" + (f": {', '.join(used)}" if used else "")


def _findings(seen: RecordedLook, rack: str, now: float) -> Iterator[Fact]:
    inventory, report = seen.observation.inventory, seen.observation.report
    places = {name: host.rack for name, host in inventory.hosts.items()}
    places |= {name: device.rack for name, device in inventory.devices.items()}
    places |= {name: each.rack for name, each in inventory.accelerators.items()}
    places |= {name: places[each.host] for name, each in inventory.transponders.items()}
    # A circuit through several racks counts for the first.
    places |= {circuit.id: inventory.devices[circuit.devices[0]].rack for circuit in report.circuits.values()}
    found = [finding for finding in report.findings() if places.get(finding.component) == rack]
    if not found:
        yield "", "none"
    for finding in found[:MOST_FINDINGS]:
        known = ", acknowledged" if finding.acknowledged else ""
        yield finding.component, f"{finding.state}, {finding.rule} for {duration(now - finding.since)}{known}"
    if len(found) > MOST_FINDINGS:
        yield "", f"{len(found) - MOST_FINDINGS} more, among the findings (4)"


def _changes(seen: RecordedLook, rack: str, now: float) -> Iterator[Fact]:
    if place := seen.records.stores.get(rack):
        yield "store", place
    if seen.records.trouble:
        yield "not read", seen.records.trouble
    runs = [run for run in seen.records.runs if run.rack == rack]
    # Interrupted or half done: these do not go on by themselves.
    cut = [run for run in runs if run.id in seen.observation.unfinished]
    for run in (run for run in runs if run.state == "running" and run not in cut):
        yield (
            "under way",
            f"{run.id} by {run.who}, which holds the lease, for {duration(now - run.started_at)}: {run.title}",
        )
    for run in cut:
        yield "waits for an operator", f"{run.id} ({run.state}): {run.title}"
    if not any(run.state == "running" for run in runs):
        yield "under way", "nothing"
    if ended := next((run for run in runs if run.ended_at is not None), None):
        yield "last run", f"{ended.id}, {ended.state} {age(ended.ended_at, now)} ago: {ended.title}"


def _autopilot(seen: RecordedLook, rack: str, now: float) -> Iterator[Fact]:
    told = next((each for each in seen.records.autopilots if each["rack"] == rack), None)
    if told is None:
        yield "state", "not read"
        return
    state = str(told["state"])
    yield "state", f"{state}: {told.get('why') or MEANINGS.get(state, '')}"
    policies = ", ".join(f"{policy['policy']} ({policy['how']})" for policy in told["policies"])
    yield "policies", policies or "none"
    for asked in told["waiting"]:
        yield "waits for confirmation", f"{asked['plan']}: {asked['title']}"
    if told.get("last_decided_at") is not None:
        yield "decided last", f"{age(told['last_decided_at'], now)} ago"
