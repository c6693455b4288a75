"""Group findings with one cause into an incident. Racks are tried first, then hosts, then lost light.

Findings stay with their components and get the id of their incident; states do not change. The id is made from the
cause, so the same incident has the same id at each observation.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lumctl.health.causes import Causes, is_gone
from lumctl.health.evaluation import each
from lumctl.health.look import Look, Place
from lumctl.health.rulebook import verdict
from lumctl.health.states import (
    Finding,
    Health,
    HealthReport,
    Incident,
    Judged,
    State,
    gravest_first,
    is_fault,
    kind_and_id,
    weight,
)
from lumctl.printable import counted

# GPUs and links grow old behind a driver or host that hangs: then these findings are no faults of their own.
_OLD = frozenset({"gpu.stale", "link.stale"})
_PORT = re.compile(r"port/(\d{1,6})\b")
"""Prefix of an alarm's source if it names a port of the device; see :class:`lumctl.devices.types.Alarm`."""
_LEAST_MEMBERS = 2
"""An incident needs this many components: with one there is nothing to correlate."""


@dataclass
class _Group:
    """An incident under construction: its findings, and the components that are unknown because of it.

    Among findings with equal weight, the one of ``rule`` represents the cause.
    """

    cause: Place
    rule: str = ""
    findings: list[Finding] = field(default_factory=list)
    members: dict[Place, None] = field(default_factory=dict)


def with_incidents(report: HealthReport, look: Look) -> HealthReport:
    """Add the incidents to a report, and to each finding the id of its incident."""
    return _Correlation(report, look).report()


