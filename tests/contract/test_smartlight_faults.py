"""What a sick mesh controller does to the driver: each fault has its error, and the record never claims too much."""

import socket
import struct
import threading

import pytest
from lumctl_smartlight import SmartlightMesh

from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucChange, PucState, Receipt, Staged
from lumctl.devices.ways import Direct

BAR, CROSS = PucState.BAR, PucState.CROSS
GREETING = b"mesh controller ready\n"


@pytest.fixture
def opened():
    """Open the driver of an eight-cell mesh that was all bar, with little patience."""

    def open_at(address, timeout_s=0.25):
        known = dict.fromkeys(range(8), BAR)
        return SmartlightMesh(
            DriverContext(
                device="m1",
                address=address,
                way=Direct(address),
                puc_count=8,
                timeout_s=timeout_s,
                known_states=known,
            )
        )

    return open_at


@pytest.fixture
def released():
    """Lets servers that hang end with the test."""
    event = threading.Event()
    yield event
    event.set()


def reset(connection):
    """Close with RST, as the kernel of a dying server does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answering(answer, received=None):
    def script(connection):
        connection.sendall(GREETING)
        line = connection.recv(4096)
        if received is not None:
            received.append(line)
        connection.sendall(answer)

    return script


def commit(driver):
    return driver.commit(driver.stage({3: CROSS}))


def test_a_refused_connection_sends_nothing(opened, nobody):
    with pytest.raises(DeviceUnreachableError, match="nothing was sent"):
        commit(opened(nobody))


def test_an_address_that_no_name_server_knows_is_unreachable(opened):
    with pytest.raises(DeviceUnreachableError):
        opened("no-such-host.invalid:65432").identify()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"", "no answer in time"),
        (b"mesh contr", "no answer in time"),
        (b"\xff\xfe\x00\n", "does not greet"),
        (b"\n", "does not greet"),
        (b"x" * 5000, "more than 4096 bytes"),
    ],
    ids=["silence", "half a line", "not text", "an empty line", "no end"],
)
def test_without_a_greeting_line_nothing_is_sent(opened, serve, released, said, error):
    received = []

    def script(connection):
        connection.sendall(said)
        connection.settimeout(0.01)
        while not released.wait(0.01):
            try:
                received.append(connection.recv(4096))
            except TimeoutError:
                continue
            break

    driver = opened(serve(script))
    with pytest.raises(DeviceUnreachableError, match=error):
        commit(driver)
    assert set(received) <= {b""}
    assert driver.stage({3: CROSS}).changes == (PucChange(3, BAR, CROSS),)


def test_closed_before_the_greeting_is_unreachable(opened, serve):
    with pytest.raises(DeviceUnreachableError, match="before its greeting line: the connection was closed"):
        opened(serve(lambda connection: connection.close())).identify()


@pytest.mark.parametrize(
    ("answer", "quoted"),
    [
        (b"error: cell 3 does not move\n", "cell 3 does not move"),
        (b"Error 17\n", "Error 17"),
        (b"setting 3\nSyntaxError: invalid syntax\n", "SyntaxError"),
        (b"invalid request\n", "invalid request"),
        (b"\x80\x81\x82\n", "not text"),
        (b"ok\x00\x01\n", "not text"),
        (b"", "no answer came"),
        (b"ok\n" * 30000, "more than 65536 bytes"),
        (b"a" + b"\n" * 60000 + b"error: busy", "error: busy"),
        (b"setting 3\nErr", "setting 3 Err"),
    ],
    ids=[
        "error",
        "Error",
        "a Python error",
        "invalid",
        "bytes",
        "control characters",
        "nothing",
        "endless",
        "gaps",
        "cut",
    ],
)
def test_a_bad_answer_leaves_the_outcome_unknown(opened, serve, answer, quoted):
    driver = opened(serve(answering(answer)))
    with pytest.raises(OutcomeUnknownError, match=quoted):
        commit(driver)
    assert driver.stage({3: CROSS, 4: BAR}).changes == (PucChange(3, None, CROSS), PucChange(4, BAR, BAR))


def test_an_answer_without_an_end_of_line_is_an_answer(opened, serve):
    driver = opened(serve(answering(b"ok 1 ce")))
    commit(driver)
    assert driver.stage({3: CROSS, 4: BAR}).changes == (PucChange(3, CROSS, CROSS), PucChange(4, BAR, BAR))


def test_a_server_that_hangs_after_the_line_is_given_up(opened, serve, released):
    def script(connection):
        connection.sendall(GREETING)
        connection.recv(4096)
        released.wait()

    with pytest.raises(OutcomeUnknownError, match="no answer in time"):
        commit(opened(serve(script)))


def test_a_server_that_drips_cannot_stretch_the_deadline(opened, serve, released):
    def script(connection):
        connection.sendall(GREETING)
        connection.recv(4096)
        while not released.wait(0.02):
            connection.sendall(b".")

    with pytest.raises(OutcomeUnknownError, match="no answer in time"):
        commit(opened(serve(script)))


def test_a_reset_after_the_line_leaves_the_outcome_unknown(opened, serve):
    def script(connection):
        connection.sendall(GREETING)
        connection.recv(1)
        reset(connection)

    with pytest.raises(OutcomeUnknownError, match="may or may not have changed"):
        commit(opened(serve(script)))


def test_a_slow_but_whole_answer_is_taken(opened, serve, released):
    def script(connection):
        for piece in (b"mesh ", b"ready\n"):
            released.wait(0.03)
            connection.sendall(piece)
        connection.recv(4096)
        for piece in (b"ok 1 ", b"cells", b" set\n"):
            released.wait(0.03)
            connection.sendall(piece)

    assert commit(opened(serve(script), timeout_s=5)).text == "ok 1 cells set"


def test_a_lie_is_believed_and_therefore_read_back_is_not_declared(opened, serve):
    """Nothing in the protocol can show that a controller lies: the engine must prove the light."""
    driver = opened(serve(answering(b"ok 1 cells set\n")))
    assert driver.compare(commit(driver).staged) == ()
    with pytest.raises(UnsupportedError):
        driver.read_states()


def test_the_line_is_the_published_one(opened, serve):
    received = []
    driver = opened(serve(answering(b"ok\n", received)))
    driver.commit(driver.stage({5: BAR, 3: CROSS}))
    assert received == [b"[(3, 'x'), (5, '=')]\n"]


def test_what_is_already_so_is_written_again(opened, serve):
    received = []
    driver = opened(serve(answering(b"ok\n", received)))
    staged = driver.stage({0: BAR})
    assert driver.compare(staged) == ()
    driver.commit(staged)
    assert received == [b"[(0, '=')]\n"]


def test_an_undo_after_an_unknown_outcome_makes_the_states_certain(opened, serve, make_twin):
    twin = make_twin(8)
    answers = iter([answering(b"error: busy\n"), twin])

    def script(connection):
        next(answers)(connection)

    driver = opened(serve(script))
    staged = driver.stage({3: CROSS})
    with pytest.raises(OutcomeUnknownError):
        driver.commit(staged)
    driver.roll_back(Receipt(staged, revert_armed=False))
    assert twin.lines == ["[(3, '=')]\n"]
    assert driver.stage({3: BAR}).changes == (PucChange(3, BAR, BAR),)


def test_a_change_staged_for_another_mesh_is_refused(opened, nobody):
    with pytest.raises(DeviceRefusedError, match="staged for m2"):
        opened(nobody).commit(Staged((PucChange(1, BAR, CROSS),), token="m2"))  # noqa: S106 - a device id
