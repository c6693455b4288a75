"""What ``ethtool -m`` prints of modules, as text and as JSON."""

import json
import math

import pytest

from lumctl.devices.formats.ethtool import facts_of, parse_ethtool_module, read_ethtool_module


def test_eight_lanes_of_cmis(answer):
    module, unread = (found := read_ethtool_module(answer("cmis8.txt"), 7.0)).reading, found.unread
    assert unread is None
    # The fifth lane receives least, the first sends least, and the last one's laser takes most.
    assert (module.rx_power_dbm, module.tx_power_dbm, module.bias_ma) == (-2.0, 0.79, 65.5)
    assert (module.module_state, module.module_fault) == ("ModuleFault", "TEC runaway")
    assert (module.temperature_c, module.voltage_v, module.part) == (51.4, 3.2911, "AO-800G-2DR4")
    assert len(module.thresholds) == 20
    assert (module.thresholds["rx_power_low_alarm"], module.thresholds["bias_high_warning"]) == (-13.0, 100.0)


def test_json_of_cmis_with_a_dark_lane(answer):
    module, unread = (found := read_ethtool_module(answer("cmis8.json"), 7.0)).reading, found.unread
    assert unread is None
    assert module.rx_power_dbm == -math.inf
    assert module.tx_power_dbm == pytest.approx(0.79, abs=0.01)
    assert (module.bias_ma, module.temperature_c, module.voltage_v) == (65.5, 51.4, 3.2911)
    assert (module.module_state, module.transmitting, module.vendor) == ("ModuleReady", True, "ACME OPTICS")
    assert module.thresholds["rx_power_low_alarm"] == pytest.approx(-13.0, abs=0.01)
    assert module.thresholds["bias_low_warning"] == 40


def test_text_and_json_of_one_module_tell_the_same(answer):
    """The JSON has a key for a value and the same one for its limits; neither may hide the other."""
    text, document = (parse_ethtool_module(answer(f"sfp.{form}"), 7.0) for form in ("txt", "json"))
    for name in ("rx_power_dbm", "tx_power_dbm", "bias_ma", "temperature_c", "voltage_v"):
        assert getattr(document, name) == pytest.approx(getattr(text, name), abs=0.01)
    assert (document.vendor, document.part, document.transmitting) == (text.vendor, text.part, True)
    assert document.thresholds.keys() >= text.thresholds.keys()
    assert all(document.thresholds[name] == pytest.approx(text.thresholds[name], abs=0.01) for name in text.thresholds)


def test_json_of_a_copper_cable():
    told = [{"identifier": 17, "transmitter_technology": 160, "transmitter_technology_description": "Copper cable"}]
    module = read_ethtool_module(json.dumps(told), 7.0).reading
    assert (module.optical, module.rx_power_dbm) == (False, None)


def test_banks_of_lanes_go_on_counting():
    bank = '"laser_tx_bias_current": [ 1.0,2.0 ], "rx_power": {"values": [ 0.5,0.25 ], "type": "Receiver signal OMA"}'
    lanes = {(fact.key, fact.lane): fact.value for fact in facts_of(f'[ {{"identifier": 24, {bank}, {bank}}} ]')}
    assert lanes["laser tx bias current", "4"] == "2.0"
    assert lanes["receiver signal oma", "3"] == "0.5000 mW"


def test_a_bit_error_rate_before_correction_is_the_worst_lane_s(answer):
    rates = "\tPre-FEC BER (Channel 1) : 1.2e-08\n\tPre-FEC BER (Channel 2) : 3e-6\n"
    assert parse_ethtool_module(answer("cmis.txt") + rates, 7.0).pre_fec_ber == 3e-6
    assert parse_ethtool_module(answer("cmis.txt"), 7.0).pre_fec_ber is None


@pytest.mark.parametrize(
    "line",
    [
        "Receiver signal average optical power : 0.0794 mW / -1.00 dBm",
        "Receiver signal average optical power : 0.0794 mW / -inf dBm",
        "Receiver signal average optical power : 0.0794 mW / -11.",
        "Receiver signal average optical power : 0.0000 mW / -11.00 dBm",
        "Receiver signal average optical power : 0.07#4 mX / -11.00 dBq",
        "Module temperature : 37.1.2 degrees C",
        "Module voltage : three",
        "Laser rx power low alarm threshold : 9.0209 mW / -16.80 dBm",
    ],
)
def test_a_value_that_cannot_be_what_the_module_printed(answer, line):
    """A power stands there in two units: where they differ, neither is believed."""
    key = line.partition(" :")[0]
    kept = [written for written in answer("sfp.txt").splitlines() if written.partition(" :")[0].strip() != key]
    module = read_ethtool_module("\n".join([*kept, line]), 7.0)
    assert key.lower() in module.unread
    whole = read_ethtool_module(answer("sfp.txt"), 7.0)
    assert whole.unread is None
    assert module.reading != whole.reading


