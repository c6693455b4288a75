"""Why a component is in its state, as data."""

from dataclasses import replace

import pytest

from lumctl.errors import UsageError
from lumctl.fleet.readings import NvlinkReading, ProbeStatus, Snapshot, XidEvent
from lumctl.health.acknowledgements import MaintenanceWindow
from lumctl.health.explanation import explain
from lumctl.health.rulebook import rulebook
from lumctl.health.states import State

GPU, LANE, HOST = "h03-gpu2", "h03-gpu2-a", "h03"


def why(watched, component):
    snapshot = Snapshot(watched.now, 0.1, watched.rack.hosts)
    rack = watched.rack
    (told,) = explain(watched.report, component, inventory=rack.inventory, snapshot=snapshot, devices=rack.devices)
    return told


def check(told, rule):
    return next(check for check in told.checks if check.rule == rule)


def reading(told, rule, name):
    return next(seen.value for seen in check(told, rule).readings if seen.name == name)


@pytest.mark.parametrize(
    ("component", "family"), [(GPU, "gpu."), (LANE, "link."), (HOST, "host."), ("rail0", "device."), (None, "circuit.")]
)
def test_a_component_that_is_well_tells_every_rule_that_looked_at_it(watched, component, family):
    told = why(watched, component or next(iter(watched.report.circuits)))
    assert (told.state, told.because) == (State.OK, "every rule checked it and found no fault")
    assert [c.rule for c in told.checks] == [rule for rule in rulebook().rules() if rule.startswith(family)]
    assert not any(c.found for c in told.checks)
    assert all(case.origin and case.edition for c in told.checks for case in c.cases)


def test_readings_and_limits_stand_beside_each_other(watched):
    watched.rack.gpu(GPU, temperature_c=93.0)
    watched.look()
    told = why(watched, GPU)
    assert told.because == "gpu.temperature (core): core at 93 C, the card's own limit is 89 C"
    assert reading(told, "gpu.temperature", "temperature_c") == "93"
    assert check(told, "gpu.temperature").found
    (standing,) = told.standing
    assert (standing.line.case, standing.line.clears_after_s, standing.finding.since) == ("core", 30, watched.now)
    assert reading(told, "gpu.ecc", "ecc_volatile_uncorrectable") == "0"
    assert reading(told, "gpu.lost", "listed") == "yes"


def test_a_rule_whose_probe_told_nothing_says_so(watched):
    assert not check(why(watched, GPU), "gpu.nvlink").told
    watched.rack.host(
        HOST, nvlinks=tuple(NvlinkReading(watched.now, i, None, 0, active=True, errors={"crc": 3}) for i in range(4))
    )
    watched.look()
    told = why(watched, GPU)
    assert check(told, "gpu.nvlink").told
    assert reading(told, "gpu.nvlink", "nvlinks") == "1 of 1 active, with crc"


def test_behind_a_lost_host_the_host_is_the_reason(watched):
    watched.rack.host(HOST, reachable=False, error="no route to host", probes={})
    watched.look()
    for component in (GPU, LANE):
        told = why(watched, component)
        assert told.because == "its host is not healthy: h03 (failed)"
        assert [incident.id for incident in told.incidents] == ["host:h03"]
    assert why(watched, HOST).because == "host.unreachable (no-session): no route to host"


def test_work_and_service_come_before_findings(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    watched.said["windows"] = [MaintenanceWindow("w", HOST, "kim", "fans", watched.now, watched.now + 99)]
    watched.look()
    assert why(watched, GPU).because == "in maintenance: h03 by kim: fans"
    assert why(watched, GPU).maintenance == "h03 by kim: fans"
    watched.said = {"disabled": {GPU}}
    watched.look()
    assert why(watched, GPU).because.startswith("out of service")
    assert [s.finding.rule for s in why(watched, GPU).standing] == ["gpu.row-remap"]


def test_a_link_tells_its_light_its_carrier_and_its_counters(watched):
    watched.count(LANE, symbol_error=7, rx_bytes=12)
    watched.look()
    told = why(watched, LANE)
    assert reading(told, "link.down", "operstate") == "up"
    assert reading(told, "link.rx-power", "rx_power_dbm") == "-6"
    assert "low_alarm -18" in reading(told, "link.rx-power", "thresholds")
    assert reading(told, "link.errors", "counters") == "eth6 symbol_error 7"


def test_a_name_that_nobody_has_is_refused_with_the_nearest(watched):
    with pytest.raises(UsageError) as refused:
        why(watched, "h03-gpu9")
    assert "h03-gpu" in (refused.value.hint or "")


def test_every_reading_that_the_data_names_can_be_told():
    from lumctl.fleet.readings import GpuReading

    for rule, seen in rulebook().looks_at.items():
        if rule.startswith("gpu."):
            known = {*GpuReading.__slots__, "listed", "age_s", "xids", "nvlinks", "reports", "collectives"}
            assert set(seen.readings) <= known, rule
    assert set(rulebook().looks_at) == {r for r in rulebook().rules() if not r.startswith("incident.")}


def test_what_the_driver_never_told_is_not_taken_for_an_absence(watched):
    outcomes = dict(watched.rack.hosts[HOST].probes)
    outcomes["gpu"] = replace(outcomes["gpu"], status=ProbeStatus.TIMED_OUT)
    watched.rack.host(HOST, probes=outcomes, gpus=())
    watched.look()
    told = why(watched, GPU)
    assert reading(told, "gpu.lost", "listed") == "not reported"
    assert not check(told, "gpu.lost").told
    fine = len(outcomes) - 1
    assert reading(why(watched, HOST), "host.driver-hung", "probes") == f"gpu timed-out, {fine} others succeeded"


def test_a_component_that_is_well_names_the_rules_that_could_not_look(watched):
    outcomes = dict(watched.rack.hosts[HOST].probes)
    outcomes["kernel"] = replace(outcomes["kernel"], status=ProbeStatus.DENIED)
    watched.rack.host(HOST, probes=outcomes)
    watched.look()
    told = why(watched, GPU)
    assert told.state is State.OK
    assert told.because.endswith("did not report what these rules check: gpu.xid, gpu.xid-repeated")


def test_an_event_is_told_with_its_number(watched):
    event = XidEvent(watched.now, watched.rack.hosts[HOST].gpus[2].pci, 79, "GPU has fallen off the bus.")
    watched.rack.host(HOST, xids=(event,))
    watched.look()
    assert reading(why(watched, GPU), "gpu.xid", "xids") == "XID 79: GPU has fallen off the bus."
