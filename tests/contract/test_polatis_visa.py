"""The SCPI twin driven by PyVISA-py, a client that nobody here wrote: what a laboratory would type, it understands."""

import math

import pytest
import pyvisa

from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.world.switch import SwitchState


@pytest.fixture
def state():
    return SwitchState(32, 16)


@pytest.fixture
def twin(state):
    served = ScpiSwitch(state.held, powers=lambda ports: {port: -3.5 if port == 16 else -math.inf for port in ports})
    served.service.open()
    yield served
    served.close()


@pytest.fixture
def manager():
    opened = pyvisa.ResourceManager("@py")
    yield opened
    opened.close()


@pytest.fixture
def visa(manager, twin):
    session = manager.open_resource(
        f"TCPIP::127.0.0.1::{twin.service.port}::SOCKET",
        read_termination="\n",
        write_termination="\n",
        timeout=5000,
        open_timeout=5000,
    )
    yield session
    session.close()


def test_it_says_who_it_is_and_how_large(visa):
    maker, model, serial, version = visa.query("*IDN?").split(",")
    assert (maker, model, serial, version) == ("Polatis", "I-SIM-16x16-switch", "000000", "0.0")
    assert visa.query(":oxc:swit:size?") == "16,16"


def test_joins_are_made_and_taken_silently(visa, state):
    assert visa.query(":oxc:swit:conn:stat?") == "(@),(@)"
    visa.write(":oxc:swit:conn:add  (@1,2,3),(@19,18,22)")
    assert visa.query(":OXC:SWITch:CONNect:STATe?") == "(@1,2,3),(@19,18,22)"
    assert state.joins == {0: 18, 1: 17, 2: 21}
    visa.write(":oxc:swit:conn:sub (@2),(@18)")
    assert visa.query(":oxc:swit:conn:port? 2") == '""'
    assert visa.query(":oxc:swit:conn:port? 19") == '"1"'
    visa.write(":oxc:swit:conn:only (@5),(@20)")
    assert visa.query(":oxc:swit:conn:stat?") == "(@5),(@20)"
    visa.write(":oxc:swit:disc:all")
    assert visa.query(":oxc:swit:conn:stat?") == "(@),(@)"
    assert visa.query(":syst:err:all?") == '0,"No error"'


def test_commands_of_one_line_go_on_where_the_path_is(visa):
    assert visa.query(":oxc:swit:conn:add (@1),(@17);stat?;port? 1") == '(@1),(@17);"17"'
    assert visa.query("*CLS;:oxc:swit:conn:sub (@1),(@17);*OPC?") == "1"


def test_errors_wait_in_a_queue_until_they_are_read(visa, state):
    visa.write(":oxc:swit:conn:add (@1,2),(@17,17)")
    visa.write(":no:such:thing")
    visa.write(":oxc:swit:port:dis (@99)")
    errors = visa.query(":syst:err:all?")
    assert [part for part in errors.split('"')[0::2] if part] == ["-221,", ",-113,", ",-222,"]
    assert "in use" in errors
    assert state.joins == {0: 16}, "a batch may be half done"
    assert visa.query(":syst:err?") == '0,"No error"'


def test_ports_are_shut_and_opened_and_powers_read(visa):
    visa.write(":oxc:swit:port:dis (@2,4)")
    assert visa.query(":oxc:swit:port:stat? (@1,2,4)") == "(E,D,D)"
    visa.write(":oxc:swit:port:enab (@2)")
    assert visa.query(":oxc:swit:port:stat? (@2,4)") == "(E,D)"
    assert visa.query(":pmon:pow? (@17,18)") == "(-3.50,-100.00)"
    visa.write(f":pmon:pow? (@{','.join(map(str, range(1, 33)))}{',1' * 300})")
    assert visa.query(":syst:err:all?").startswith("-222")


def test_two_connections_see_one_switch(visa, manager, twin):
    other = manager.open_resource(
        f"TCPIP::127.0.0.1::{twin.service.port}::SOCKET", read_termination="\n", write_termination="\n", timeout=5000
    )
    visa.write(":oxc:swit:conn:add (@1),(@17)")
    visa.query("*OPC?")
    assert other.query(":oxc:swit:conn:stat?") == "(@1),(@17)"
    other.close()