@pytest.mark.parametrize("file", ["sfp.txt", "qsfp.txt", "cmis8.txt", "cmis8.json"])
def test_an_answer_that_was_cut_before_the_received_power(answer, file):
    text = answer(file)
    for key in (
        "Receiver signal average",
        "Rcvr signal avg optical power (Channel 5)",
        "Rcvr signal avg",
        '"rx_power"',
    ):
        cut = text.find(key)
        if cut >= 0:
            found = read_ethtool_module(text[:cut], 7.0)
            assert found.reading is None or found.unread == "it lacks the received power of some lanes"


def test_a_module_without_diagnostics_states_nothing_and_is_well():
    text = "\tIdentifier : 0x03 (SFP)\n\tConnector : 0x07 (LC)\n\tOptical diagnostics support : No\n"
    module = read_ethtool_module(text, 7.0)
    assert (module.unread, module.reading.optical, module.reading.rx_power_dbm) == (None, True, None)
    assert read_ethtool_module(text.replace(": No", ": Yes"), 7.0).unread is not None
    assert read_ethtool_module("\tIdentifier : 0x11 (QSFP28)\n", 7.0).unread is not None
    assert read_ethtool_module("\tIdentifier : 0x18 (QSFP-DD Double Density 8X)\n", 7.0).unread is None


@pytest.mark.parametrize("milliwatt", [0.0001, 0.00014, 0.00026, 0.0074, 0.0794, 1.0, 12.3456])
def test_powers_may_differ_by_their_last_digit(answer, milliwatt):
    value = f"{milliwatt:.4f} mW / {10 * math.log10(milliwatt):.2f} dBm"
    module = read_ethtool_module(answer("sfp.txt").replace("0.0794 mW / -11.00 dBm", value), 7.0)
    assert (module.unread, module.reading.rx_power_dbm) == (None, round(10 * math.log10(milliwatt), 2))


@pytest.mark.parametrize(
    "text", ["", "garbage", "[ {", '[ {"identifier": 3', "[1]", "{}", "Cannot get module", "[" * 9999]
)
def test_what_is_no_module(text):
    assert read_ethtool_module(text, 7.0).reading is None


@pytest.mark.parametrize(
    ("file", "from_key"),
    [
        ("sfp.txt", "Alarm/warning flags implemented"),
        ("sfp.txt", "Laser bias current high alarm threshold"),
        ("sfp.txt", "Laser rx power low warning threshold"),
        ("cmis8.txt", "Laser bias current high alarm threshold"),
        ("cmis8.txt", "Module voltage low warning threshold"),
        ("cmis8.txt", "Laser rx power low warning threshold"),
    ],
)
def test_an_answer_that_was_cut_before_the_limits_or_within_them(answer, file, from_key):
    text = answer(file)
    found = read_ethtool_module(text[: text.index(from_key)], 7.0)
    assert found.unread == "the answer ends before the module's limits"
    assert found.reading.rx_power_dbm is not None


def test_a_module_that_has_no_limits_says_so(answer):
    text = answer("sfp.txt").split("Alarm/warning")[0] + "Alarm/warning flags implemented           : No\n"
    found = read_ethtool_module(text, 7.0)
    assert (found.unread, found.reading.thresholds) == (None, {})


@pytest.mark.parametrize(
    ("said", "fault"),
    [("None", False), ("[ Yes, No, No, No ]", True), ("[ No, No, No, No ]", False), ("Yes", True), (None, None)],
)
def test_the_fault_of_a_transmitter(answer, said, fault):
    line = "" if said is None else f"\tTx fault                                  : {said}\n"
    assert read_ethtool_module(answer("qsfp.txt") + line, 7.0).reading.tx_fault is fault
    if said is not None:
        lanes = [word == "Yes" for word in said.strip("[] ").split(", ")]
        document = json.loads(answer("cmis8.json"))
        document[0]["tx_fault"] = lanes
        assert read_ethtool_module(json.dumps(document), 7.0).reading.tx_fault is fault
