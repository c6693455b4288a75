import json
import math

import pytest

from lumctl.devices.formats.complaint import first_line, is_denial
from lumctl.devices.formats.ethtool import parse_ethtool_module
from lumctl.devices.formats.lldp import parse_lldp
from lumctl.devices.types import Neighbour


def test_an_sfp(answer):
    module = parse_ethtool_module(answer("sfp.txt"), 7.0)
    assert (module.optical, module.transmitting, module.taken_at) == (True, True, 7.0)
    assert (module.rx_power_dbm, module.tx_power_dbm, module.bias_ma) == (-11.0, 2.0, 36.4)
    assert (module.temperature_c, module.voltage_v) == (37.12, 3.2947)
    assert (module.vendor, module.part) == ("ACME OPTICS", "AO-10G-ER")
    assert module.thresholds == {
        "bias_high_alarm": 75.0,
        "tx_power_low_alarm": -2.0,
        "temperature_high_warning": 70.0,
        "rx_power_high_alarm": 5.0,
        "rx_power_low_alarm": -16.8,
        "rx_power_high_warning": 4.0,
        "rx_power_low_warning": -15.8,
    }


def test_a_dark_lane_of_four_shows(answer):
    module = parse_ethtool_module(answer("qsfp.txt"), 7.0)
    assert module.rx_power_dbm == -math.inf
    assert (module.tx_power_dbm, module.bias_ma, module.transmitting) == (-0.46, 41.1, True)
    assert module.thresholds == {"rx_power_low_alarm": -13.9}


def test_cmis_with_its_lasers_off(answer):
    module = parse_ethtool_module(answer("cmis.txt"), 7.0)
    assert (module.optical, module.transmitting) == (True, False)
    # The second lane states milliwatts only.
    assert module.rx_power_dbm == pytest.approx(-6.0206, abs=1e-4)


def quad(lanes, receiver="Rcvr signal avg optical power(Channel {})"):
    """A QSFP's answer from the bias (mA), sent and received power (dBm) of each lane."""
    yield "Module temperature : 34.21 degrees C / 93.58 degrees F"
    yield "Module voltage : 3.2723 V"
    for number, (bias, tx, rx) in enumerate(lanes, 1):
        yield f"Laser tx bias current (Channel {number}) : {bias:.3f} mA"
        yield f"Transmit avg optical power (Channel {number}) : {10 ** (tx / 10):.4f} mW / {tx:.2f} dBm"
        yield f"{receiver.format(number)} : {10 ** (rx / 10):.4f} mW / {rx:.2f} dBm"


NOTHING = -math.inf
UNUSED = (0.0, NOTHING, NOTHING)
AT_LEAST = (0.0, -40.0, -40.0)


@pytest.mark.parametrize(
    ("lanes", "received", "sent"),
    [
        ([(7.0, -1.0, -3.0), UNUSED, UNUSED, UNUSED], -3.0, -1.0),
        ([(7.0, -1.0, -3.0), AT_LEAST, AT_LEAST, AT_LEAST], -3.0, -1.0),
        ([*[(60.0, 1.0, -2.5)] * 4, *[UNUSED] * 4], -2.5, 1.0),
        # A receiver without light of a lane that sends is dark, beside unused lanes and lit ones.
        ([(7.0, -1.0, NOTHING), UNUSED, UNUSED, UNUSED], NOTHING, -1.0),
        ([(7.0, -1.0, NOTHING), (7.0, -1.0, -3.0)], NOTHING, -1.0),
        ([(7.0, -40.0, NOTHING), (7.0, -1.0, -3.0)], NOTHING, -40.0),
        # Nothing is lit, but the module works: its lasers are off and no light arrives.
        ([UNUSED] * 4, NOTHING, NOTHING),
    ],
)
def test_only_lanes_in_use_are_judged(lanes, received, sent):
    module = parse_ethtool_module("\n".join(quad(lanes)), 7.0)
    assert (module.rx_power_dbm, module.tx_power_dbm) == (received, sent)


