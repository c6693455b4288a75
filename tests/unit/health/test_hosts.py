"""What health says of hosts and devices, and that one fault behind them is one finding."""

import pytest

from lumctl.fleet.readings import ProbeStatus, XidEvent
from lumctl.health.states import State

NOW = 1_800_000_000.0


def lose(rack, host="h03", **fields):
    rack.host(
        host,
        reachable=False,
        error="h03: no route to host",
        probes={},
        gpus=(),
        interfaces={},
        optics={},
        neighbours={},
        **fields,
    )


def test_a_host_that_cannot_be_reached_is_one_finding_and_not_eight(rack):
    lose(rack)
    report = rack.report()
    assert [(f.component, f.rule, f.state) for f in report.findings()] == [("h03", "host.unreachable", State.FAILED)]
    assert {report.accelerators[f"h03-gpu{i}"].state for i in range(4)} == {State.UNKNOWN}
    assert {report.links[f"h03-gpu{i}-{lane}"].state for i in range(4) for lane in "ab"} == {State.UNKNOWN}
    touched = {c.id for c in report.circuits.values() if c.state is not State.OK}
    assert len(touched) == 8
    assert {report.circuits[c].state for c in touched} == {State.UNKNOWN}
    assert report.hosts["h03"].read_at is None


def test_a_host_whose_name_has_no_address_is_unknown_and_not_lost(rack):
    """Nothing was asked: a mistake in DNS must not look like a dead host, which an autopilot would replace."""
    lose(rack)
    rack.host("h03", error="h03 port 22: name 'h03' cannot be resolved: no name server answers")
    (finding,) = rack.report().hosts["h03"].findings
    assert (finding.rule, finding.case, finding.state) == ("host.unreachable", "no-name", State.UNKNOWN)
    assert "DNS" in finding.advice


def test_a_host_that_is_connected_to_for_the_first_time_is_unknown_and_not_lost(rack):
    rack.host("h03", reachable=False, error=None, awaited=True, probes={}, gpus=(), interfaces={}, optics={})
    (finding,) = rack.report().hosts["h03"].findings
    assert (finding.rule, finding.case, finding.state) == ("host.unread", "never", State.UNKNOWN)


def test_a_host_key_problem_has_its_own_advice(rack):
    lose(rack, host_key_problem=True)
    finding = rack.report().hosts["h03"].findings[0]
    assert "inventory trust" in finding.advice
    lose(rack, host_key_problem=False)
    assert "inventory trust" not in rack.report().hosts["h03"].findings[0].advice


def test_a_hung_driver_is_told_from_a_silent_network(rack):
    rack.probe("h03", "gpu", ProbeStatus.TIMED_OUT)
    rack.host("h03", gpus=())
    report = rack.report()
    assert [(f.component, f.rule, f.state) for f in report.findings()] == [("h03", "host.driver-hung", State.DEGRADED)]
    assert "driver does not answer" in report.findings()[0].evidence
    assert {report.accelerators[f"h03-gpu{i}"].state for i in range(4)} == {State.UNKNOWN}
    assert {c.state for c in report.circuits.values()} == {State.OK}


def test_a_host_that_answers_nothing_in_time_is_slow_and_its_driver_is_not_blamed(rack):
    for probe in rack.hosts["h03"].probes:
        rack.probe("h03", probe, ProbeStatus.TIMED_OUT)
    findings = rack.report().hosts["h03"].findings
    assert [(f.rule, f.state) for f in findings] == [("host.too-slow", State.DEGRADED)]
    assert findings[0].evidence == "answers too slowly: none of its probes ended in time"


def test_a_host_is_named_once(rack):
    lose(rack)
    assert rack.report().hosts["h03"].findings[0].evidence == "no route to host"


