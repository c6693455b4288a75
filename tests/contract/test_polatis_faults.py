"""What a sick switch does to the SCPI driver: each fault has its error, and nothing is ever written twice."""

import math
import threading
import time

import pytest
from lumctl_polatis import PolatisScpi

from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import JoinChange, Staged
from lumctl.devices.ways import Direct
from lumctl.sim.switches.scpi import ScpiSwitch
from lumctl.sim.world.switch import SwitchState

NONE, NO_ERROR = b"(@),(@)\n", b'0,"No error"\n'


@pytest.fixture
def opened():
    drivers = []

    def open_at(address, *, timeout_s=5.0, ports=16, inputs=8):
        drivers.append(
            PolatisScpi(
                DriverContext(
                    device="x1",
                    address=address,
                    way=Direct(address),
                    port_count=ports,
                    input_count=inputs,
                    timeout_s=timeout_s,
                )
            )
        )
        return drivers[-1]

    yield open_at
    for driver in drivers:
        driver.close()


@pytest.fixture
def released():
    """Lets servers that hang end with the test."""
    event = threading.Event()
    yield event
    event.set()


class Scripted:
    """Answers each line as ``answer`` says: bytes, ``None`` to hang up; every line is remembered."""

    def __init__(self, answer):
        self.answer = answer
        self.lines = []
        self.connections = 0

    def __call__(self, connection):
        self.connections += 1
        with connection.makefile("r") as lines:
            for line in lines:
                self.lines.append(line.strip())
                said = self.answer(line.strip())
                if said is None:
                    return
                connection.sendall(said)

    @property
    def writes(self):
        return [line for line in self.lines if "*CLS" in line]


def switch(*, written=b"1\n", errors=NO_ERROR, before=NONE, after=NONE):
    """A switch that holds ``before`` until it is written to, and ``after`` then."""

    def answer(line):
        if "*CLS" in line:
            return written
        if "err" in line:
            return errors
        return after if scripted.writes else before

    scripted = Scripted(answer)
    return scripted


CHANGE = Staged((JoinChange(0, None, 8), JoinChange(1, None, 9)), token="x1")  # noqa: S106 - a device id


@pytest.fixture
def alone():
    """A switch by itself."""
    served = []

    def serve_one(state, **more):
        served.append(ScpiSwitch(state.held, **more))
        served[-1].service.open()
        return served[-1]

    yield serve_one
    for each in served:
        each.close()


def test_a_refused_connection_sends_nothing(opened, nobody):
    with pytest.raises(DeviceUnreachableError, match="nothing was sent"):
        opened(nobody).commit(CHANGE)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"(@),(",
        b"\xff\xfe\x00\n",
        b"\n",
        b"x" * 70000,
        b"(@1),(@9,10)\n",
        b"(@1,1),(@9,10)\n",
        b"(@0),(@9)\n",
        b"(@1),(@9)\n(@),(@)\n",
        b'-113,"Undefined header"\n',
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "(@１),(@９)\n".encode(),  # noqa: RUF001 - digits of another script
        b"(@" + b"1," * 9000 + b"1),(@9)\n",
    ],
    ids=str,
)
def test_before_a_write_whatever_is_no_list_of_joins_is_unreachable(opened, serve, released, said):
    def script(connection):
        connection.recv(4096)
        connection.sendall(said)
        released.wait()

    driver = opened(serve(script), timeout_s=0.25)
    with pytest.raises(DeviceUnreachableError, match="nothing was written"):
        driver.commit(CHANGE)


def test_a_switch_that_drips_cannot_stretch_the_deadline(opened, serve, released):
    def script(connection):
        connection.recv(4096)
        while not released.wait(0.02):
            connection.sendall(b"(")

    began = time.monotonic()
    with pytest.raises(DeviceUnreachableError, match="no answer in time"):
        opened(serve(script), timeout_s=0.3).read_circuits()
    assert time.monotonic() - began < 3


def test_one_deadline_holds_for_all_lines_of_a_call(opened, serve, released):
    def answer(_line):
        released.wait(0.15)
        return b"Polatis,a,b,c\n"

    scripted = Scripted(answer)
    with pytest.raises(DeviceUnreachableError):
        opened(serve(scripted), timeout_s=0.2).identify()


@pytest.mark.parametrize("said", [None, b"", b"2\n", b"garbage\n", b"\xff\n", b"1\nmore\n"], ids=str)
def test_a_write_whose_answer_is_lost_has_an_unknown_outcome_and_is_sent_once(opened, serve, said):
    scripted = switch(written=said)
    driver = opened(serve(scripted), timeout_s=0.4)
    with pytest.raises(OutcomeUnknownError, match="may or may not"):
        driver.commit(CHANGE)
    assert len(scripted.writes) == 1


@pytest.mark.parametrize("which", ["errors", "after"])
def test_what_cannot_be_read_after_a_write_has_an_unknown_outcome(opened, serve, which):
    scripted = switch(**{which: None})
    with pytest.raises(OutcomeUnknownError):
        opened(serve(scripted)).commit(CHANGE)
    assert len(scripted.writes) == 1


