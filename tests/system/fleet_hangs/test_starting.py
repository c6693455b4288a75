"""A host that hangs, or answers badly, on the way to the loop's greeting: what is said of it, and how soon."""

import dataclasses
import socket
import time

import paramiko
import pytest

from lumctl.fleet.readings import ProbeStatus

BOUND_S = 4.0
"""The time to connect (1 s), that of the shell to answer (1 s), and what a loaded machine takes beyond."""
OK, FAILED, TIMED_OUT = ProbeStatus.OK, ProbeStatus.FAILED, ProbeStatus.TIMED_OUT
FROZEN = "the host's time limit ended before it ran"
MUTE = {"no-banner": 0, "half-a-banner": 5, "no-keys": 30, "half-the-keys": 300, "no-new-keys": 1500}


def is_well_again(twin, read):
    twin.heal()
    host, outcome = read()
    return (host.reachable, host.error, outcome and outcome.status) == (True, None, OK)


def lost(read):
    started = time.monotonic()
    host, outcome = read()
    assert time.monotonic() - started < BOUND_S
    assert (host.reachable, host.host_key_problem, outcome) == (False, False, None)
    return host.error


def failed(read):
    started = time.monotonic()
    host, outcome = read()
    assert time.monotonic() - started < BOUND_S
    assert (host.reachable, host.error) == (True, None)
    return outcome.status, outcome.detail


@pytest.mark.parametrize("mute_from", MUTE.values(), ids=MUTE)
def test_mute_from_some_byte_on(twin, read, mute_from):
    twin.mute_from = mute_from
    assert lost(read) == f"h0: 127.0.0.1 port {twin.endpoint.ssh.port}: no answer within 1 s"
    assert is_well_again(twin, read)


def test_nobody_takes_the_connection(twin, fleet_of):
    # The kernel keeps as many connections waiting as it was told, and does not answer the next one.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        address = full.getsockname()
        for waiting in (first, second):
            waiting.settimeout(0)
            waiting.connect_ex(address)
        twin.endpoint = dataclasses.replace(twin.endpoint, ssh=dataclasses.replace(twin.endpoint.ssh, port=address[1]))
        fleet = fleet_of(twin)

        def read():
            return fleet.collect(probes=["net"]).hosts["h0"], None

        assert lost(read) == f"h0: 127.0.0.1 port {address[1]}: no answer within 1 s"


def test_lines_before_the_banner_without_end(twin, read):
    def talk(sock):
        while True:
            sock.sendall(b"this is not it yet\r\n")
            time.sleep(0.02)

    twin.greets = talk
    assert lost(read).endswith("no answer within 1 s")
    assert is_well_again(twin, read)


def test_frozen_at_the_login(twin, read):
    twin.frozen = "login"
    assert lost(read) == f"h0: 127.0.0.1 port {twin.endpoint.ssh.port}: no answer within 1 s"
    assert is_well_again(twin, read)


@pytest.mark.parametrize("where", ["open", "exec"])
def test_frozen_after_the_login(twin, read, where):
    twin.frozen = where
    assert failed(read) == (TIMED_OUT, FROZEN)
    # The thread that waited there comes free, and what it says is no news of the next try.
    assert failed(read) == (TIMED_OUT, FROZEN)
    assert is_well_again(twin, read)


def test_no_more_sessions(twin, read):
    twin.opens = paramiko.OPEN_FAILED_RESOURCE_SHORTAGE
    assert failed(read) == (FAILED, "h0: the host opens no more sessions")
    assert is_well_again(twin, read)
    assert len(twin.connects) == 1


def test_no_commands(twin, read):
    twin.runs = False
    assert failed(read) == (FAILED, "h0: the host refuses to run commands")
    assert is_well_again(twin, read)
    assert len(twin.connects) == 1


def test_a_shell_without_a_greeting_is_waited_for(twin, read, until):
    let_go = twin.let_go

    def late(loop):
        loop.take_program()
        let_go.wait(20)
        loop.say(b"welcome to the machine\nlumctl-loop 2 - -\n")
        loop.serve()

    twin.script = late
    assert failed(read) == (TIMED_OUT, "its shell does not answer")
    assert failed(read) == (TIMED_OUT, "its shell does not answer")
    twin.heal()
    assert until(lambda: read()[1].status is OK)
    # It was one and the same shell: no second copy stands behind one that is slow to begin.
    assert twin.commands == ["exec sh"]


def test_a_shell_that_ends_at_once(twin, read):
    def complain(loop):
        loop.channel.sendall_stderr(b"sh: 1: cannot make this\nnor that\n")
        loop.channel.send_exit_status(2)
        loop.channel.close()

    twin.script = complain
    assert lost(read) == "h0: its shell ended: sh: 1: cannot make this"
    assert is_well_again(twin, read)
    assert len(twin.connects) == 1


def test_a_login_script_without_end(twin, read):
    def pour(loop):
        while True:
            loop.say(b"no greeting\n" * 4096)

    twin.script = pour
    assert lost(read) == "h0: its shell sent an answer without a request: much output, but no greeting"
    assert is_well_again(twin, read)


def test_a_login_script_that_says_much(twin, read):
    def chat(loop):
        loop.say(b"x" * 10_000 + b"\nlumctl-loop 1 is not this one\n" + b"\0\xff\n" * 100_000)
        loop.begin()
        loop.serve()

    twin.script = chat
    host, outcome = read()
    assert (host.error, outcome.status) == (None, OK)