class _Correlation:
    def __init__(self, report: HealthReport, look: Look) -> None:
        self._report = report
        self._look = look
        self._groups: dict[Place, _Group] = {}
        self._suspects: dict[Place, tuple[str, ...]] = {}
        self._host_rules: dict[str, list[str]] = {}
        """By host: the rules that concern the whole host, worst first."""
        self._owner: dict[Place, Place] = {}
        """By component: the cause of the incident that has taken its findings."""
        self._health: dict[Place, Health] = {
            kind_and_id(health): health for group in report.groups().values() for health in group.values()
        }

    def report(self) -> HealthReport:
        if not any(self._grave(health) for health in self._health.values()):
            return self._report
        self._host_rules = {host: self._rules_of_host(host) for host in self._look.inventory.hosts}
        self._racks()
        self._hosts()
        self._light()
        incidents = {cause: self._incident(group) for cause, group in self._groups.items() if self._is_one(group)}

        def change(health: Judged, /) -> Judged:
            incident = incidents.get(self._owner.get(kind_and_id(health), ("", "")))
            if incident is None or not health.findings:
                return health
            return replace(health, findings=tuple(replace(f, incident=incident.id) for f in health.findings))

        if not incidents:
            return self._report
        return replace(each(self._report, change), incidents=gravest_first(incidents.values()))

    # --- racks and hosts ---

    def _racks(self) -> None:
        line = verdict("incident.rack", "most-hosts")
        for rack in self._look.inventory.racks:
            hosts = [host.name for host in self._look.inventory.hosts.values() if host.rack == rack]
            # A host under work says nothing about its rack.
            serving = [host for host in hosts if not self._disabled(("host", host))]
            alike: dict[str, list[str]] = {}
            for host in serving:
                for rule in self._host_rules[host]:
                    alike.setdefault(rule, []).append(host)
            # The rule of most hosts first: a host that joins an incident does not leave it for another.
            for rule, touched in sorted(alike.items(), key=lambda item: -len(item[1])):
                if len(touched) >= line.limits["least"] and len(touched) > line.limit * len(serving):
                    for host in touched:
                        # A host with a graver fault that the others do not share is left out.
                        if self._host_rules[host][0] == rule:
                            self._take_host(("rack", rack), host)

    def _hosts(self) -> None:
        for host in self._look.inventory.hosts:
            place = ("host", host)
            if place not in self._owner and self._host_rules[host]:
                self._take_host(place, host)

    def _rules_of_host(self, host: str) -> list[str]:
        """The rules with findings on a whole host, worst first: its own, and those of most of its accelerators."""
        own = [] if self._disabled(("host", host)) else filter(self._weighs, self._health["host", host].findings)
        found = gravest_first([*own, *self._shared_by_gpus(host)])
        return list(dict.fromkeys(finding.rule for finding in found))

    def _shared_by_gpus(self, host: str) -> list[Finding]:
        """The worst finding of each rule that has findings on enough accelerators of a host (``incident.host``)."""
        line = verdict("incident.host", "all-alike")
        gpus = [self._health["accelerator", a.id] for a in self._look.accelerators[host]]
        serving = [gpu for gpu in gpus if gpu.state is not State.DISABLED]
        if len(serving) < line.limits["least"]:
            return []
        gravest: dict[str, Finding] = {}
        for finding in gravest_first(f for gpu in serving for f in gpu.findings if self._weighs(f)):
            gravest.setdefault(finding.rule, finding)
        return [
            finding
            for rule, finding in gravest.items()
            if sum(any(f.rule == rule and self._weighs(f) for f in gpu.findings) for gpu in serving)
            >= line.limit * len(serving)
        ]

    def _take_host(self, cause: Place, host: str) -> None:
        """Assign a host, the accelerators that share its rules, and components unknown because of it to one cause.

        An accelerator with a more severe finding of another rule is omitted: it has its own fault.
        """
        rules = self._host_rules[host]
        rule = rules[0]
        self._join(cause, rule, ("host", host))
        on_it = [("accelerator", a.id) for a in self._look.accelerators[host]]
        for each_place in on_it:
            health = self._health[each_place]
            if (health.findings and health.findings[0].rule in rules) or self._silently_unknown(health):
                self._join(cause, rule, each_place)
        for lane in self._look.lanes[host]:
            if self._silently_unknown(self._health["link", lane.id]):
                self._join(cause, rule, ("link", lane.id))

    # --- light ---

    def _light(self) -> None:
        # After racks and hosts: a circuit that is lost with its host must not be traced through the mesh.
        causes = Causes(self._look, self._report, self._owner)
        lost = [circuit for circuit in self._look.circuits if self._touched(("circuit", circuit.id))]
        found = causes.of(lost)
        self._suspects = causes.suspects
        for circuit, cause in zip(lost, found, strict=True):
            rule = self._speaker(cause, ("circuit", circuit.id))
            self._join(cause, rule, ("circuit", circuit.id))
            if cause in self._health:
                self._join(cause, rule, cause)
            for end in (circuit.a, circuit.b):
                link = self._health["link", end.transponder]
                if self._grave(link) and link.state is not State.DISABLED:
                    self._join(cause, rule, ("link", end.transponder))

        self._lanes_of_lost_gpus()
        self._ports_of_devices()

    def _lanes_of_lost_gpus(self) -> None:
        """Add the faulty links of lost GPUs to the incidents of the GPUs, including links without a circuit."""
        for lane in self._look.inventory.transponders.values():
            link = self._health["link", lane.id]
            gpu = self._report.accelerators.get(lane.accelerator)
            if gpu is not None and self._grave(link) and is_gone(gpu):
                place = ("accelerator", gpu.id)
                cause = self._owner.get(place, place)
                self._join(cause, self._speaker(place), place)
                self._join(cause, self._speaker(place), ("link", lane.id))

    def _ports_of_devices(self) -> None:
        """Add a device to an incident if its alarms name only ports where the incident's light is lost."""
        for device in self._look.inventory.light_devices:
            place = ("device", device.id)
            causes = {self._owner_at(device.id, port) for port in _alarmed_ports(self._health[place])}
            cause = causes.pop() if len(causes) == 1 else None
            if cause is not None:
                self._join(cause, "device.alarm", place)

    def _owner_at(self, device: str, port: int) -> Place | None:
        """The cause of the incident that contains the circuit at a port, if any."""
        ends = (circuit.id for circuit in self._look.circuits if port in circuit.ports_at(device))
        # Only circuits that an incident has already taken, so this comes last in `_light`.
        at = (self._owner.get(("circuit", name)) for name in ends)
        return next((cause for cause in at if cause is not None), None)

    def _touched(self, place: Place) -> bool:
        health = self._health[place]
        if health.state is State.DISABLED or place in self._owner:
            return False
        return bool(health.findings) or self._silently_unknown(health)

    def _speaker(self, *places: Place) -> str:
        """The rule that represents some components: the rule of their worst finding; among equals, of the first.

        A less severe finding (such as yesterday's flap) must not represent the present fault.
        """
        found = [health.findings[0] for place in places if (health := self._health.get(place)) and health.findings]
        return max(found, key=weight).rule if found else ""

    # --- groups ---

    def _join(self, cause: Place, rule: str, place: Place) -> None:
        if place in self._owner:
            return
        self._owner[place] = cause
        group = self._groups.setdefault(cause, _Group(cause, rule))
        group.rule = group.rule or rule
        group.members[place] = None
        group.findings += self._health[place].findings

    def _is_one(self, group: _Group) -> bool:
        # One member suffices if the cause is not itself a member, such as a PUC, which has no state of its own.
        several = len(group.members) >= _LEAST_MEMBERS or group.cause not in group.members
        return several and any(map(self._weighs, group.findings))

    def _incident(self, group: _Group) -> Incident:
        kind, cause = group.cause
        gravest = max(group.findings, key=lambda finding: (*weight(finding), finding.rule == group.rule))
        return Incident(
            id=f"{kind}:{cause}",
            cause=cause,
            rule=gravest.rule,
            state=gravest.state,
            since=min(finding.since for finding in group.findings),
            members=tuple(dict.fromkeys(component for _, component in group.members)),
            summary=f"{gravest.component}: {gravest.evidence} ({_members(group.members)})",
            suspects=self._suspects.get(group.cause, ()),
            gravity=gravest.gravity,
        )

    def _disabled(self, place: Place) -> bool:
        return self._health[place].state is State.DISABLED

    def _grave(self, health: Health) -> bool:
        return health.state is not State.DISABLED and any(map(self._weighs, health.findings))

    @staticmethod
    def _weighs(finding: Finding) -> bool:
        """Whether a finding needs a cause: a fault, or a host that missed its answer; not a note or an old reading."""
        return finding.rule == "host.missed" or is_fault(finding.state)

    @staticmethod
    def _silently_unknown(health: Health) -> bool:
        """Whether a component is unknown and has no findings except about the age of its readings."""
        return health.state is State.UNKNOWN and all(finding.rule in _OLD for finding in health.findings)


def _alarmed_ports(health: Health) -> frozenset[int]:
    """The ports that a device's alarms name; none if it has any other finding."""
    grave = [finding for finding in health.findings if is_fault(finding.state)]
    ports = [_PORT.match(finding.about) if finding.rule == "device.alarm" else None for finding in grave]
    return frozenset(int(port[1]) for port in ports if port) if all(ports) else frozenset()


def _members(members: Iterable[Place]) -> str:
    """The number of members of each kind, in words: ``1 host, 4 accelerators``."""
    kinds: dict[str, int] = {}
    for kind, _ in members:
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(counted(count, f"{kind}s") for kind, count in kinds.items())
