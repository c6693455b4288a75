"""Health of meshes and switches from their alarms, temperature and powers, and from missing answers."""

import math
from dataclasses import replace

import pytest

from lumctl.devices.types import Alarm, DeviceReading, Obstacle
from lumctl.health.remedy import remedies
from lumctl.health.states import State
from lumctl.inventory.wiring import circuits_of

NOW = 1_800_000_000.0
RAIL = "rail2"
DARK = float("-inf")


def verdict(rack, **fields):
    """The state of a device and its findings: case, state and evidence."""
    rack.device(RAIL, **fields)
    health = rack.report().devices[RAIL]
    return health.state, [(f"{f.rule}/{f.case}", f.state, f.evidence) for f in health.findings]


def psu(severity, text="power supply 1 has failed", source="psu/1", since=None):
    return Alarm(text, severity, source, since)


@pytest.mark.parametrize(
    ("word", "case", "state"),
    [
        ("CRITICAL", "critical", State.FAILED),
        ("critical", "critical", State.FAILED),
        (" Critical ", "critical", State.FAILED),
        ("CR", "critical", State.FAILED),
        ("Major", "major", State.DEGRADED),
        ("minor", "minor", State.DEGRADED),
        ("Warning", "warning", State.DEGRADED),
        ("", "not-said", State.DEGRADED),
        ("indeterminate", "not-said", State.DEGRADED),
        ("sev-9", "not-understood", State.DEGRADED),
        ("okay-ish", "not-understood", State.DEGRADED),
        ("cleared", "cleared", State.OK),
        ("info", "information", State.OK),
    ],
)
def test_an_alarm_counts_by_the_devices_own_word(rack, word, case, state):
    assert verdict(rack, alarms=(psu(word),))[0] is state
    (finding,) = rack.report().devices[RAIL].findings
    assert (finding.rule, finding.case, finding.state) == ("device.alarm", case, state)
    assert "power supply 1 has failed (psu/1)" in finding.evidence


def test_a_word_that_is_not_understood_is_repeated(rack):
    _, ((_, _, evidence),) = verdict(rack, alarms=(psu("Sev-9"),))
    assert evidence == "alarm of unknown severity 'Sev-9': power supply 1 has failed (psu/1)"


def test_a_device_without_alarms_is_ok_and_one_that_has_no_alarms_to_read_as_well(rack):
    assert verdict(rack, alarms=()) == (State.OK, [])
    assert verdict(rack, alarms=None, temperature_c=None) == (State.OK, [])


def test_the_worst_alarm_stands_first_and_the_same_one_twice_counts_once(rack):
    alarms = (psu("warning", "fan 2 is slow"), psu("minor"), psu("CRITICAL"), psu("CRITICAL"))
    state, found = verdict(rack, alarms=alarms)
    assert state is State.FAILED
    assert [rule for rule, _, _ in found] == ["device.alarm/critical", "device.alarm/warning"]


def test_one_that_complains_of_everything_is_cut_short_and_nothing_grave_is_lost(rack):
    _, found = verdict(rack, alarms=(*(psu("minor", f"noise {n}") for n in range(1000)), psu("CRITICAL")))
    assert len(found) == 32
    assert found[0][0] == "device.alarm/critical"
    assert found[-1][2].endswith("; 969 more alarms")


def test_a_long_text_is_cut(rack):
    _, ((_, _, evidence),) = verdict(rack, alarms=(psu("x" * 9000, "y" * 9000, "z" * 9000),))
    assert len(evidence) < 600


@pytest.mark.parametrize(
    ("said", "since"),
    [(NOW - 3600, NOW - 3600), (None, NOW), (NOW + 9e9, NOW), (math.nan, NOW), (-1.0, NOW), (math.inf, NOW)],
)
def test_an_alarm_stands_since_the_device_says_unless_that_cannot_be(rack, said, since):
    rack.device(RAIL, alarms=(psu("major", since=said),))
    assert rack.report().devices[RAIL].findings[0].since == since


