"""An observation made from a capture: the result that a live observation would have had at that time.

Each host is judged at the time of its own capture, never by today's clock. Without an inventory the components are
those in the files; with an inventory they are its components whose hosts are in the capture.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lumctl.context.capture_inventory import Found, found_inventory, without_unused_ports
from lumctl.devices.types import DeviceReading
from lumctl.fleet.bundle.capture import ABOUT_CAPTURE, ABOUT_HOST, CaptureManifest, read_capture_manifest
from lumctl.fleet.bundle.files import open_capture
from lumctl.fleet.bundle.reader import CapturedHost, read_host
from lumctl.fleet.readings import HostSnapshot, Snapshot
from lumctl.health.memory import Memory
from lumctl.health.observation import Observation, current_role
from lumctl.health.states import SEVERITY, ComponentHealth, Finding, HealthReport, State, gravest_first, judged
from lumctl.inventory.folded_names import fold
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.slice_records import is_job
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, initial_assignment, record_misfit


def remarks(path: Path, inventory: Inventory | None) -> tuple[str, ...]:
    """All remarks about a capture, one sentence each.

    Raises:
        UsageError: the folder cannot be read, or is empty.
    """
    folder = open_capture(path)
    about = read_capture_manifest(folder.about) if folder.about is not None else None
    here = {folder.name} if folder.alone else set(folder.hosts)
    said: list[str] = []
    lacking = [host for host in about.hosts if host not in here] if about is not None and not folder.alone else []
    if lacking:
        said.append(f"hosts of this capture that are not in {path}: {', '.join(fold(lacking))}")
    if about is None and any((path / host / ABOUT_HOST).is_file() for host in folder.hosts):
        said.append(f"{path} has no {ABOUT_CAPTURE}: it is a part of a capture, or the capture was not finished")
    if inventory is None:
        return tuple(said)
    if about is not None and is_of_another_rack(about, inventory):
        said.append(
            f"judged without {inventory.path}: this is a capture of {', '.join(about.racks)}, which is not in it"
        )
    elif strange := [host for host in sorted(here) if host not in inventory.hosts]:
        said.append(f"judged without {inventory.path}, because they are not in it: {', '.join(fold(strange))}")
    return tuple(said)


def is_of_another_rack(about: CaptureManifest | None, inventory: Inventory) -> bool:
    """Whether a capture states its racks and none is in the inventory, even if names of hosts are equal."""
    return about is not None and bool(about.racks) and set(about.racks).isdisjoint(inventory.racks)


TARGET = "capture"


@dataclass(frozen=True, slots=True)
class _Note:
    """A remark about the capture itself, made into a finding."""

    rule: str
    case: str
    state: State
    advice: str

    def finding(self, component: str, evidence: str, at: float) -> Finding:
        return Finding(component, self.rule, self.state, evidence, self.advice, at, self.case)


_UNREAD = _Note(
    "capture.file",
    "unread",
    State.UNKNOWN,
    "copy the file again from its origin; man lumctl-fleet names the command that prints it",
)
_NOT_ASKED = _Note(
    "capture.file",
    "not-there",
    State.UNKNOWN,
    "also capture nvidia-smi -q -x, which shows the state of a GPU",
)
_PARTLY = _Note("capture.file", "partly", State.OK, "capture all GPUs: nvidia-smi -q -x without -i")
_NEVER_UP = _Note("capture.port", "never-up", State.DISABLED, "if it should be in use, add it to an inventory")
_MODULE_ONLY = _Note(
    "capture.port",
    "module-only",
    State.OK,
    "also capture /sys/class/net, to see whether the link is up",
)


def observe_capture(path: Path, inventory: Inventory | None) -> Observation:
    """Judge a capture. Its hosts that are in the inventory are judged with the inventory.

    Raises:
        UsageError: the folder cannot be read, or is empty.
    """
    folder = open_capture(path)
    about = read_capture_manifest(folder.about) if folder.about is not None else None
    known = inventory.hosts if inventory is not None and not is_of_another_rack(about, inventory) else {}
    hosts = [read_host(each, known[each.id].probe if each.id in known else None) for each in folder.folders()]
    written = [host for host in hosts if host.id in known]
    looks = [_as_written(inventory, written, about)] if inventory is not None and written else []
    looks += [_as_found(host, rack=folder.name, path=path) for host in hosts if host.id not in known]
    return _together(looks)


def _as_found(captured: CapturedHost, *, rack: str, path: Path) -> Observation:
    found = found_inventory(captured, rack=rack, path=path)
    seen = replace(captured.snapshot, infiniband=without_unused_ports(captured.snapshot))
    snapshot = Snapshot(captured.at, 0.0, {captured.id: seen})
    # The placeholder at the far end of the links answers, so that no link is blamed on it.
    answers = dict.fromkeys(found.inventory.devices, DeviceReading(captured.at))
    report = Memory().judge(found.inventory, snapshot, found.circuits, losses={}, devices=answers, now=captured.at)
    # Links form incidents by the paths of their light, which are not known here.
    incidents = tuple(incident for incident in report.incidents if incident.cause == captured.id)
    links = {id_: _found_link(_as_of_one_look(link), found, seen) for id_, link in report.links.items()}
    gpus = report.accelerators
    if "gpu" not in seen.probes and seen.reachable and captured.attached is None:
        gpus = {id_: _without_smi(gpu, captured.at) for id_, gpu in gpus.items()}
    report = _with_notes(report, [captured])
    report = replace(report, accelerators=gpus, links=links, devices={}, circuits={}, incidents=incidents)
    return Observation(captured.at, TARGET, found.inventory, {}, (), {}, snapshot, report)


def _without_smi(gpu: ComponentHealth, at: float) -> ComponentHealth:
    """Add a finding to an accelerator that only other files name; it explains why nothing else is known about it."""
    if gpu.state is not State.UNKNOWN or gpu.findings:
        return gpu
    return _with(gpu, _NOT_ASKED.finding(gpu.id, "nvidia-smi -q -x is not in this capture", at))


def _as_of_one_look(link: ComponentHealth) -> ComponentHealth:
    """A link without its incidents, and without findings that matter only for later readings.

    A full counter hides later errors; its past count is still worth a remark.
    """
    findings = tuple(
        replace(finding, incident=None, state=State.OK if finding.rule == "link.counter-full" else finding.state)
        for finding in link.findings
    )
    return judged(link, gravest_first(findings))


def _found_link(link: ComponentHealth, found: Found, seen: HostSnapshot) -> ComponentHealth:
    """A link without an inventory: unused if it was never up; judged by its module if only that was read."""
    name = found.inventory.transponders[link.id].interface
    if link.id in found.unused:
        evidence = f"{name} has never been up since its driver was loaded, and no inventory contains it"
        return _with(link, _NEVER_UP.finding(link.id, evidence, seen.taken_at))
    optics = seen.optics.get(name)
    alone = name not in seen.interfaces and all(port.device != name for port in seen.infiniband)
    if optics is None or not alone or link.state is not State.UNKNOWN or link.findings:
        return link
    if not optics.optical:
        evidence = "copper has no optics to judge; the capture lacks whether the link is up"
    elif optics.rx_power_dbm is not None:
        evidence = f"light arrives ({optics.rx_power_dbm:.1f} dBm); the capture lacks whether the link is up"
    else:
        return link
    return _with(replace(link, otherwise=State.OK), _MODULE_ONLY.finding(link.id, evidence, seen.taken_at))


def _as_written(inventory: Inventory, hosts: list[CapturedHost], about: CaptureManifest | None) -> Observation:
    """Judge the inventory's components of the captured hosts; hosts captured at one time are judged together.

    A circuit is judged if both of its hosts are in the capture, even if they were captured at different times.
    """
    assignment = _assignment(inventory, about)
    # No reading of a capture is stale, even if its host was captured long before the others.
    lasting = replace(inventory, thresholds=replace(inventory.thresholds, stale_after_s=float("inf")))
    circuits = circuits_of(inventory, assignment)
    disabled = {a for a in inventory.accelerators if current_role(inventory, assignment, a) is Role.DISABLED}

    def judged(some: Iterable[CapturedHost], at: float) -> HealthReport:
        snapshot = Snapshot(at, 0.0, {host.id: host.snapshot for host in some})
        return Memory().judge(lasting, snapshot, circuits, losses={}, devices={}, now=at, disabled=disabled)

    newest = max(host.at for host in hosts)
    by_time = {at: [host for host in hosts if host.at == at] for at in sorted({host.at for host in hosts})}
    reports = {at: judged(group, at) for at, group in by_time.items()}
    whole = reports[newest] if len(reports) == 1 else judged(hosts, newest)
    here = {host.id for host in hosts}
    parts = [_part(inventory, report, {host.id for host in by_time[at]}) for at, report in reports.items()]
    merged = _merged(newest, parts)
    both_here = {c.id: whole.circuits[c.id] for c in circuits if _hosts_of(inventory, c) <= here}
    snapshot = Snapshot(newest, 0.0, {host.id: host.snapshot for host in hosts})
    report = replace(_with_notes(merged, hosts), circuits=both_here)
    return Observation(newest, TARGET, inventory, assignment, circuits, {}, snapshot, report)


def _assignment(inventory: Inventory, about: CaptureManifest | None) -> Assignment:
    """The assignment at the time of the capture, as far as it fits the inventory."""
    placed = initial_assignment(inventory)
    for job, accelerators in (about.assignment if about else {}).items():
        if not is_job(job) and record_misfit(inventory, job, accelerators) is None:
            placed[job] = accelerators
        fits = job in placed and is_job(job) and len(accelerators) == len(placed[job])
        if fits and all(accelerator in inventory.accelerators for accelerator in accelerators):
            placed[job] = accelerators
    return placed


def _hosts_of(inventory: Inventory, circuit: Circuit) -> set[str]:
    return {inventory.transponders[end.transponder].host for end in (circuit.a, circuit.b)}


def _part(inventory: Inventory, report: HealthReport, hosts: Collection[str]) -> HealthReport:
    """The verdicts on some hosts and the components in them."""
    accelerators, links = inventory.accelerators, inventory.transponders
    return replace(
        report,
        hosts={id_: health for id_, health in report.hosts.items() if id_ in hosts},
        accelerators={id_: health for id_, health in report.accelerators.items() if accelerators[id_].host in hosts},
        links={id_: health for id_, health in report.links.items() if links[id_].host in hosts},
        devices={},
        # A circuit may end on hosts of different parts, so it is judged over all of them: see _as_written().
        circuits={},
    )


def _with_notes(report: HealthReport, hosts: Iterable[CapturedHost]) -> HealthReport:
    """A report with the remarks about the capture of its hosts."""
    noted = dict(report.hosts)
    for host in hosts:
        health = noted[host.id]
        for unread in host.unread:
            where = "" if unread.file == host.id else f"{unread.file}: "
            health = _with(health, _UNREAD.finding(host.id, f"{where}{unread.reason}", host.at))
        if host.attached is not None:
            evidence = f"nvidia-smi lists {len(host.snapshot.gpus)} of {host.attached} GPUs; the others are not judged"
            health = _with(health, _PARTLY.finding(host.id, evidence, host.at))
        noted[host.id] = health
    return replace(report, hosts=noted)


def _with(health: ComponentHealth, finding: Finding) -> ComponentHealth:
    return judged(health, gravest_first((*health.findings, finding)))


def _merged(at: float, reports: Iterable[HealthReport]) -> HealthReport:
    whole = HealthReport(at, {}, {}, {}, {}, {})
    for report in reports:
        whole = replace(
            whole,
            hosts={**whole.hosts, **report.hosts},
            accelerators=_both(whole.accelerators, report.accelerators),
            links=_both(whole.links, report.links),
            circuits={**whole.circuits, **report.circuits},
            incidents=(*whole.incidents, *report.incidents),
        )
    return whole


def _both(some: Mapping[str, ComponentHealth], more: Mapping[str, ComponentHealth]) -> dict[str, ComponentHealth]:
    """All components. If two generated ids are equal (``a`` + ``b-c``, ``a-b`` + ``c``), the worse state is kept."""
    whole = dict(some)
    for id_, health in more.items():
        known = whole.get(id_, health)
        whole[id_] = max(known, health, key=lambda each: SEVERITY.index(each.state))
    return whole


def _together(looks: list[Observation]) -> Observation:
    """Merge observations of different hosts into one, at the time of the newest."""
    at = max(look.at for look in looks)
    first = looks[0]
    inventory = first.inventory
    for look in looks[1:]:
        inventory = replace(
            inventory,
            racks={**inventory.racks, **look.inventory.racks},
            hosts={**inventory.hosts, **look.inventory.hosts},
            accelerators={**inventory.accelerators, **look.inventory.accelerators},
            transponders={**inventory.transponders, **look.inventory.transponders},
        )
    snapshot = Snapshot(at, 0.0, {id_: seen for look in looks for id_, seen in look.snapshot.hosts.items()})
    report = _merged(at, [look.report for look in looks])
    return replace(first, at=at, inventory=inventory, snapshot=snapshot, report=report)
