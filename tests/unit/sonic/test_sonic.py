import math

import pytest
from lumctl_sonic import SonicPort

from lumctl.devices.drivers import load
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import CommandResult, DriverContext
from lumctl.devices.types import Neighbour

ROOT_NEEDED = CommandResult(1, "Root privileges are required for this operation\n", "")
NOW = 1_800_000_000.0
UPDATED_AT = 1_795_299_307.0
"""22:15:07 on 21 November 2026, UTC."""


def test_an_sfp(sonic, said):
    driver, host = sonic(sfputil=said("sfp.txt"))
    optics = driver.read_optics()
    assert host.asked == ["sfputil show eeprom -d -p Ethernet0"]
    assert (optics.taken_at, optics.optical, optics.transmitting) == (NOW, True, True)
    assert (optics.rx_power_dbm, optics.tx_power_dbm, optics.bias_ma) == (-7.2101, 1.3201, 61.24)
    assert (optics.temperature_c, optics.voltage_v, optics.vendor, optics.part) == (33.5, 3.3012, "ACME", "SFP-10G-ER")
    assert optics.thresholds == {
        "temperature_high_alarm": 90.0,
        "rx_power_high_alarm": 1.0,
        "rx_power_low_alarm": -18.0,
        "rx_power_high_warning": 0.0,
        "rx_power_low_warning": -16.0,
    }


def test_a_qsfp_whose_powers_to_send_are_not_monitored(sonic, said):
    optics = sonic(sfputil=said("qsfp.txt"))[0].read_optics()
    assert (optics.rx_power_dbm, optics.tx_power_dbm, optics.transmitting, optics.bias_ma) == (-4.6, None, None, 39.5)
    assert optics.thresholds == {"rx_power_low_alarm": -13.5067, "voltage_low_alarm": 2.97}


def test_a_coherent_module_uses_one_lane_of_eight(sonic, said):
    optics = sonic(sfputil=said("coherent.txt"))[0].read_optics()
    assert (optics.optical, optics.rx_power_dbm, optics.tx_power_dbm, optics.bias_ma) == (True, -8.729, -8.492, 208.0)
    assert (optics.frequency_mhz, optics.target_power_dbm) == (193_100_000, -8.5)


def test_a_lane_that_lost_its_light_shows(sonic, said):
    optics = sonic(sfputil=said("coherent.txt").replace("-8.729dBm", "-infdBm"))[0].read_optics()
    assert (optics.rx_power_dbm, optics.transmitting) == (-math.inf, True)


@pytest.mark.parametrize("name", ["copper.txt", "rj45.txt"])
def test_copper_has_no_optics(sonic, said, name):
    optics = sonic(sfputil=said(name))[0].read_optics()
    assert (optics.optical, optics.rx_power_dbm, optics.thresholds) == (False, None, {})


def test_values_that_are_not_told_are_not_made_up(sonic, said):
    text = said("sfp.txt").replace("-7.2101dBm", "N/A").replace("61.2400mA", "Unknown").replace("33.5000C", "hot")
    optics = sonic(sfputil=text)[0].read_optics()
    assert (optics.rx_power_dbm, optics.bias_ma, optics.temperature_c) == (None, None, None)
    assert optics.tx_power_dbm == 1.3201


def test_an_empty_port_is_no_reading(sonic, said):
    with pytest.raises(DeviceRefusedError, match="no module is plugged into Ethernet0"):
        sonic(sfputil=said("empty.txt"))[0].read_optics()


def test_another_ports_module_is_not_this_ones(sonic, said):
    with pytest.raises(DeviceRefusedError, match="reports nothing about Ethernet0"):
        sonic(sfputil=said("sfp.txt").replace("Ethernet0:", "Ethernet00:"))[0].read_optics()


def test_a_port_that_is_not_there(sonic, said):
    answer = CommandResult(6, "Error: invalid port 'Ethernet0'\n\nValid values for port: ['Ethernet4']\n", "")
    with pytest.raises(DeviceRefusedError, match="invalid port 'Ethernet0'"):
        sonic(sfputil=answer, sonic_db_cli=said("tables.txt"))[0].read_optics()


@pytest.mark.parametrize(
    "why",
    [
        ROOT_NEEDED,
        CommandResult(1, "", "sudo: a password is required\n"),
        CommandResult(5, "Sfp.get_transceiver_dom_real_value() is currently not implemented for this platform\n", ""),
        CommandResult(127, "", "bash: sfputil: command not found\n"),
    ],
    ids=["no root", "no sudo", "no platform", "no tool"],
)
def test_the_database_stands_in_and_tells_its_own_time(sonic, said, why):
    driver, host = sonic(sfputil=why, sonic_db_cli=said("tables.txt"))
    optics = driver.read_optics()
    assert (optics.taken_at, optics.rx_power_dbm, optics.tx_power_dbm) == (UPDATED_AT, -8.729, -8.492)
    assert (optics.frequency_mhz, optics.target_power_dbm, optics.optical) == (193_100_000, -8.5, True)
    assert (optics.module_state, optics.module_fault, optics.vendor) == ("ModuleReady", "No Fault detected", "ACME")
    assert optics.thresholds == {
        "rx_power_high_alarm": 2.0,
        "rx_power_low_alarm": -21.024,
        "temperature_high_alarm": 80.0,
    }
    driver.read_optics()
    assert [command.split()[0] for command in host.asked] == ["sfputil", "sonic-db-cli", "sonic-db-cli"]
    assert "'TRANSCEIVER_DOM_SENSOR|Ethernet0'" in host.asked[1]