def test_a_reading_that_was_not_brought_leaves_the_device_unknown_and_the_others_are_judged(rack):
    state, found = verdict(rack, alarms=None, unread={"alarms": "no answer within 5 s"})
    assert state is State.UNKNOWN
    assert found == [("device.reading/unread", State.UNKNOWN, "alarms not read: no answer within 5 s")]
    state, found = verdict(rack, alarms=None, temperature_c=99.0, unread={"alarms": "no answer within 5 s"})
    assert (state, len(found)) == (State.DEGRADED, 2)


@pytest.mark.parametrize("celsius", [math.nan, math.inf, -math.inf, 1e9, -273.2, 151.0])
def test_an_absurd_temperature_is_unknown_and_not_hot(rack, celsius):
    state, ((rule, _, evidence),) = verdict(rack, temperature_c=celsius)
    assert (state, rule) == (State.UNKNOWN, "device.reading/nonsense")
    assert "which is impossible" in evidence


@pytest.mark.parametrize(("celsius", "state"), [(-40.0, State.OK), (85.0, State.OK), (85.1, State.DEGRADED)])
def test_a_hot_device_is_degraded(rack, celsius, state):
    assert verdict(rack, temperature_c=celsius)[0] is state


def test_an_absurd_power_is_unknown_and_no_light_is_not(rack):
    assert verdict(rack, powers_dbm={0: -3.0, 1: DARK}) == (State.OK, [])
    state, ((rule, _, evidence),) = verdict(rack, powers_dbm={0: -3.0, 1: math.nan, 2: 1e6})
    assert (state, rule) == (State.UNKNOWN, "device.reading/nonsense")
    assert evidence == "the driver returned a power of nan dBm at port 1, and 1 more like it, which is impossible"


@pytest.mark.parametrize("obstacle", Obstacle)
def test_a_device_that_was_not_asked_is_unknown_and_not_failed(watched, obstacle):
    watched.rack.device(RAIL, problem="the gateway of rack r1 at h0:/run/gw.sock does not answer", obstacle=obstacle)
    health = watched.look().devices[RAIL]
    (finding,) = health.findings
    assert (health.state, finding.rule, finding.case) == (State.UNKNOWN, "device.unread", obstacle.value)
    assert "h0:/run/gw.sock" in finding.evidence
    assert ("lumctl gateway status" in finding.advice) is (obstacle is Obstacle.GATEWAY)
    watched.rack.device(RAIL, problem=None, obstacle=None)
    assert watched.look().devices[RAIL].state is State.OK


def test_an_answer_that_is_too_old_says_nothing_about_now(rack):
    rack.devices[RAIL] = replace(rack.devices[RAIL], taken_at=NOW - 60, alarms=(psu("CRITICAL"),))
    health = rack.report().devices[RAIL]
    assert (health.state, [f"{f.rule}/{f.case}" for f in health.findings]) == (State.UNKNOWN, ["device.unread/stale"])
    assert "60 s ago" in health.findings[0].evidence


def test_an_alarm_begins_once_and_ends_when_the_device_clears_it(watched):
    watched.rack.device(RAIL, alarms=(psu("CRITICAL"),))
    watched.look()
    began = watched.report.devices[RAIL].findings[0].since
    watched.restart()
    watched.look()
    assert watched.report.devices[RAIL].findings[0].since == began
    watched.rack.device(RAIL, alarms=())
    watched.look()
    assert (watched.report.devices[RAIL].state, watched.report.devices[RAIL].findings) == (State.OK, ())


def test_alarms_that_cannot_be_read_any_more_are_not_cleared_by_that(watched):
    watched.rack.device(RAIL, alarms=(psu("CRITICAL"),))
    watched.look()
    watched.rack.device(RAIL, alarms=None, unread={"alarms": "cut off"})
    health = watched.look().devices[RAIL]
    assert health.state is State.FAILED
    assert {f.rule for f in health.findings} == {"device.alarm", "device.reading"}
    assert "last seen 10 s ago" in health.findings[0].evidence
    watched.rack.device(RAIL, alarms=(), unread={})
    assert watched.look().devices[RAIL].findings == ()


