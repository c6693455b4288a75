"""The loop of a simulated host as a plain SSH client meets it, and as a foreign sshd serves it."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import paramiko
import pytest

NET, SMI, NVLINK, KERNEL, OPTICS, LLDP = map(str, range(6))
PROGRAM = b"""\
ask() {
case $1 in
0) files /sys/class/net/*/operstate ;;
1) run nvidia-smi -q -x ;;
2) run nvidia-smi nvlink -e ;;
3) grow 'NVRM: .*(Xid|fallen)' dmesg ;;
4) run ethtool -m enp65s0f0 ;;
5) run lldpctl -f json ;;
esac
}
main() {
case $id in
1|2) echo "$n $id" >&3 ;;
3) echo "$n $id" >&4 ;;
4|5) echo "$n $id" >&5 ;;
esac
}
main; exit
"""


class Talk:
    """The client's side of the protocol, over any pair of streams."""

    def __init__(self, send, stream) -> None:
        self.send = send
        self.stream = stream

    def hello(self) -> list[str]:
        return self.stream.readline().decode().split()

    def ask(self, request, *numbers) -> None:
        self.send(f"{request} {' '.join(numbers)}\n".encode())

    def answer(self) -> tuple[str, str, str, bytes]:
        """Mark, probe, request, and what stands between this answer and the next."""
        mark, number, request, status, *length = self.stream.readline().decode().split()
        assert int(status) == 0
        text = self.stream.read(int(length[0])) if length else b""
        assert not length or self.stream.read(1) == b"\n"
        return mark, number, request, text

    def answers(self, count) -> list[tuple[str, str, str]]:
        return [self.answer()[:3] for _ in range(count)]


@contextmanager
def logged_in(sim, host):
    at = sim.endpoints.hosts[host]
    with paramiko.SSHClient() as client:
        client.load_host_keys(str(at.known_hosts))
        client.connect(
            at.address,
            at.ssh.port,
            username=at.ssh.user,
            key_filename=str(at.ssh.key_file),
            allow_agent=False,
            look_for_keys=False,
            timeout=10,
        )
        yield client


@contextmanager
def over_ssh(sim, host):
    with logged_in(sim, host) as client:
        channel = client.get_transport().open_session()
        channel.settimeout(20)
        channel.exec_command("exec sh")
        talk = Talk(channel.sendall, channel.makefile_stderr("rb"))
        talk.end = channel.shutdown_write
        talk.ended = channel.recv_exit_status
        yield talk


@contextmanager
def behind_sshd(sim, host):
    """What a foreign sshd runs for a client that asks for a shell."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lumctl.sim.hosts.forward", str(sim.control), host],
        env=os.environ | {"SSH_ORIGINAL_COMMAND": "exec sh"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )

    def send(data):
        process.stdin.write(data)
        process.stdin.flush()

    with process:
        talk = Talk(send, process.stderr)
        talk.end = process.stdin.close
        talk.ended = lambda: process.wait(20)
        try:
            yield talk
        finally:
            process.stdin.close()


@pytest.fixture
def sim(prototype_sim):
    yield prototype_sim
    prototype_sim.process.clear()


@pytest.fixture(params=[over_ssh, behind_sshd])
def talk(request, sim):
    """A conversation with host s0 that has just begun."""
    with request.param(sim, "s0") as opened:
        opened.send(PROGRAM)
        opened.greeting = opened.hello()
        yield opened


def test_it_says_hello(talk):
    name, version, boot, up_s = talk.greeting
    assert (name, version) == ("lumctl-loop", "2")
    assert len(boot) == 36
    assert float(up_s) > 0


def test_the_program_may_come_in_pieces_and_with_the_first_request(sim):
    with over_ssh(sim, "s0") as talk:
        talk.send(PROGRAM[:100])
        talk.send(PROGRAM[100:] + b"1 0\n")
        assert talk.hello()[0] == "lumctl-loop"
        assert talk.answers(1) == [("=", NET, "1")]


def test_every_host_is_itself(sim):
    hellos = []
    for host in ("s0", "s1"):
        with over_ssh(sim, host) as talk:
            talk.send(PROGRAM)
            hellos.append(talk.hello())
    assert hellos[0][2] != hellos[1][2]


def test_many_requests_over_one_channel(talk):
    talk.ask("1", NET, SMI, KERNEL)
    assert sorted(talk.answers(3)) == [("=", NET, "1"), ("=", SMI, "1"), ("=", KERNEL, "1")]
    for request in range(2, 100):
        talk.ask(request, NET, KERNEL)
        assert sorted(talk.answers(2)) == [("~", NET, str(request)), ("~", KERNEL, str(request))]


def test_what_grew(talk, sim):
    talk.ask("1", KERNEL)
    assert talk.answers(1) == [("=", KERNEL, "1")]
    sim.process.inject("s0-gpu0", "ecc")
    talk.ask("2", KERNEL)
    *_, first = talk.answer()
    sim.process.inject("s0-gpu0", "row-remap-failed")
    talk.ask("3", KERNEL)
    mark, *_, more = talk.answer()
    assert mark == "+"
    assert b"): 64," in more
    assert b"): 48," in first
    assert b"): 48," not in more


def test_a_hung_driver_holds_its_lane_and_nothing_else(talk, sim):
    sim.process.inject("s0", "hung-smi")
    talk.ask("1", SMI, NVLINK, NET, OPTICS, LLDP)
    assert sorted(talk.answers(3)) == [("=", NET, "1"), ("=", OPTICS, "1"), ("=", LLDP, "1")]
    talk.ask("2", NET)
    assert talk.answers(1) == [("~", NET, "2")]
    sim.process.clear("s0")
    assert talk.answers(2) == [("=", SMI, "1"), ("=", NVLINK, "1")]
    talk.ask("3", SMI)
    assert talk.answer()[1:3] == (SMI, "3")


def test_a_slow_host_is_slow_and_whole(talk, sim):
    sim.process.inject("s0", "slow-host", 0.4)
    started = time.monotonic()
    talk.ask("1", NET, SMI, NVLINK, OPTICS, LLDP)
    answers = talk.answers(5)
    assert time.monotonic() - started >= 0.4
    assert {answer[1] for answer in answers} == {NET, SMI, NVLINK, OPTICS, LLDP}
    assert answers.index(("=", SMI, "1")) < answers.index(("=", NVLINK, "1"))


def test_it_ends_with_its_input_even_while_a_tool_hangs(talk, sim):
    sim.process.inject("s0", "hung-smi")
    talk.ask("1", SMI, NET)
    assert talk.answers(1) == [("=", NET, "1")]
    talk.end()
    assert talk.stream.read() == b""
    assert talk.ended() == 137


def test_a_lost_host_cuts_it(talk, sim):
    sim.process.inject("s0", "unreachable")
    assert talk.stream.read() == b""


def test_behind_a_foreign_sshd_it_ends_with_its_client(sim):
    sim.process.inject("s0", "hung-smi")
    with behind_sshd(sim, "s0") as talk:
        talk.send(PROGRAM)
        talk.hello()
        talk.ask("1", SMI)
        talk.stream.close()
        assert talk.ended() == 255


def test_behind_a_foreign_sshd_a_lost_host_does_not_answer(sim):
    sim.process.inject("s0", "unreachable")
    with behind_sshd(sim, "s0") as talk:
        assert talk.ended() == 255


def test_commands_go_on_beside_it(sim):
    with logged_in(sim, "s0") as client:
        loop = client.get_transport().open_session()
        loop.exec_command("exec sh")
        loop.sendall(PROGRAM)
        _, out, _ = client.exec_command("cat /sys/class/net/enp65s0f0/flags", timeout=10)
        assert out.read() == b"0x1003\n"
