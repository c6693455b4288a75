"""The verdict on a host."""

from lumctl.health.judging import judge, state_of
from lumctl.health.look import Look
from lumctl.health.rules.host import RULES, HostCase
from lumctl.health.states import ComponentHealth, State
from lumctl.inventory.model import Evidence


def judge_host(look: Look, name: str) -> ComponentHealth:
    """Judge one host of the inventory."""
    here = look.collected.get(name)
    case = HostCase(
        id=name,
        seen=here.seen if here else None,
        stale=look.stale_evidence(here.seen.taken_at) if here and look.stale(here.seen.taken_at) else None,
        needed=_needed_probes(look, name),
        stray_xids=here.stray_xids if here else (),
        read_at=here.seen.taken_at if here else look.now,
    )
    findings = judge(RULES, case)
    read_at = here.seen.taken_at if here and here.seen.reachable else None
    return ComponentHealth(name, "host", state_of(findings, otherwise=State.OK), findings, read_at)


def _needed_probes(look: Look, host: str) -> frozenset[str]:
    """The probes without which something that the inventory places on a host cannot be judged."""
    needed = {"gpu", "kernel"} if look.inventory.accelerators_of(host) else set()
    if look.lanes[host]:
        needed |= {"net", *(f"optics:{lane.interface}" for lane in look.lanes[host])}
    if any(Evidence.LLDP in lane.verify for lane in look.lanes[host]):
        needed.add("lldp")
    return frozenset(needed)