def test_a_device_that_falls_silent_is_unreachable_and_its_alarm_is_back_when_it_answers(watched):
    watched.rack.device(RAIL, alarms=(psu("CRITICAL"),))
    watched.look()
    began = watched.report.devices[RAIL].findings[0].since
    known = watched.rack.devices[RAIL]
    watched.rack.devices[RAIL] = DeviceReading(watched.now, problem="no answer")
    assert [f.rule for f in watched.look().devices[RAIL].findings] == ["device.unreachable"]
    watched.rack.devices[RAIL] = known
    assert [(f.rule, f.since) for f in watched.look().devices[RAIL].findings] == [("device.alarm", began)]


def test_a_device_whose_name_has_no_address_is_unknown_and_not_lost(rack):
    rack.devices[RAIL] = DeviceReading(NOW, problem="rail:65432: name 'rail' cannot be resolved; nothing was sent")
    health = rack.report().devices[RAIL]
    assert (health.state, health.findings[0].case) == (State.UNKNOWN, "no-name")
    assert "add its name to DNS" in health.findings[0].advice


# --- what it means for light and for repair ---


def darken(watched, lane):
    watched.rack.module(lane, rx_power_dbm=DARK)
    watched.rack.interface(lane, operstate="down")
    watched.rack.hears(lane)


def test_a_device_with_an_alarm_is_not_blamed_for_a_dark_circuit(watched):
    watched.rack.device(RAIL, alarms=(psu("CRITICAL"),))
    darken(watched, "h03-gpu2-a")
    report = watched.look()
    assert [incident.cause for incident in report.incidents] == ["h03-gpu2-a"]
    assert report.devices[RAIL].findings[0].incident is None


def port_of(watched, lane):
    return watched.rack.inventory.transponders[lane].lane.rx


def test_an_alarm_of_the_port_at_which_light_is_lost_is_part_of_that_incident(watched):
    port = port_of(watched, "h03-gpu2-a")
    watched.rack.device(RAIL, alarms=(psu("major", "port failed", f"port/{port}"),))
    darken(watched, "h03-gpu2-a")
    (incident,) = watched.look().incidents
    assert incident.cause == "h03-gpu2-a"
    assert RAIL in incident.members
    assert watched.report.devices[RAIL].findings[0].incident == incident.id


@pytest.mark.parametrize("more", [psu("minor"), psu("major", "port failed", "port/9999")])
def test_a_device_that_complains_of_more_than_that_port_has_a_case_of_its_own(watched, more):
    port = port_of(watched, "h03-gpu2-a")
    watched.rack.device(RAIL, alarms=(psu("major", "port failed", f"port/{port}"), more))
    darken(watched, "h03-gpu2-a")
    watched.look()
    own = watched.report.devices[RAIL].findings
    assert {f.incident for f in own} == {None}


def test_many_circuits_lost_in_a_device_with_an_alarm_are_one_incident_with_it(watched):
    watched.rack.device(RAIL, alarms=(psu("CRITICAL"),))
    for lane in ("h03-gpu2-a", "h02-gpu2-b", "h06-gpu2-a", "h05-gpu2-b"):
        darken(watched, lane)
    (incident,) = watched.look().incidents
    assert (incident.id, incident.rule, incident.state) == (f"device:{RAIL}", "device.alarm", State.FAILED)
    assert "power supply 1 has failed" in incident.summary


def test_what_repairs_an_alarm_is_work_on_the_device_and_no_swap(rack):
    rack.device(RAIL, alarms=(psu("CRITICAL"),))
    (remedy,) = remedies(rack.report(), rack.inventory, rack.assignment)
    assert (remedy.cause, remedy.replace, remedy.avoid) == (RAIL, (), ())
    assert remedy.by_hand == rack.report().devices[RAIL].findings[0].advice
    assert circuits_of(rack.inventory, rack.assignment)