@pytest.mark.parametrize("key", ["Receiver signal OMA(Channel {})", "Receiver signal OMA (Channel {})"])
def test_a_receiver_that_measures_amplitude_shows_darkness_too(key):
    module = parse_ethtool_module("\n".join(quad([(7.0, -1.0, NOTHING)] * 4, key)), 7.0)
    assert module.rx_power_dbm == NOTHING
    assert parse_ethtool_module("Receiver signal OMA : 0.5000 mW / -3.01 dBm", 7.0).rx_power_dbm == -3.01


def test_a_cable_without_monitors_states_no_light():
    text = "\n".join(quad([UNUSED] * 4)).replace("34.21", "0.00").replace("3.2723", "0.0000")
    module = parse_ethtool_module(f"{text}\nLaser rx power low alarm threshold : 0.0000 mW / -inf dBm", 7.0)
    assert (module.optical, module.rx_power_dbm, module.tx_power_dbm, module.transmitting) == (True, None, None, None)
    assert (module.bias_ma, module.temperature_c, module.voltage_v, module.thresholds) == (None, None, None, {})


def test_copper_has_no_optics_whatever_it_prints(answer):
    module = parse_ethtool_module(answer("copper.txt"), 7.0)
    assert (module.optical, module.rx_power_dbm, module.transmitting) == (False, None, None)
    assert (module.vendor, module.part) == ("ACME CABLES", "AC-100G-CR4")


def test_a_real_copper_cable(captures):
    module = parse_ethtool_module((captures / "ethtool-m__dac.txt").read_text(), 7.0)
    assert (module.optical, module.part, module.thresholds) == (False, "UDC-2", {})


def test_neighbours_freshest_first(answer):
    assert parse_lldp(answer("lldp.json")) == {
        "eth2": (Neighbour("r17-h03", "eth1", 12.0), Neighbour("r17-h02", "eth3", 93784.0)),
        "eth3": (Neighbour("52:54:00:00:00:04", "52:54:00:00:00:14", 172800.0),),
    }


ENTRY = {
    "age": "0 day, 00:00:01",
    "chassis": {"id": {"id": {"type": "mac", "value": "52:54:00:00:00:09"}}},
    "port": {"id": {"type": "ifname", "value": "eth9"}, "descr": "uplink"},
}


@pytest.mark.parametrize("interface", [{"eth2": ENTRY}, [{"eth2": ENTRY}], {"eth2": [ENTRY]}])
def test_the_shapes_of_one_neighbour(interface):
    # The host of this neighbour is called "id", which is also a key of a chassis without a name.
    assert parse_lldp(json.dumps({"lldp": {"interface": interface}})) == {"eth2": (Neighbour("id", "eth9", 1.0),)}


def test_of_two_neighbours_alike_in_age_the_later_one_is_the_fresher():
    other = {**ENTRY, "chassis": {"h2": {"id": {"type": "mac", "value": "52:54:00:00:00:02"}}}}
    heard = parse_lldp(json.dumps({"lldp": {"interface": [{"eth2": ENTRY}, {"eth2": other}]}}))
    assert [neighbour.system for neighbour in heard["eth2"]] == ["h2", "id"]


def test_what_is_heard_by_another_protocol_is_no_neighbour():
    entries = [{"eth2": {"via": via, **ENTRY}} for via in ("CDPv2", "EDP", "LLDP")]
    assert len(parse_lldp(json.dumps({"lldp": {"interface": entries}}))["eth2"]) == 1


@pytest.mark.parametrize("text", ['{"lldp": {}}', '{"lldp": {"interface": {}}}', "", "[1]", "[" * 5000, "null"])
def test_nobody_heard(text):
    assert parse_lldp(text) == {}


def test_what_a_host_says_cannot_reach_the_terminal():
    assert (
        first_line("\n  \n\x1b]0;owned\x07sudo: a password is required\nmore\n")
        == "]0;ownedsudo: a password is required"
    )
    assert is_denial("sudo: a password is required")
    assert not is_denial("No such device")
    assert len(first_line("x" * 10_000)) == 200