def test_a_missing_tool_is_told_once_for_all_lanes(rack):
    lanes = [probe for probe in rack.hosts["h03"].probes if probe.startswith("optics:")]
    for lane in lanes:
        rack.probe("h03", lane, ProbeStatus.ABSENT, "sh: 1: ethtool: not found")
    (finding,) = rack.report().hosts["h03"].findings
    said = "(sh: 1: ethtool: not found), the light power at its receivers is not read"
    assert finding.evidence == f"probe absent: {', '.join(lanes)} {said}"


def test_a_denied_kernel_log_is_told_once_and_leaves_the_accelerators_alone(rack):
    rack.probe("h03", "kernel", ProbeStatus.DENIED, "dmesg: Operation not permitted")
    report = rack.report()
    assert [f.rule for f in report.findings()] == ["host.kernel-log-denied"]
    assert report.hosts["h03"].state is State.DEGRADED
    assert report.accelerators["h03-gpu0"].state is State.OK


def test_probes_that_fail_alike_share_a_finding(rack):
    for lane in ("optics:eth2", "optics:eth3"):
        rack.probe("h03", lane, ProbeStatus.TIMED_OUT)
    rack.probe("h03", "infiniband", ProbeStatus.FAILED, "exit status 2")
    findings = rack.report().hosts["h03"].findings
    assert sorted(f.evidence for f in findings) == [
        "probe failed: infiniband (exit status 2)",
        "probe timed-out: optics:eth2, optics:eth3, the light power at its receivers is not read",
    ]


@pytest.mark.parametrize(("probe", "findings"), [("infiniband", 0), ("optics:eth2", 1), ("gpu", 1), ("lldp", 1)])
def test_a_tool_that_is_absent_matters_only_where_the_inventory_needs_it(rack, probe, findings):
    rack.probe("h03", probe, ProbeStatus.ABSENT)
    assert len(rack.report().hosts["h03"].findings) == findings


def test_a_table_of_neighbours_that_cannot_be_read_leaves_circuits_unknown_and_silent(rack):
    rack.probe("h03", "lldp", ProbeStatus.ABSENT)
    rack.host("h03", neighbours={})
    report = rack.report()
    assert [f.component for f in report.findings()] == ["h03"]
    assert sum(c.state is State.UNKNOWN for c in report.circuits.values()) == 8


def test_a_host_that_was_never_read_is_unknown(rack):
    del rack.hosts["h03"]
    report = rack.report()
    assert [(f.component, f.rule) for f in report.findings()] == [("h03", "host.unread")]
    assert report.accelerators["h03-gpu1"].state is State.UNKNOWN
    assert report.accelerators["h03-gpu1"].read_at is None


def test_old_readings_say_nothing_about_now(rack):
    report = rack.report(now=NOW + 60)
    assert {
        h.state for name in ("hosts", "accelerators", "links", "circuits") for h in report.groups()[name].values()
    } == {State.UNKNOWN}
    assert "61 s ago" in report.hosts["h01"].findings[0].evidence


def test_an_xid_of_nobody_is_not_dropped_in_silence(rack):
    rack.host("h03", xids=(XidEvent(NOW - 5, "0000:f0:00", 79, ""), XidEvent(NOW - 5, "0000:f1:00", 31, "")))
    findings = rack.report().findings()
    assert [(f.component, f.rule) for f in findings] == [("h03", "host.xid-unmatched")]
    assert "XID 79 at 0000:f0:00" in findings[0].evidence
    assert "31" not in findings[0].evidence


def test_a_device_that_does_not_answer_is_failed_and_the_light_is_judged_by_itself(rack):
    rack.device("rail1", problem="connection refused")
    report = rack.report()
    assert report.devices["rail1"].state is State.FAILED
    assert [f.rule for f in report.findings()] == ["device.unreachable"]
    assert {c.state for c in report.circuits.values()} == {State.OK}


def test_a_device_that_was_not_asked_is_unknown(rack):
    del rack.devices["rail1"]
    assert rack.report().devices["rail1"].state is State.UNKNOWN
