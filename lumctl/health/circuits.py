"""The verdict on a circuit: ok only if every receiver is shown to hear its intended transmitter."""

from lumctl.health.hearing import heard_transponder, speaks_for_a_host
from lumctl.health.judging import judge, state_of, worst_first
from lumctl.health.look import Look
from lumctl.health.rules.circuit import RULES, ReceiverCase
from lumctl.health.states import CircuitEndHealth, CircuitHealth, State
from lumctl.inventory.model import Evidence
from lumctl.inventory.wiring import Circuit, CircuitEnd


def judge_circuit(look: Look, circuit: Circuit, loss_db: float | None) -> CircuitHealth:
    """Judge one circuit; ``loss_db`` is its expected loss where that is known."""
    cases = {r: _receiver_case(look, circuit.id, r, expected, loss_db) for r, expected in circuit.receivers}
    read = [case for case in cases.values() if case is not None]
    findings = worst_first(finding for case in read for finding in judge(RULES, case))
    proven = len(read) == len(cases) and all(case.proven for case in read)
    expected = dict(circuit.receivers)
    return CircuitHealth(
        id=circuit.id,
        owner=circuit.owner,
        device=circuit.device,
        direction=circuit.direction.value,
        state=state_of(findings, otherwise=State.OK if proven else State.UNKNOWN),
        ends=tuple(
            _end(end, cases.get(end.transponder), expected.get(end.transponder)) for end in (circuit.a, circuit.b)
        ),
        loss_db=loss_db,
        findings=findings,
        read_at=min((case.read_at for case in read), default=None),
    )


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
    neighbours_read = Evidence.LLDP in transponder.verify and here.probe_ended_well("lldp")
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
        hears=heard_transponder(look.inventory, freshest) if freshest else None,
        host_known=freshest is not None and speaks_for_a_host(look.inventory, freshest),
        announced=any(heard_transponder(look.inventory, neighbour) == expected for neighbour in neighbours),
        rx_margin_db=look.limits.rx_margin_db,
        planned_dbm=None if loss_db is None else look.inventory.transponders[expected].tx_power_dbm - loss_db,
        read_at=here.seen.taken_at,
    )
