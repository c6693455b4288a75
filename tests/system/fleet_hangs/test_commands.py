"""Commands through the fleet's shells, on hosts that hang or go away."""

import threading
import time

import pytest

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.fleet.readings import ProbeStatus
from lumctl.fleet.ssh import session

DOWN = "ip link set dev eth2 down"


@pytest.fixture
def shell(fleet, twin):
    return fleet.shell(twin.name)


def is_well_again(twin, shell):
    twin.heal()
    return shell.run("cat x", timeout_s=5).stdout == "up\n"


def test_a_command_shares_the_connection_with_the_loop(twin, read, shell):
    assert read()[1].status is ProbeStatus.OK
    assert shell.run("cat x", timeout_s=5).stdout == "up\n"
    assert (twin.commands, len(twin.connects)) == (["exec sh", "cat x"], 1)


def test_a_command_that_does_not_end(twin, shell):
    let_go = twin.let_go
    twin.act = lambda *_: let_go.wait(20)
    with pytest.raises(
        OutcomeUnknownError, match=r"h0: 'ip link .*' did not end within 0.2 s; it may have taken effect"
    ):
        shell.run(DOWN, timeout_s=0.2)
    assert is_well_again(twin, shell)
    # Its channel is closed, its connection is not.
    assert len(twin.connects) == 1
    assert twin.channels[0].closed


@pytest.mark.parametrize(("where", "error"), [("exec", OutcomeUnknownError), ("open", DeviceUnreachableError)])
def test_a_shell_does_not_freeze_with_the_server(twin, shell, where, error):
    assert shell.run("cat x", timeout_s=5).exit_status == 0
    twin.frozen = where
    started = time.monotonic()
    with pytest.raises(error):
        shell.run(DOWN, timeout_s=0.3)
    assert time.monotonic() - started < 3.0
    # It is not sent a second time, for it may have acted.
    assert twin.commands.count(DOWN) == (where == "exec")
    assert is_well_again(twin, shell)


def test_a_host_that_cannot_be_reached(twin, shell):
    twin.mute_from = 0
    started = time.monotonic()
    with pytest.raises(DeviceUnreachableError, match=r"no answer within 1 s|no SSH session in time"):
        shell.run(DOWN, timeout_s=0.3)
    assert time.monotonic() - started < 3.0
    assert is_well_again(twin, shell)
    assert DOWN not in twin.commands


def test_a_host_that_runs_nothing(twin, shell):
    twin.runs = False
    with pytest.raises(DeviceRefusedError, match="h0: the host refuses to run commands"):
        shell.run(DOWN, timeout_s=5)


def test_a_connection_lost_while_a_command_runs(twin, shell):
    twin.act = lambda *_: twin.cut()
    with pytest.raises(OutcomeUnknownError, match="h0: the connection was lost while a command ran"):
        shell.run(DOWN, timeout_s=5)
    assert is_well_again(twin, shell)


def test_a_dead_connection_is_replaced_before_anything_is_sent(twin, shell):
    assert shell.run("cat x", timeout_s=5).exit_status == 0
    twin.cut()
    assert shell.run("cat x", timeout_s=5).stdout == "up\n"
    assert (len(twin.connects), len(twin.commands)) == (2, 2)


def test_a_command_while_new_keys_are_never_agreed_on(twin, read, shell):
    def rekey(loop):
        loop.begin()
        next(loop.asked())
        twin.begin_new_keys()

    twin.script = rekey
    assert read()[1].status is ProbeStatus.TIMED_OUT
    started = time.monotonic()
    with pytest.raises(OutcomeUnknownError):
        shell.run(DOWN, timeout_s=0.3)
    assert time.monotonic() - started < 3.0
    # Nor is it sent later, over a new connection: its sender was told that it may have acted, and read the host back.
    assert is_well_again(twin, shell)
    assert DOWN not in twin.commands


def test_a_command_is_not_sent_after_its_time(twin, shell, until):
    assert shell.run("cat x", timeout_s=5).exit_status == 0

    def lose_it_and_be_slow_to_let_in_again():
        assert twin.reached.wait(10)
        twin.frozen = "login"
        twin.cut()

    twin.frozen = "open"
    accomplice = threading.Thread(target=lose_it_and_be_slow_to_let_in_again)
    accomplice.start()
    with pytest.raises(OutcomeUnknownError):
        shell.run(DOWN, timeout_s=0.3)
    accomplice.join()
    assert is_well_again(twin, shell)
    assert not until(lambda: DOWN in twin.commands, within_s=0.2)


def test_output_without_end_is_cut_off(twin, shell, monkeypatch):
    monkeypatch.setattr(session, "MAX_OUTPUT_BYTES", 2**20)

    def pour(channel, _words):
        while True:
            channel.sendall(b"x" * 65536)

    twin.act = pour
    with pytest.raises(DeviceRefusedError, match="a command printed more than 1 MiB"):
        shell.run("cat x", timeout_s=5)
    assert is_well_again(twin, shell)


def test_error_output_that_fills_the_window_does_not_hold_up_a_command(twin, shell):
    well = twin.act

    def complain(channel, words):
        channel.sendall_stderr(b"x" * (3 * 2**20))
        well(channel, words)

    twin.act = complain
    result = shell.run("cat x", timeout_s=30)
    assert (result.exit_status, result.stdout, len(result.stderr)) == (0, "up\n", 3 * 2**20)


def test_a_command_without_exit_status(twin, shell):
    twin.act = lambda channel, _words: channel.close()
    assert shell.run("cat x", timeout_s=5).exit_status == -1


def test_after_close_a_shell_is_unreachable(fleet, shell):
    assert shell.run("cat x", timeout_s=5).exit_status == 0
    fleet.close()
    with pytest.raises(DeviceUnreachableError):
        shell.run("cat x", timeout_s=5)
