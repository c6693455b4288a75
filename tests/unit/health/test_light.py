"""What health says of links and circuits: light is judged by the module, a circuit by whom its receivers hear."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.devices.types import Neighbour
from lumctl.fleet.readings import InfinibandPort
from lumctl.health.rules.link import LEVELS, sane_limits
from lumctl.health.states import State
from lumctl.inventory.model import Evidence
from lumctl.inventory.wiring import circuits_of

NOW = 1_800_000_000.0
DARK = float("-inf")
LANE, FAR = "h03-gpu2-b", "h04-gpu2-a"


@pytest.fixture
def circuit(rack):
    """The circuit between the two lanes that these tests spoil."""
    found = [
        c for c in circuits_of(rack.inventory, rack.assignment) if {c.a.transponder, c.b.transponder} == {LANE, FAR}
    ]
    return found[0].id


def rules(health):
    return [(finding.rule, finding.state) for finding in health.findings]


def only_this_circuit(rack, circuit):
    return {c.state for c in rack.report().circuits.values() if c.id != circuit} == {State.OK}


def test_a_circuit_tells_what_each_end_receives_and_hears(rack, circuit):
    health = rack.observation(losses={circuit: 7.5}).report.circuits[circuit]
    assert [(e.transponder, e.rx_power_dbm, e.hears, e.expected) for e in health.ends] == [
        (LANE, -6.0, FAR, FAR),
        (FAR, -6.0, LANE, LANE),
    ]
    assert (health.state, health.loss_db, health.direction) == (State.OK, 7.5, "duplex")


def test_a_directed_circuit_has_one_receiver(collected):
    rack = collected("prototype")
    health = rack.report().circuits["finetune/0-1:ab"]
    assert [(e.transponder, e.hears, e.expected) for e in health.ends] == [
        ("s0-gpu0-b", None, None),
        ("s1-gpu0-a", "s0-gpu0-b", "s0-gpu0-b"),
    ]
    assert health.state is State.OK


def test_another_transmitter_s_light_is_a_failure_that_names_it(rack, circuit):
    rack.hears(LANE, Neighbour("h07", "eth6", 3.0))
    health = rack.report().circuits[circuit]
    assert rules(health) == [("circuit.wrong-transmitter", State.FAILED)]
    assert health.findings[0].evidence == f"{LANE} hears h07-gpu2-a instead of {FAR}"
    assert health.ends[0].hears == "h07-gpu2-a"
    assert only_this_circuit(rack, circuit)


def test_a_stranger_s_light_is_a_failure_too(rack, circuit):
    rack.hears(LANE, Neighbour("switch9", "Ethernet7", 3.0))
    health = rack.report().circuits[circuit]
    assert health.state is State.FAILED
    assert "switch9 Ethernet7, which is not in the inventory" in health.findings[0].evidence


def test_the_freshest_neighbour_counts(rack, circuit):
    rack.hears(LANE, Neighbour("h07", "eth6", 90.0), Neighbour("h04", "eth6", 2.0))
    assert rack.report().circuits[circuit].state is State.OK


@pytest.mark.parametrize(
    ("freshest", "finding", "words"),
    [
        (Neighbour("h07", "eth6", 2.0), ("circuit.wrong-transmitter", State.FAILED), "hears h07-gpu2-a instead of"),
        (Neighbour("switch9", "Ethernet7", 2.0), ("circuit.unproven", State.UNKNOWN), f"and {FAR} too"),
        (Neighbour("h04", "bond0", 2.0), ("circuit.unproven", State.UNKNOWN), f"and {FAR} too"),
    ],
)
def test_the_intended_transmitter_beside_a_fresher_neighbour(rack, circuit, freshest, finding, words):
    rack.hears(LANE, freshest, Neighbour("h04", "eth6", 20.0))
    health = rack.report().circuits[circuit]
    assert rules(health) == [finding]
    assert words in health.findings[0].evidence


def test_a_known_host_with_an_unknown_port_proves_nothing(rack, circuit):
    rack.hears(LANE, Neighbour("h04", "52:54:00:00:00:14", 2.0))
    health = rack.report().circuits[circuit]
    assert rules(health) == [("circuit.unproven", State.UNKNOWN)]
    assert "h04 52:54:00:00:00:14, a port that is not in the inventory" in health.findings[0].evidence


def test_a_fully_qualified_neighbour_is_recognised(rack, circuit):
    rack.hears(LANE, Neighbour("H04.rack64.example", "eth6", 2.0))
    assert rack.report().circuits[circuit].state is State.OK


@pytest.mark.parametrize("power", [DARK, -40.0])
def test_a_dark_receiver_fails_whatever_an_old_table_entry_says(rack, circuit, power):
    rack.module(LANE, rx_power_dbm=power)
    rack.interface(LANE, operstate="down")
    report = rack.report()
    assert rules(report.circuits[circuit]) == [("circuit.dark", State.FAILED)]
    assert report.circuits[circuit].ends[0].hears is None
    # The missing carrier is the dark receiver's doing: one cause, one finding.
    assert rules(report.links[LANE]) == [("link.rx-power", State.FAILED)]
    assert only_this_circuit(rack, circuit)


def test_an_interface_that_is_down_though_light_arrives(rack, circuit):
    rack.interface(LANE, operstate="down")
    report = rack.report()
    assert rules(report.links[LANE]) == [("link.down", State.FAILED)]
    assert "though light arrives" in report.links[LANE].findings[0].evidence
    assert rules(report.circuits[circuit]) == [("circuit.down", State.FAILED)]


def test_light_that_nobody_announces_is_unproven_and_never_ok(rack, circuit):
    rack.hears(LANE)
    health = rack.report().circuits[circuit]
    assert rules(health) == [("circuit.unproven", State.UNKNOWN)]
    assert health.state is State.UNKNOWN


def test_a_lane_that_lldp_cannot_verify_shows_light_but_not_its_source(rack, circuit):
    rack.inventory.transponders[LANE] = replace(rack.inventory.transponders[LANE], verify=(Evidence.BLINK,))
    health = rack.report().circuits[circuit]
    assert health.state is State.UNKNOWN
    assert health.findings[0].evidence == f"{LANE}: light present, source not shown"
    assert health.ends[0].hears is None


def test_a_thin_margin_degrades_the_circuit(rack, circuit):
    sensitivity = rack.inventory.transponders[LANE].rx_sensitivity_dbm
    rack.module(LANE, rx_power_dbm=sensitivity + 1.9, thresholds={})
    assert rules(rack.report().circuits[circuit]) == [("circuit.rx-margin", State.DEGRADED)]
    rack.module(LANE, rx_power_dbm=sensitivity + 2.1)
    assert rack.report().circuits[circuit].state is State.OK


@pytest.mark.parametrize(("missing_db", "state"), [(0.0, State.OK), (2.9, State.OK), (3.1, State.DEGRADED)])
def test_a_circuit_that_brings_half_of_the_planned_light_is_degraded(rack, circuit, missing_db, state):
    sent = rack.inventory.transponders[FAR].tx_power_dbm
    rack.module(LANE, rx_power_dbm=sent - 4.0 - missing_db)
    rack.module(FAR, rx_power_dbm=sent - 4.0)
    health = rack.observation(losses={circuit: 4.0}).report.circuits[circuit]
    assert health.state is state
    assert rules(health) == ([("circuit.dim", State.DEGRADED)] if state is State.DEGRADED else [])


@pytest.mark.parametrize(
    ("power", "operstate", "state", "words"),
    [
        (-16.5, "up", State.DEGRADED, "below the module's warning limit of -16.0 dBm"),
        (-18.5, "up", State.DEGRADED, "below the module's alarm limit of -18.0 dBm"),
        (-18.5, "down", State.FAILED, "below the module's alarm limit"),
        (1.5, "up", State.DEGRADED, "above the module's warning limit of 1.0 dBm"),
        (2.5, "up", State.DEGRADED, "above the module's alarm limit of 2.0 dBm"),
    ],
)
def test_received_light_is_judged_by_the_module_s_own_limits(rack, power, operstate, state, words):
    rack.module(LANE, rx_power_dbm=power)
    rack.interface(LANE, operstate=operstate)
    health = rack.report().links[LANE]
    assert health.state is state
    assert words in health.findings[0].evidence


@pytest.mark.parametrize(
    "thresholds",
    [
        {"rx_power_low_alarm": 0.0, "rx_power_low_warning": -16.0},
        {"rx_power_low_alarm": 0.0},
        # Beyond what arrives, while the link is up and its receiver could do with much less.
        {"rx_power_low_alarm": -5.0},
    ],
)
def test_absurd_limits_are_noted_and_not_followed(rack, thresholds):
    rack.module(LANE, thresholds=thresholds)
    health = rack.report().links[LANE]
    assert rules(health) == [("link.rx-power", State.OK)]
    assert health.state is State.OK


def test_an_alarm_limit_that_a_working_link_disproves_is_not_followed_while_it_works(rack):
    rack.module(LANE, thresholds={"rx_power_low_alarm": -5.0})
    rack.interface(LANE, operstate="down")
    assert rules(rack.report().links[LANE])[0] == ("link.rx-power", State.FAILED)
    rack.interface(LANE, operstate="up")
    rack.module(LANE, rx_power_dbm=rack.inventory.transponders[LANE].rx_sensitivity_dbm + 5.9)
    assert rules(rack.report().links[LANE]) == [("link.rx-power", State.DEGRADED)]


@pytest.mark.parametrize("thresholds", [{}, {"rx_power_low_alarm": 0.0, "rx_power_low_warning": -16.0}])
@pytest.mark.parametrize(("operstate", "state"), [("up", State.DEGRADED), ("down", State.FAILED)])
def test_without_limits_of_the_module_the_inventory_s_sensitivity_counts(rack, thresholds, operstate, state):
    sensitivity = rack.inventory.transponders[LANE].rx_sensitivity_dbm
    rack.interface(LANE, operstate=operstate)
    rack.module(LANE, rx_power_dbm=sensitivity - 0.1, thresholds=thresholds)
    health = rack.report().links[LANE]
    assert health.state is state
    assert "below its sensitivity" in health.findings[0].evidence


def test_copper_has_no_optics_and_that_is_no_fault(rack, circuit):
    for lane in (LANE, FAR):
        rack.module(lane, optical=False, rx_power_dbm=None, tx_power_dbm=None, thresholds={})
    report = rack.report()
    assert report.links[LANE].state is State.OK
    assert report.circuits[circuit].state is State.OK


def test_an_idle_lane_is_rightly_dark(rack):
    health = rack.report().links["h16-gpu0-a"]
    assert rack.hosts["h16"].interfaces["eth2"].operstate == "down"
    assert health.state is State.OK


def test_an_interface_that_the_host_does_not_have_is_missed_on_an_idle_lane_too(rack):
    rack.host("h16", interfaces={}, optics={})
    assert rules(rack.report().links["h16-gpu0-a"]) == [("link.missing", State.FAILED)]


@pytest.mark.parametrize(("operstate", "state"), [("unknown", State.OK), (None, State.UNKNOWN)])
def test_what_the_kernel_does_not_say_is_not_a_link_that_is_down(rack, operstate, state):
    rack.interface(LANE, operstate=operstate)
    assert rack.report().links[LANE].state is state


@pytest.mark.parametrize(
    ("operstate", "state"),
    [("dormant", State.DEGRADED), ("testing", State.DEGRADED), ("lowerlayerdown", State.FAILED)],
)
def test_an_interface_that_is_not_up_is_not_ok(rack, operstate, state):
    rack.interface(LANE, operstate=operstate)
    health = rack.report().links[LANE]
    assert rules(health) == [("link.down", state)]
    assert operstate in health.findings[0].evidence


def test_stale_readings_of_a_link_are_unknown_and_say_their_age(rack):
    rack.interface(LANE, taken_at=NOW - 45, operstate="down")
    health = rack.report().links[LANE]
    assert rules(health) == [("link.stale", State.UNKNOWN)]
    assert "45 s ago" in health.findings[0].evidence


LASER = {
    "tx_power_low_alarm": -6.0,
    "tx_power_low_warning": -5.0,
    "bias_high_warning": 70.0,
    "bias_high_alarm": 75.0,
    "temperature_high_warning": 70.0,
    "temperature_high_alarm": 75.0,
}


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        ({"tx_power_dbm": -7.0}, "sends -7.0 dBm, below its own alarm limit of -6.0 dBm"),
        ({"tx_power_dbm": -5.5}, "sends -5.5 dBm, below its own warning limit of -5.0 dBm"),
        ({"bias_ma": 75.1}, "draws 75.1 mA, above its own alarm limit of 75.0 mA"),
        ({"temperature_c": 72.0}, "is at 72.0 C, above its own warning limit of 70.0 C"),
        ({"module_state": "ModuleFault", "module_fault": "TEC runaway"}, "says ModuleFault (TEC runaway)"),
    ],
)
def test_the_sending_side_is_judged_by_the_module_s_own_limits(rack, reads, said):
    well = {"tx_power_dbm": 0.0, "bias_ma": 36.0, "temperature_c": 40.0, "module_state": "ModuleReady"}
    rack.module(LANE, thresholds=LASER, transmitting=True, **well)
    assert rack.report().links[LANE].findings == ()
    rack.module(LANE, thresholds=LASER, transmitting=True, **{**well, **reads})
    (finding,) = rack.report().links[LANE].findings
    assert (finding.rule, finding.state) == ("link.module", State.DEGRADED)
    assert said in finding.evidence


def test_a_laser_that_is_off_though_a_circuit_needs_it_is_failed_and_that_is_said_once(rack):
    rack.module(LANE, thresholds=LASER, transmitting=False, tx_power_dbm=-40.0, bias_ma=0.0)
    (finding,) = rack.report().links[LANE].findings
    assert (finding.rule, finding.case, finding.state) == ("link.tx-power", "dark", State.FAILED)
    assert f"(lumctl device show {finding.component})" in finding.advice


def test_limits_of_nothing_are_not_followed(rack):
    blank = dict.fromkeys(LASER, 0.0) | {
        "bias_low_alarm": 0.0,
        "temperature_low_alarm": 0.0,
        "tx_power_high_alarm": 0.0,
    }
    rack.module(LANE, thresholds=blank, transmitting=True, tx_power_dbm=-1.0, bias_ma=36.0, temperature_c=40.0)
    assert rack.report().links[LANE].state is State.OK


def test_an_infiniband_port_that_the_inventory_names_must_be_active(rack):
    lane = rack.inventory.transponders[LANE]
    rack.inventory.transponders[LANE] = replace(lane, interface="mlx5_3")
    port = InfinibandPort("mlx5_3", 1, NOW, "INIT", "LinkUp")
    stranger = InfinibandPort("mlx5_9", 1, NOW, "DOWN", "Disabled")
    rack.host("h03", infiniband=(port, stranger))
    health = rack.report().links[LANE]
    assert rules(health) == [("link.infiniband", State.FAILED)]
    rack.host("h03", infiniband=(replace(port, state="ACTIVE"), stranger))
    assert rack.report().links[LANE].state is State.OK
    rack.host("h03", infiniband=(replace(port, state=None),))
    assert rules(rack.report().links[LANE]) == [("link.infiniband", State.UNKNOWN)]


@given(st.lists(st.floats(-60, 10), min_size=4, max_size=4))
def test_limits_are_followed_only_in_a_possible_order(values):
    limits = dict(zip((f"rx_power_{level}" for level in LEVELS), values, strict=True))
    low_alarm, low_warning, high_warning, high_alarm = values
    possible = low_alarm <= low_warning < high_warning <= high_alarm and low_warning < 0
    assert (sane_limits(limits) is not None) == possible


VOLTAGE = {f"voltage_{level}": v for level, v in zip(LEVELS, (2.97, 3.13, 3.47, 3.63), strict=True)}


@pytest.mark.parametrize(
    ("fields", "case"),
    [
        ({"voltage_v": 3.3}, None),
        ({"voltage_v": 2.9}, "alarm"),
        ({"voltage_v": 3.7}, "alarm"),
        ({"voltage_v": 3.5}, "warning"),
        ({"tx_fault": True}, "tx-fault"),
        ({"tx_fault": False}, None),
        # All lasers stand still, though the module reports light or does not measure it.
        ({"bias_ma": 0.0}, "no-current"),
        ({"bias_ma": 0.0, "tx_power_dbm": None, "transmitting": None}, "no-current"),
        # Copper in an optical cage, and modules that do not measure the current.
        ({"bias_ma": 0.0, "optical": False}, None),
        ({"bias_ma": 0.0, "thresholds": {f"bias_{level}": 0.0 for level in LEVELS}}, None),
    ],
)
def test_voltage_faults_and_lasers_without_current(rack, fields, case):
    rack.module(LANE, **{"thresholds": VOLTAGE, **fields})
    findings = rack.report().links[LANE].findings
    assert [(f.rule, f.case, f.state) for f in findings if f.rule == "link.module"] == (
        [("link.module", case, State.DEGRADED)] if case else []
    )
