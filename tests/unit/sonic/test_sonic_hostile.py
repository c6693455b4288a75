"""Whatever a host prints, the driver ends in time with a reading or an error of the contract."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lumctl_sonic import SonicPort, eeprom, tables
from lumctl_sonic.facts import reading_of

from lumctl.devices.errors import (
    DeviceError,
    DeviceRefusedError,
)
from lumctl.devices.protocols import CommandResult, DriverContext

ROOT_NEEDED = CommandResult(1, "Root privileges are required for this operation\n", "")


@pytest.mark.parametrize(
    "flood",
    [
        "'" * 300_000,
        "\"'" * 150_000,
        "{" * 300_000,
        "                x: y\n" * 20_000,
        "': '" * 75_000,
        "\x00" * 300_000,
    ],
    ids=["quotes", "both quotes", "braces", "lines", "pairs", "zeroes"],
)
def test_a_flood_is_read_to_its_bound_in_no_time(sonic, flood):
    begins = "Ethernet0: SFP EEPROM detected\n        Specification compliance:\n"
    started = time.process_time()
    assert sonic(sfputil=begins + flood)[0].read_optics().rx_power_dbm is None
    for answers in ({"sonic_db_cli": f"{{{flood}}}\n{{}}\n{{}}\n{{}}\n"}, {"sonic_db_cli": flood}):
        with pytest.raises(DeviceRefusedError):
            sonic(sfputil=ROOT_NEEDED, **answers)[0].read_optics()
    with pytest.raises(DeviceRefusedError):
        sonic(lldpctl=flood)[0].neighbours()
    assert time.process_time() - started < 5


LINES = st.from_regex(r"(Ethernet0: SFP EEPROM detected\n)( {8,16}[A-Za-z]{1,12}\s?: .{0,20}\n){0,9}")
PAIRS = st.lists(st.text("{}'\": ,abrx1power-.9\\", max_size=60), min_size=4, max_size=4)


@given(st.text(max_size=400) | LINES)
def test_whatever_sfputil_prints_is_read_or_is_not(text):
    assert eeprom.slot_of(text, "Ethernet0") in {None, *eeprom.Slot}
    assert reading_of(eeprom.facts_of(text), 4.0).taken_at == 4.0


@given(PAIRS)
def test_whatever_the_database_prints_is_read_or_is_not(lines):
    facts = tables.facts_of("\n".join(f"{{{line}}}" for line in lines))
    assert reading_of(facts or {}, 4.0).taken_at == 4.0
    assert tables.updated_at(facts or {}) is None


@given(st.binary(max_size=300), st.sampled_from(["sfputil", "sonic-db-cli", "lldpctl"]))
def test_bytes_never_raise_anything_else(printed, tool):
    class Host:
        def run(self, command, *, timeout_s):
            assert timeout_s > 0
            known = command.split()[0] == tool
            return CommandResult(0 if known else 127, printed.decode(errors="replace") if known else "", "")

    driver = SonicPort(DriverContext(device="t1", shell=Host(), interface="Ethernet0", now=lambda: 4.0))
    with contextlib.suppress(DeviceError):
        driver.neighbours() if tool == "lldpctl" else driver.read_optics()
