"""The verdict on a host."""

from lumctl.fleet.readings import ProbeStatus
from lumctl.health.judging import judge, state_of
from lumctl.health.look import Look
from lumctl.health.rules.expected import HOST_RULES
from lumctl.health.rules.host import RULES
from lumctl.health.rules.host_case import HostCase
from lumctl.health.states import ComponentHealth, State
from lumctl.inventory.model import Evidence

_RULES = (*RULES, *HOST_RULES)


def judge_host(look: Look, name: str) -> ComponentHealth:
    """Judge one host of the inventory."""
    here = look.collected.get(name)
    readable = look.readable(name) is not None
    case = HostCase(
        id=name,
        seen=here.seen if here else None,
        stale=look.stale_evidence(here.seen.taken_at) if here and look.stale(here.seen.taken_at) else None,
        needed=_needed_probes(look, name),
        stray_xids=here.stray_xids if here else (),
        read_at=here.seen.taken_at if here else look.now,
        now=look.now,
        lost=name in look.past.lost,
        quiet_until=look.past.quiet_until.get(name, 0.0),
        needed_mounts=look.inventory.hosts[name].mounts,
        mounts=look.fresh("mounts", here.seen.mounts) if here and readable else None,
        disks=look.fresh("disks", here.seen.disks) if here and readable else None,
        clock=look.fresh("clock", here.seen.clock) if here and readable else None,
        rack_ahead_s=look.ahead_s.get(look.inventory.hosts[name].rack),
        rdma_ports=len(here.seen.infiniband) if here and readable and here.probe_ended_well("infiniband") else None,
        expected_rdma_ports=look.expectations.rdma_ports(name),
        services=look.fresh("services", here.seen.services) if here and readable else None,
        capacity=look.fresh("capacity", here.seen.capacity) if here and readable else None,
        expected_memory_gib=look.expectations.memory_gib(name),
        trend=look.trend("host", name),
        expected_processors=look.expectations.processors(name),
        nic_events=here.foreign_nic_events(look.lanes[name]) if here and readable else (),
        events=here.events if here else None,
        by_exporters=not look.inventory.hosts[name].readings.uses_shell,
        reports=look.reports_of(here, None) if here and readable else (),
        probe=look.inventory.hosts[name].probe,
        stray_events=look.stray_events(name) if here and readable else (),
    )
    findings = judge(_RULES, case)
    read_at = here.seen.taken_at if here and here.seen.reachable else None
    otherwise = State.OK if case.readable else State.UNKNOWN
    return ComponentHealth(
        name,
        "host",
        state_of(findings, otherwise=otherwise),
        findings,
        read_at,
        otherwise=otherwise,
        seen=_seen(case),
    )


def _seen(case: HostCase) -> frozenset[str]:
    """``host`` where it answers or its silence is a verdict, ``session`` where it answers, and its probes."""
    if case.seen is None or case.stale is not None:
        return frozenset()
    if not case.seen.reachable:
        missed = case.seen.attempts > 0 and not case.lost
        return frozenset() if missed else frozenset({"host"})
    ended_well = {name for name, outcome in case.seen.probes.items() if outcome.status is ProbeStatus.OK}
    return frozenset({"host", "session", *ended_well})


def _needed_probes(look: Look, host: str) -> frozenset[str]:
    """The probes without which something that the inventory places on a host cannot be judged.

    Exporters never tell of the kernel log, of neighbours and of modules; links say so themselves (link.not-read).
    """
    written = look.inventory.hosts[host]
    needed = {"gpu", "kernel"} if look.accelerators[host] else set()
    if look.lanes[host]:
        needed |= {"net", *(f"optics:{lane.interface}" for lane in look.lanes[host])}
    if any(Evidence.LLDP in lane.verify for lane in look.lanes[host]):
        needed.add("lldp")
    if written.mounts:
        needed.add("mounts")
    if not written.readings.uses_shell:
        needed &= {"gpu", "net", "mounts"}
    return frozenset(needed)