def test_a_clock_that_is_ahead_gives_no_reading_from_the_future(sonic, said):
    driver, _ = sonic(now=UPDATED_AT - 60, sfputil=ROOT_NEEDED, sonic_db_cli=said("tables.txt"))
    assert driver.read_optics().taken_at == UPDATED_AT - 60


def test_a_release_that_does_not_say_when_is_not_believed(sonic, said):
    text = said("tables.txt").replace(", 'last_update_time': 'Sat Nov 21 22:15:07 2026'", "")
    with pytest.raises(DeviceRefusedError, match="does not report when") as refused:
        sonic(sfputil=ROOT_NEEDED, sonic_db_cli=text)[0].read_optics()
    assert "sudo: true" in refused.value.hint


def test_an_older_release_keeps_the_limits_beside_the_readings(sonic, said):
    lines = said("tables.txt").replace("'rx1power'", "'rxpowerlowalarm': '-20.5', 'rx1power'").splitlines()
    text = "\n".join((lines[0], lines[1], "{}", lines[3]))
    assert sonic(sfputil=ROOT_NEEDED, sonic_db_cli=text)[0].read_optics().thresholds == {"rx_power_low_alarm": -20.5}


def test_the_database_knows_no_module(sonic):
    with pytest.raises(DeviceRefusedError, match="no module"):
        sonic(sfputil=ROOT_NEEDED, sonic_db_cli="{}\n{}\n{}\n{'status': '0', 'error': 'N/A'}\n")[0].read_optics()


def test_copper_in_the_database_needs_no_time(sonic):
    text = "{'type': 'RJ45', 'manufacturer': 'N/A', 'model': 'N/A'}\n{}\n{}\n{}\n"
    optics = sonic(sfputil=ROOT_NEEDED, sonic_db_cli=text)[0].read_optics()
    assert (optics.optical, optics.vendor, optics.taken_at) == (False, None, NOW)


def test_what_a_maker_wrote_cannot_pass_for_a_reading(sonic, said):
    written = said("tables.txt").replace("'model': 'ZR-400'", """'model': "a'b", 'rx1power': '9.9', 'x': "c\"""")
    assert sonic(sfputil=ROOT_NEEDED, sonic_db_cli=written)[0].read_optics().rx_power_dbm == -8.729


@pytest.mark.parametrize("text", ["", "Invalid database name input : 'STATE_DB'\n", "{}\n", "[]\n" * 4])
def test_an_answer_that_is_no_answer_of_the_database(sonic, text):
    with pytest.raises(DeviceRefusedError):
        sonic(sfputil=ROOT_NEEDED, sonic_db_cli=text)[0].read_optics()


def test_no_sonic_at_all(sonic):
    with pytest.raises(UnsupportedError, match="not run SONiC"):
        sonic()[0].read_optics()


@pytest.mark.parametrize("tool", ["sfputil", "sonic_db_cli", "lldpctl"])
def test_a_host_that_does_not_end_leaves_no_doubt_about_a_reading(sonic, tool):
    answers = {"sfputil": ROOT_NEEDED, tool: OutcomeUnknownError("h1: did not end within 5 s")}
    driver, _ = sonic(**answers)
    with pytest.raises(DeviceUnreachableError):
        driver.neighbours() if tool == "lldpctl" else driver.read_optics()


def test_two_commands_share_one_deadline(sonic, said):
    with pytest.raises(DeviceUnreachableError, match="took too long"):
        sonic(timeout_s=0.0, sfputil=said("sfp.txt"))[0].read_optics()


def test_whom_a_port_hears(sonic, said):
    driver, host = sonic(lldpctl=said("lldp.json"), sudo=True)
    assert driver.neighbours() == (Neighbour("leaf2", "Ethernet4", 59790.0),)
    assert host.asked == ["sudo -n lldpctl -f json"]


def test_without_the_hosts_wrapper_the_container_is_asked(sonic, said):
    driver, host = sonic(docker=said("lldp.json"))
    assert driver.neighbours()[0].system == "leaf2"
    driver.announce("0a0B")
    assert host.asked[1] == "docker exec -i lldp lldpctl -f json"
    assert host.asked[3].startswith("docker exec -i lldp lldpcli configure lldp custom-tlv replace oui 02,6c,6d")


@pytest.mark.parametrize("text", ["", "[lldpctl] unable to connect", '{"lldp": ', "[" * 5000])
def test_an_answer_that_is_none_of_lldpctl_is_not_nobody(sonic, text):
    with pytest.raises(DeviceRefusedError):
        sonic(lldpctl=text)[0].neighbours()


def test_lldp_that_is_denied(sonic):
    with pytest.raises(DeviceRefusedError, match="permission denied") as refused:
        sonic(lldpctl=CommandResult(1, "", "docker: permission denied while connecting\n"))[0].neighbours()
    assert "docker" in refused.value.hint


@pytest.mark.parametrize("mark", ["", "0", "0g", "0a; reboot", "$(reboot)"])
def test_a_mark_that_is_none_is_not_sent(sonic, mark):
    driver, host = sonic(lldpcli="")
    with pytest.raises(DeviceRefusedError):
        driver.announce(mark)
    assert host.asked == []


def test_without_a_host_it_can_do_nothing():
    with pytest.raises(UnsupportedError, match="has no host"):
        SonicPort(DriverContext(device="t1", interface="Ethernet0")).neighbours()


def test_it_is_installed_under_its_name():
    assert load("sonic") is SonicPort