@pytest.mark.parametrize(
    ("errors", "after", "error"),
    [
        (b'-221,"Settings conflict"\n', NONE, DeviceRefusedError),
        (b'-221,"Settings conflict; a, b";-113,"x"\n', b"(@1),(@9)\n", InconsistentError),
        (NO_ERROR, NONE, InconsistentError),
        (NO_ERROR, b"(@1,2),(@9,11)\n", InconsistentError),
        (NO_ERROR, b"(@1,2),(@9,40)\n", InconsistentError),
        (b'+0,"No error"\n', b"(@1,2),(@9,10)\n", None),
        (b'-221,"of somebody else"\n', b"(@1,2),(@9,10)\n", None),
    ],
)
def test_what_it_says_and_what_it_shows_decide(opened, serve, errors, after, error):
    driver = opened(serve(switch(errors=errors, after=after)))
    if error is None:
        assert driver.commit(CHANGE).staged == CHANGE
        return
    with pytest.raises(error) as raised:
        driver.commit(CHANGE)
    assert "\n" not in raised.value.message


def test_a_session_that_died_between_two_calls_is_replaced(opened, alone):
    state = SwitchState(16, 8)
    twin = alone(state)
    driver = opened(twin.service.address)
    driver.commit(driver.stage({0: 8}))
    twin.service.shut()
    twin.service.open()
    driver.commit(driver.stage({1: 9}))
    assert state.joins == {0: 8, 1: 9}


def test_one_session_serves_many_calls_and_one_that_waits_with_more_is_not_believed(opened, serve):
    def answer(_line):
        return NONE if len(scripted.lines) != 3 else NONE + b"(@1),(@9)\n"

    scripted = Scripted(answer)
    driver = opened(serve(scripted))
    for _ in range(3):
        driver.read_circuits()
    assert scripted.connections == 1
    assert driver.read_circuits() == {}
    assert scripted.connections == 2


def test_calls_of_several_threads_take_turns(opened, alone):
    state = SwitchState(64, 32)
    driver = opened(alone(state).service.address, ports=64, inputs=32)
    threads = [
        threading.Thread(target=lambda port=port: driver.commit(driver.stage({port: 32 + port}))) for port in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.joins == {port: 32 + port for port in range(16)}


def test_a_model_without_monitors_says_so_and_goes_on(opened, alone):
    state = SwitchState(16, 8)
    driver = opened(alone(state).service.address)
    with pytest.raises(UnsupportedError, match="no power monitor"):
        driver.read_powers((0,))
    assert driver.read_circuits() == {}


def test_a_model_without_shutters_is_not_written_to(opened, serve):
    scripted = Scripted(lambda _line: b"1\n")
    with pytest.raises(UnsupportedError, match="can be neither read nor switched"):
        opened(serve(scripted)).set_port(0, enabled=False)
    assert scripted.writes == []


def test_answers_in_lines_of_their_own_are_understood(opened, serve):
    driver = opened(serve(Scripted(lambda _line: b"(-3.25,-60.00)\n1\n")))
    assert driver.read_powers((0, 5)) == {0: -3.25, 5: -math.inf}


@pytest.mark.parametrize(
    "said", [b"(nan);1\n", b"(-3.2,-4);1\n", b"(1e9999);1\n", b"(low);1\n", b"(-3.2)\nno\n"], ids=str
)
def test_what_is_no_power_is_no_reading(opened, serve, said):
    with pytest.raises(DeviceUnreachableError):
        opened(serve(Scripted(lambda _line: said))).read_powers((0,))


def test_powers_of_many_ports_are_asked_in_pieces(opened, alone):
    twin = alone(SwitchState(600, 300), powers=lambda ports: dict.fromkeys(ports, -1.0))
    powers = opened(twin.service.address, ports=600, inputs=300).read_powers(tuple(range(600)))
    assert list(powers) == list(range(600))
    assert len([line for line in twin.lines if "pow" in line]) == 3


def test_a_port_that_failed_is_told_and_does_not_follow(opened, alone):
    state = SwitchState(16, 8)
    state.failed[3] = 0.0
    driver = opened(alone(state).service.address)
    assert [port for port, reading in driver.read_ports().items() if reading.failed] == [3]
    with pytest.raises(InconsistentError, match="port 3 did not change when told to"):
        driver.set_port(3, enabled=True)


@pytest.mark.parametrize("size", ["16,0", "8,9", "9,7", "16,16"])
def test_another_size_is_inconsistent(opened, serve, size):
    answers = iter([b"Polatis,I-OST-8x8-LU1,002414,6.5.2.18\n", f"{size}\n".encode()])
    with pytest.raises(InconsistentError, match="the inventory states 16, 8 of them inputs"):
        opened(serve(Scripted(lambda _line: next(answers)))).identify()


@pytest.mark.parametrize("size", ["", "8", "8,8,8", "a,b", "-8,8"])
def test_a_size_that_is_none_is_no_switch(opened, serve, size):
    answers = iter([b"Polatis,I-OST-8x8-LU1,002414,6.5.2.18\n", f"{size}\n".encode()])
    with pytest.raises(DeviceUnreachableError):
        opened(serve(Scripted(lambda _line: next(answers)))).identify()


def test_a_change_staged_for_another_switch_is_refused(opened, nobody):
    with pytest.raises(DeviceRefusedError, match="staged for x2"):
        opened(nobody).commit(Staged(CHANGE.changes, token="x2"))  # noqa: S106 - a device id


def test_what_is_already_so_is_not_written(opened, serve):
    scripted = switch(before=b"(@1,2),(@9,10)\n")
    opened(serve(scripted)).commit(CHANGE)
    assert scripted.writes == []
