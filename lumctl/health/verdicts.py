"""The verdict on each accelerator, host, link, circuit and device, by the rules of its kind."""

from dataclasses import replace
from math import inf

from lumctl.devices.types import DeviceReading
from lumctl.fleet.readings import ProbeStatus
from lumctl.health.expectations import Expectations
from lumctl.health.identity import can_be_told_apart, pci_slot, xids_of
from lumctl.health.look import HostLook, Look
from lumctl.health.rules import device, gpu, host, link
from lumctl.health.rules.cases import Absence, GpuCase, HostCase, LinkCase
from lumctl.health.rules.circuit import RULES as CIRCUIT_RULES
from lumctl.health.rules.circuit import ReceiverCase
from lumctl.health.rules.device import DeviceCase, is_plausible_c
from lumctl.health.rules.expectation import GPU_RULES, HOST_RULES, LINK_RULES
from lumctl.health.states import (
    SPARE_FIRST,
    CircuitEndHealth,
    CircuitHealth,
    ComponentHealth,
    Finding,
    State,
    gravest_first,
    is_fault,
    judge,
    state_of,
)
from lumctl.inventory.model import Accelerator, Evidence, Transponder
from lumctl.inventory.wiring import Circuit, CircuitEnd

_ALL_GPU_RULES = (*gpu.RULES, *GPU_RULES)


def judge_accelerator(look: Look, accelerator: Accelerator, expected: Expectations) -> ComponentHealth:
    """Judge one accelerator; one out of service stays ``disabled``, and its findings stay visible."""
    disabled = accelerator.id in look.disabled
    collected = look.collected.get(accelerator.host)
    reading = collected.gpus.get(accelerator.id) if collected else None
    read_at = reading.taken_at if reading else None
    here = look.readable(accelerator.host)
    if here is None:
        # The host's own finding is the reason.
        state = State.DISABLED if disabled else State.UNKNOWN
        return ComponentHealth(accelerator.id, "accelerator", state, read_at=read_at, disabled=disabled)
    stale = reading is not None and look.stale(reading.taken_at)
    probe = look.inventory.hosts[accelerator.host].probe
    case = GpuCase(
        id=accelerator.id,
        reading=None if stale else reading,
        stale=look.stale_evidence(reading.taken_at) if reading and stale else None,
        absence=_absence(accelerator, here),
        xids=xids_of(here.slots.get(accelerator.id), here.xids),
        thresholds=look.limits,
        read_at=read_at if read_at is not None else here.seen.taken_at,
        nvlinks=tuple(n for n in here.nvlinks.get(accelerator.id, ()) if not look.stale_nvlink(n)),
        trend=look.trend("accelerator", accelerator.id),
        beside=max(len(here.seen.gpus) - 1, 0),
        usual=expected.settings(accelerator, reading.product) if reading else {},
        expected_nvlinks=expected.nvlinks(accelerator),
        expected_pcie_width=expected.pcie_width(accelerator),
        events=here.events,
        source=here.seen.gpus[0].source if here.seen.gpus else probe,
        reports=look.reports_of(here, accelerator),
        probe=probe,
        vendor_events=here.vendor_events_of(accelerator),
        now=look.now,
        lateness=look.lateness.late.get(accelerator.id),
    )
    findings = judge(_ALL_GPU_RULES, case)
    if findings and (disabled or _is_idle(look, accelerator)):
        findings = tuple(replace(each, advice=each.advice.removeprefix(SPARE_FIRST)) for each in findings)
    otherwise = State.OK if case.reading is not None else State.UNKNOWN
    state = State.DISABLED if disabled else state_of(findings, otherwise=otherwise)
    return ComponentHealth(
        accelerator.id,
        "accelerator",
        state,
        findings,
        read_at,
        otherwise=otherwise,
        disabled=disabled,
        seen=_seen(look, case, here, findings),
    )


def _is_idle(look: Look, accelerator: Accelerator) -> bool:
    """Whether no job of the inventory and no circuit uses an accelerator, so that no spare needs to replace it."""
    if any(accelerator.id in job.ranks for job in look.inventory.jobs.values()):
        return False
    lanes = [lane.id for lane in look.lanes[accelerator.host] if lane.accelerator == accelerator.id]
    return bool(lanes) and look.in_use.isdisjoint(lanes)


