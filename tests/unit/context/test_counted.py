"""What counts of a report: what is acknowledged does not, and what it silences does not either."""

import pytest

from lumctl.fleet.readings import ProbeStatus
from lumctl.health.acknowledgements import Acknowledgement, MaintenanceWindow
from lumctl.health.observation import acknowledged_count, counted_states, own_trouble, standing_incidents
from lumctl.health.states import State

GPU, HOST = "h03-gpu2", "h03"


def said(component, rule=None):
    return Acknowledgement(component, rule, "ops", "known", 0.0)


@pytest.fixture
def look(rack):
    """Look at the collected rack, often enough for every finding to stand."""
    return rack.settled


def lose(rack, host=HOST):
    rack.host(host, reachable=False, error=f"{host}: no route", gpus=(), probes={}, interfaces={}, optics={})


def test_without_acknowledgements_every_state_counts_as_it_is(rack, look):
    rack.lose_gpu(GPU)
    lose(rack, "h05")
    seen = look()
    counted = counted_states(seen)
    assert counted == {
        name: {id_: health.state for id_, health in group.items()} for name, group in seen.report.groups().items()
    }
    assert counted["accelerators"][GPU] is State.FAILED
    assert acknowledged_count(seen) == 0


def test_what_is_acknowledged_counts_as_ok(rack, look):
    rack.lose_gpu(GPU)
    seen = look(said(GPU))
    assert seen.report.accelerators[GPU].state is State.FAILED
    assert counted_states(seen)["accelerators"][GPU] is State.OK
    assert acknowledged_count(seen) == 1


def test_of_several_findings_those_that_nobody_knows_count(rack, look):
    rack.gpu(GPU, ecc_volatile_uncorrectable=2)
    rack.xid(GPU, 79)
    assert counted_states(look(said(GPU, "gpu.xid")))["accelerators"][GPU] is State.DEGRADED
    assert counted_states(look(said(GPU, "gpu.ecc")))["accelerators"][GPU] is State.FAILED
    assert counted_states(look(said(GPU)))["accelerators"][GPU] is State.OK


def test_what_a_lost_host_silences_counts_with_it(rack, look):
    lose(rack)
    worse = look()
    assert counted_states(worse)["accelerators"][GPU] is State.UNKNOWN
    seen = look(said(HOST))
    counted = counted_states(seen)
    assert seen.report.accelerators[GPU].state is State.UNKNOWN
    assert {counted["hosts"][HOST], counted["accelerators"][GPU], counted["links"]["h03-gpu2-a"]} == {State.OK}
    assert set(counted["circuits"].values()) == {State.OK}


def test_a_circuit_between_two_lost_hosts_counts_until_both_are_known(rack, look):
    lose(rack)
    lose(rack, "h04")
    between = next(
        c.id
        for c in rack.observation().circuits
        if {rack.inventory.transponders[end.transponder].host for end in (c.a, c.b)} == {"h03", "h04"}
    )
    assert counted_states(look(said("h03")))["circuits"][between] is State.UNKNOWN
    assert counted_states(look(said("h03"), said("h04")))["circuits"][between] is State.OK


def test_what_is_unknown_by_itself_is_never_quiet(rack, look):
    """The host is well and acknowledged for nothing: what cannot be judged on it still counts."""
    rack.probe(HOST, "gpu", ProbeStatus.TIMED_OUT)
    rack.hears("h01-gpu0-b")
    seen = look(said(HOST))
    assert counted_states(seen)["circuits"]["train-a/0-1"] is State.UNKNOWN


def test_work_counts_as_out_of_service_and_is_no_acknowledged_finding(rack, look):
    rack.lose_gpu(GPU)
    window = MaintenanceWindow("w", HOST, "ops", "fans", 0.0, 1e12)
    seen = look(said(GPU), windows=(window,))
    assert counted_states(seen)["accelerators"][GPU] is State.DISABLED
    assert acknowledged_count(seen) == 0


def test_an_incident_stands_until_all_of_it_is_known(rack, look):
    lose(rack)
    seen = look()
    (incident,) = standing_incidents(seen)
    assert incident.cause == HOST
    assert not own_trouble(seen.report.hosts[HOST], [incident])
    assert not own_trouble(seen.report.accelerators[GPU], [incident])
    assert own_trouble(seen.report.accelerators[GPU], [])
    assert standing_incidents(look(said(HOST))) == ()
    assert standing_incidents(look(windows=(MaintenanceWindow("w", HOST, "ops", "fans", 0.0, 1e12),))) == ()


def test_incidents_are_told_worst_first(rack, look):
    lose(rack, "h05")
    for gpu in range(4):
        rack.lose_gpu(f"h02-gpu{gpu}")
    states = [incident.state for incident in standing_incidents(look())]
    assert State.FAILED in states
    assert states == sorted(states, key=[State.FAILED, State.DEGRADED, State.UNKNOWN].index)
