"""The verdict on a circuit: ok only if every receiver is shown to hear its intended transmitter."""

from lumctl.health.judging import judge, state_of
from lumctl.health.look import Look
from lumctl.health.rules.circuit import RULES, ReceiverCase
from lumctl.health.states import CircuitEndHealth, CircuitHealth, State, gravest_first
from lumctl.inventory.model import Evidence
from lumctl.inventory.wiring import Circuit, CircuitEnd


def judge_circuit(look: Look, circuit: Circuit, loss_db: float | None) -> CircuitHealth:
    """Judge one circuit; ``loss_db`` is its expected loss where that is known."""
    cases = {r: _receiver_case(look, circuit.id, r, expected, loss_db) for r, expected in circuit.receivers}
    read = [case for case in cases.values() if case is not None]
    findings = gravest_first(finding for case in read for finding in judge(RULES, case))
    all_read = len(read) == len(cases)
    otherwise = State.OK if all_read and all(case.proven for case in read) else State.UNKNOWN
    expected = dict(circuit.receivers)
    return CircuitHealth(
        id=circuit.id,
        owner=circuit.owner,
        device=circuit.device,
        direction=circuit.direction.value,
        state=state_of(findings, otherwise=otherwise),
        ends=tuple(
            _end(end, cases.get(end.transponder), expected.get(end.transponder)) for end in (circuit.a, circuit.b)
        ),
        loss_db=loss_db,
        findings=findings,
        read_at=min((case.read_at for case in read), default=None),
        otherwise=otherwise,
        seen=frozenset.intersection(*map(_seen, read)) if all_read else frozenset(),
    )


def _seen(case: ReceiverCase) -> frozenset[str]:
    """The probes that told of one receiver."""
    told = {"net": case.interface is not None, "optics": case.optics is not None, "lldp": case.neighbours_read}
    return frozenset({"host", *(probe for probe, whether in told.items() if whether)})


def _end(end: CircuitEnd, case: ReceiverCase | None, expected: str | None) -> CircuitEndHealth:
    power = case.optics.rx_power_dbm if case and case.optics else None
    return CircuitEndHealth(end.transponder, end.port, power, case.heard_now if case else None, expected)


def _receiver_case(
    look: Look, circuit: str, receiver: str, expected: str, loss_db: float | None
) -> ReceiverCase | None:
    """What is read of one receiver; ``None`` where its host is not readable, which the host's own finding tells."""
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