def _seen(look: Look, case: GpuCase, here: HostLook, findings: tuple[Finding, ...]) -> frozenset[str]:
    """The probes that reported this accelerator; a probe that prints errors instead of values is omitted.

    ``collectives`` stands for the record of its job, if who is late in it was judged.
    """
    told = {"host"}
    if case.absence in {Absence.NAMED_LOST, Absence.NOT_LISTED}:
        told.add("gpu")
    if case.reading is not None and not any(finding.rule == "gpu.silent" for finding in findings):
        told.add("gpu")
    if case.nvlinks:
        told.add("nvlink")
    if here.probe_ended_well("kernel"):
        told.add("kernel")
    if case.id in look.lateness.judged:
        told.add("collectives")
    return frozenset(told)


def _absence(accelerator: Accelerator, here: HostLook) -> Absence | None:
    """How an accelerator is missing from its probe's answer; ``None`` if it is listed or there was no answer."""
    slot = here.slots.get(accelerator.id)
    if slot is not None and slot in map(pci_slot, here.seen.lost_gpus):
        return Absence.NAMED_LOST
    if accelerator.id in here.gpus or not here.probe_ended_well("gpu"):
        return None
    if here.seen.lost_gpus and not here.seen.gpus:
        # nvidia-smi stops at a lost GPU, so the others are missing from its list and may be well.
        return Absence.LIST_ABORTED
    return Absence.NOT_LISTED if can_be_told_apart(accelerator, here.seen.gpus) else Absence.NOT_TOLD_APART


_ALL_HOST_RULES = (*host.RULES, *HOST_RULES)


def judge_host(look: Look, name: str, expected: Expectations) -> ComponentHealth:
    """Judge one host of the inventory."""
    here = look.collected.get(name)
    readable = look.readable(name) is not None
    case = HostCase(
        id=name,
        seen=here.seen if here else None,
        stale=look.stale_evidence(here.seen.taken_at) if here and look.stale(here.seen.taken_at) else None,
        needed=_needed_probes(look, name),
        stray_xids=here.stray_xids if here else (),
        without_slot=here.without_slot if here else (),
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
        expected_rdma_ports=expected.rdma_ports(name),
        services=look.fresh("services", here.seen.services) if here and readable else None,
        capacity=look.fresh("capacity", here.seen.capacity) if here and readable else None,
        expected_memory_gib=expected.memory_gib(name),
        trend=look.trend("host", name),
        expected_processors=expected.processors(name),
        nic_events=here.foreign_nic_events(look.lanes[name]) if here and readable else (),
        events=here.events if here else None,
        by_exporters=not look.inventory.hosts[name].readings.uses_shell,
        reports=look.reports_of(here, None) if here and readable else (),
        probe=look.inventory.hosts[name].probe,
        stray_events=look.stray_events(name) if here and readable else (),
    )
    findings = judge(_ALL_HOST_RULES, case)
    read_at = here.seen.taken_at if here and here.seen.reachable else None
    otherwise = State.OK if case.readable else State.UNKNOWN
    return ComponentHealth(
        name,
        "host",
        state_of(findings, otherwise=otherwise),
        findings,
        read_at,
        otherwise=otherwise,
        seen=_host_probes(case),
    )


def _host_probes(case: HostCase) -> frozenset[str]:
    """The probes that reported a host: ``host`` if its state is certain, ``session`` if it answers, and its probes.

    The state of a host that missed its answer is uncertain until the limit of ``host.missed``.
    """
    if case.seen is None or case.stale is not None:
        return frozenset()
    if not case.seen.reachable:
        missed = case.seen.attempts > 0 and not case.lost
        return frozenset() if missed else frozenset({"host"})
    ended_well = {name for name, outcome in case.seen.probes.items() if outcome.status is ProbeStatus.OK}
    return frozenset({"host", "session", *ended_well})


