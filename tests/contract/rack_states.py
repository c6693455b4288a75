"""The rack of rack64.yaml in the states that an operator meets: all ok, faults of each kind, and a swap under way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from looks import DARK, Looks

from lumctl.fleet.readings import HostSnapshot
from lumctl.health.observation import Observation
from lumctl.health.states import ComponentHealth, Finding, Incident, State
from lumctl.inventory.load import example, load_inventory

START = 1_795_000_000.0
LOST, DEAD, TRANSMITTER = "h03-gpu2", "h07", "h05-gpu1-a"


def _looks() -> Looks:
    return Looks(load_inventory(example("rack64")), target="sim")


def all_ok() -> Observation:
    """Every accelerator works or waits as a spare."""
    return _looks().look(START)


def lost_gpu() -> Observation:
    """A GPU fell off the bus, and its two circuits are dark."""
    seen = _looks().look(START, failed=[LOST])
    dark = [name for name, circuit in seen.report.circuits.items() if circuit.state is State.FAILED]
    return _joined(seen, "accelerator", LOST, dark, gravity=96)


def dark_transmitter() -> Observation:
    """A transmitter sends no light: the receiver at the other end of its circuit is dark."""
    seen = _looks().look(START)
    report = seen.report
    name, circuit = next(
        (name, circuit)
        for name, circuit in report.circuits.items()
        if TRANSMITTER in {end.transponder for end in circuit.ends}
    )
    far = next(end.transponder for end in circuit.ends if end.transponder != TRANSMITTER)
    sends = _finding(TRANSMITTER, "link.tx-power", "sends no light (-inf dBm), but a circuit needs it", "dark")
    hears = _finding(far, "link.rx-power", "no light (-inf dBm)", "dark")
    dark = _finding(name, "circuit.dark", f"{far} receives no light from {TRANSMITTER}", "dark")
    ends = tuple(replace(e, rx_power_dbm=DARK, hears=None) if e.transponder == far else e for e in circuit.ends)
    links = {
        **report.links,
        TRANSMITTER: _failed(report.links[TRANSMITTER], sends),
        far: _failed(report.links[far], hears),
    }
    circuits = {**report.circuits, name: replace(circuit, state=State.FAILED, ends=ends, findings=(dark,))}
    seen = replace(seen, report=replace(report, links=links, circuits=circuits))
    seen = _measured(seen, TRANSMITTER, transmitting=False, tx_power_dbm=DARK)
    seen = _measured(seen, far, rx_power_dbm=DARK)
    return _joined(seen, "link", TRANSMITTER, [name, far], gravity=61)


def dead_host() -> Observation:
    """A host does not answer: nothing is known of its accelerators."""
    return _joined(silent_hosts([DEAD]), "host", DEAD, [f"{DEAD}-gpu{n}" for n in range(4)], gravity=100)


def dark_rack() -> Observation:
    """No host of the rack answers."""
    seen = silent_hosts(list(_looks().inventory.hosts))
    members = [*seen.inventory.hosts, *seen.inventory.accelerators]
    return _joined(seen, "rack", "rack64", members, gravity=110)


STATES: Mapping[str, Callable[[], Observation]] = {
    "all-ok": all_ok,
    "lost-gpu": lost_gpu,
    "dark-transmitter": dark_transmitter,
    "dead-host": dead_host,
    "dark-rack": dark_rack,
    "swap-under-way": lost_gpu,
}
"""By name. While a swap is under way, the records have a run beside what is seen."""


def _measured(seen: Observation, transponder: str, **optics: object) -> Observation:
    """The same look with other optics of a transponder."""
    lane = seen.inventory.transponders[transponder]
    host = seen.snapshot.hosts[lane.host]
    changed = {**host.optics, lane.interface: replace(host.optics[lane.interface], **optics)}
    hosts = {**seen.snapshot.hosts, lane.host: replace(host, optics=changed)}
    return replace(seen, snapshot=replace(seen.snapshot, hosts=hosts))


def _finding(component: str, rule: str, evidence: str, case: str = "") -> Finding:
    advice = {
        "link.tx-power": "see whether the transmitter is switched off (lumctl device show)",
        "host.unreachable": "check power, management network and sshd of the host",
    }.get(rule, "look at its cause")
    return Finding(component, rule, State.FAILED, evidence, advice, START - 95, case=case)


def _failed(health: ComponentHealth, finding: Finding) -> ComponentHealth:
    return replace(health, state=State.FAILED, findings=(finding,))


def silent_hosts(hosts: Sequence[str]) -> Observation:
    """A look in which some hosts do not answer; what only they could report is unknown."""
    seen = _looks().look(START)
    inventory, report = seen.inventory, seen.report

    def unread(health: ComponentHealth) -> ComponentHealth:
        return replace(health, state=State.UNKNOWN, read_at=None)

    silent = {
        name: _failed(report.hosts[name], _finding(name, "host.unreachable", "no route to host", "no-session"))
        for name in hosts
    }
    accelerators = {
        name: unread(health) if inventory.accelerators[name].host in silent else health
        for name, health in report.accelerators.items()
    }
    links = {
        name: unread(health) if inventory.transponders[name].host in silent else health
        for name, health in report.links.items()
    }
    circuits = {
        name: replace(
            circuit,
            state=State.UNKNOWN,
            ends=tuple(
                replace(end, rx_power_dbm=None, hears=None)
                if inventory.transponders[end.transponder].host in silent
                else end
                for end in circuit.ends
            ),
        )
        if any(inventory.transponders[end.transponder].host in silent for end in circuit.ends)
        else circuit
        for name, circuit in report.circuits.items()
    }
    snapshots = {
        name: HostSnapshot(name, START, reachable=False, error="no route to host") if name in silent else host
        for name, host in seen.snapshot.hosts.items()
    }
    report = replace(
        report, hosts={**report.hosts, **silent}, accelerators=accelerators, links=links, circuits=circuits
    )
    return replace(seen, report=report, snapshot=replace(seen.snapshot, hosts=snapshots))


def _joined(seen: Observation, kind: str, cause: str, members: Sequence[str], *, gravity: int) -> Observation:
    """The same look with the findings of a cause and its members in one incident."""
    report, names = seen.report, {cause, *members}
    groups = {
        name: {
            key: replace(h, findings=tuple(replace(f, incident=f"{kind}:{cause}") for f in h.findings))
            if key in names
            else h
            for key, h in getattr(report, name).items()
        }
        for name in ("hosts", "accelerators", "links", "circuits")
    }
    found = [f for group in groups.values() for h in group.values() for f in h.findings if f.incident]
    gravest = next((f for f in found if f.component == cause), found[0])
    summary = f"{gravest.component}: {gravest.evidence}"
    incident = Incident(
        f"{kind}:{cause}", cause, gravest.rule, State.FAILED, START - 95, (cause, *members), summary, gravity=gravity
    )
    return replace(seen, report=replace(report, incidents=(incident,), **groups))