def _needed_probes(look: Look, host: str) -> frozenset[str]:
    """The probes without which a component that the inventory places on a host cannot be judged.

    Exporters never report the kernel log, neighbours or modules, so these are not needed of a host that is read only by
    exporters. Its links report the unread modules themselves (link.not-read).
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


_ALL_LINK_RULES = (*link.RULES, *LINK_RULES)


def judge_link(look: Look, transponder: Transponder, expected: Expectations) -> ComponentHealth:
    """Judge one transponder. It is ``disabled`` if its accelerator is out of service: a swap switches its light off."""
    disabled = transponder.accelerator in look.disabled
    here = look.readable(transponder.host)
    if here is None:
        # The host's own finding is the reason.
        state = State.DISABLED if disabled else State.UNKNOWN
        return ComponentHealth(transponder.id, "link", state, disabled=disabled)
    interface = here.seen.interfaces.get(transponder.interface)
    optics = here.seen.optics.get(transponder.interface)
    ports = tuple(port for port in here.seen.infiniband if port.device == transponder.interface)
    # The oldest counts: the link is known no better than its oldest reading.
    read_at = min((r.taken_at for r in (interface, optics, *ports) if r is not None), default=None)
    stale = read_at is not None and look.stale(read_at)
    place = ("link", transponder.id)
    # Readings from before a run moved this light do not count for the present circuit.
    if interface is not None and look.outdated(interface.taken_at, place):
        interface = None
    if optics is not None and look.outdated(optics.taken_at, place):
        optics = None
    ports = tuple(port for port in ports if not look.outdated(port.taken_at, place))
    net = here.seen.probes.get("net")
    case = LinkCase(
        id=transponder.id,
        name=transponder.interface,
        in_use=transponder.id in look.in_use and not disabled,
        listed=here.probe_ended_well("net")
        and not stale
        and net is not None
        and not look.outdated(net.taken_at, place),
        stale=look.stale_evidence(read_at) if read_at is not None and stale else None,
        interface=None if stale else interface,
        optics=None if stale else optics,
        infiniband=() if stale else ports,
        rx_sensitivity_dbm=transponder.rx_sensitivity_dbm,
        read_at=read_at if read_at is not None else here.seen.taken_at,
        now=look.now,
        nic_events=here.nic_events_of(transponder.interface),
        trend=look.trend("link", transponder.id),
        rates=() if stale else expected.rates.get(transponder.id, ()),
        expected_rate=expected.rate(transponder),
        expected_lanes=transponder.rate_lanes,
        expected_part=transponder.module_part,
        unread=optics is None and _is_not_asked(here, transponder.interface),
    )
    findings = judge(_ALL_LINK_RULES, case)
    otherwise = State.OK if case.interface is not None or case.infiniband else State.UNKNOWN
    state = State.DISABLED if disabled else state_of(findings, otherwise=otherwise)
    return ComponentHealth(
        transponder.id,
        "link",
        state,
        findings,
        read_at,
        otherwise=otherwise,
        disabled=disabled,
        seen=_link_probes(look, case, here),
        if_used=frozenset() if case.in_use else _faults_if_used(case),
    )


def _faults_if_used(case: LinkCase) -> frozenset[str]:
    found = judge(_ALL_LINK_RULES, replace(case, in_use=True))
    return frozenset(finding.rule for finding in found if is_fault(finding.state))


def _is_not_asked(here: HostLook, interface: str) -> bool:
    outcome = here.seen.probes.get(f"optics:{interface}")
    return outcome is not None and outcome.status is ProbeStatus.NOT_ASKED


def _link_probes(look: Look, case: LinkCase, here: HostLook) -> frozenset[str]:
    """The probes that reported this link."""
    told = {"host"}
    if case.interface is not None or case.listed:
        told.add("net")
    if case.optics is not None or (here.probe_ended_well(f"optics:{case.name}") and not case.stale):
        # A probe that succeeded without a reading found no module.
        told.add("optics")
    if case.infiniband:
        # Without an interface, the state of the port takes the place of the interface's.
        told |= {"infiniband"} if case.interface is not None else {"infiniband", "net"}
    if any(not look.stale(port.taken_at) for port in here.ports_of(case.name)):
        told.add("counters")
    if here.probe_ended_well("kernel"):
        told.add("kernel")
    return frozenset(told)


def judge_device(
    name: str, reading: DeviceReading | None, now: float, *, stale_after_s: float = inf
) -> ComponentHealth:
    """Judge one device by its reading (``None``: never read), which may be at most ``stale_after_s`` old."""
    age_s = now - reading.taken_at if reading is not None else 0.0
    stale = f"last answered {age_s:.0f} s ago (limit: {stale_after_s:g} s)" if age_s > stale_after_s else None
    case = DeviceCase(name, reading, stale, now)
    findings = judge(device.RULES, case)
    otherwise = State.OK if case.answered is not None else State.UNKNOWN
    return ComponentHealth(
        name,
        "device",
        state_of(findings, otherwise=otherwise),
        findings,
        reading.taken_at if reading is not None and reading.problem is None else None,
        otherwise=otherwise,
        seen=_device_answers(case),
    )


def _device_answers(case: DeviceCase) -> frozenset[str]:
    """The readings of a device to judge: ``driver`` if it was contacted, ``answer`` if it answers, and further ones."""
    if case.reading is None or case.stale is not None:
        return frozenset()
    if (reading := case.answered) is None:
        return frozenset({"driver"})
    seen = {"driver", "answer"}
    if reading.alarms is not None:
        seen.add("alarms")
    if reading.temperature_c is not None and is_plausible_c(reading.temperature_c):
        seen.add("temperature")
    return frozenset(seen)


def judge_circuit(look: Look, circuit: Circuit, loss_db: float | None) -> CircuitHealth:
    """Judge one circuit; ``loss_db`` is its expected loss, if known."""
    cases = {r: _receiver_case(look, circuit.id, r, expected, loss_db) for r, expected in circuit.receivers}
    read = [case for case in cases.values() if case is not None]
    findings = gravest_first(finding for case in read for finding in judge(CIRCUIT_RULES, case))
    all_read = len(read) == len(cases)
    otherwise = State.OK if all_read and all(case.proven for case in read) else State.UNKNOWN
    expected = dict(circuit.receivers)
    return CircuitHealth(
        id=circuit.id,
        owner=circuit.owner,
        direction=circuit.direction.value,
        state=state_of(findings, otherwise=otherwise),
        ends=tuple(
            _end(end, cases.get(end.transponder), expected.get(end.transponder)) for end in (circuit.a, circuit.b)
        ),
        loss_db=loss_db,
        findings=findings,
        read_at=min((case.read_at for case in read), default=None),
        otherwise=otherwise,
        # Only what was read at every receiver can refute a finding of the circuit.
        seen=frozenset.intersection(*map(_receiver_probes, read)) if all_read else frozenset(),
    )


def _receiver_probes(case: ReceiverCase) -> frozenset[str]:
    """The probes that reported one receiver."""
    told = {"net": case.interface is not None, "optics": case.optics is not None, "lldp": case.neighbours_read}
    return frozenset({"host", *(probe for probe, whether in told.items() if whether)})


def _end(end: CircuitEnd, case: ReceiverCase | None, expected: str | None) -> CircuitEndHealth:
    power = case.optics.rx_power_dbm if case and case.optics else None
    return CircuitEndHealth(end.transponder, end.device, end.port, power, case.heard_now if case else None, expected)


def _receiver_case(
    look: Look, circuit: str, receiver: str, expected: str, loss_db: float | None
) -> ReceiverCase | None:
    """The readings of one receiver; ``None`` if its host is not readable, which the host's own finding reports."""
    transponder = look.inventory.transponders[receiver]
    here = look.readable(transponder.host)
    if here is None:
        return None
    interface = here.seen.interfaces.get(transponder.interface)
    optics = here.seen.optics.get(transponder.interface)
    places = (("circuit", circuit), ("link", receiver))
    if interface is not None and look.outdated(interface.taken_at, *places):
        interface = None
    if optics is not None and look.outdated(optics.taken_at, *places):
        optics = None
    lldp = here.seen.probes.get("lldp")
    neighbours_read = (
        Evidence.LLDP in transponder.verify
        and here.probe_ended_well("lldp")
        and lldp is not None
        and not look.outdated(lldp.taken_at, *places)
    )
    neighbours = here.seen.neighbours.get(transponder.interface, ()) if neighbours_read else ()
    freshest = min(neighbours, key=lambda neighbour: neighbour.age_s, default=None)
    return ReceiverCase(
        circuit=circuit,
        receiver=transponder,
        expected=expected,
        interface=interface if interface and not look.stale(interface.taken_at) else None,
        optics=optics if optics and not look.stale(optics.taken_at) else None,
        neighbours_read=neighbours_read,
        neighbour=freshest,
        hears=look.announced_lanes.transponder(freshest) if freshest else None,
        host_known=freshest is not None and look.announced_lanes.knows_host(freshest),
        announced=any(look.announced_lanes.transponder(neighbour) == expected for neighbour in neighbours),
        rx_margin_db=look.limits.rx_margin_db,
        planned_dbm=None if loss_db is None else look.inventory.transponders[expected].tx_power_dbm - loss_db,
        read_at=here.seen.taken_at,
    )
