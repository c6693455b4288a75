"""Nothing is left running on a host, a real one with OpenSSH's sshd, when who reads it dies or is cut off."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from waiting import until

BENCH = Path(__file__).resolve().parents[1] / "bench" / "fleet"
PATIENCE_S = 20.0
CLIENT = """
import sys, threading
from pathlib import Path
from lumctl.devices.endpoints import Endpoints, HostEndpoint
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.probes import Probe
from lumctl.inventory.load import example
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import SshSettings

address, port, user, key, known_hosts, tool = sys.argv[1:]
settings = SshSettings(user=user, port=int(port), key_file=Path(key), config_file=Path("/dev/null"))
at = Endpoints("rack", {"h": HostEndpoint("h", address, settings, Path(known_hosts))}, {})
said = lambda answer, *_: ("ok" if answer.status == 0 else "failed", answer.text)
probes = [
    Probe("hangs", "nvidia", f"run {tool}", 300.0, 0.0, said, print),
    Probe("next", "nvidia", "run true", 300.0, 0.0, said, print),
    Probe("grows", "kernel", f"grow . {tool}", 300.0, 0.0, said, print),
    Probe("net", "", "files /proc/uptime", 5.0, 0.0, said, lambda *_: None),
]
fleet = Fleet(load_inventory(example("prototype")), at, probes_of=lambda _: tuple(probes))
while True:
    host = fleet.tick(patience_s=0.2).hosts["h"]
    net = host.probes.get("net")
    print(host.error or (net and net.status), flush=True)
    threading.Event().wait(0.05)
"""
TOOL = """\
#!/bin/sh
trap '' HUP INT PIPE TERM
echo $$ >>{pids}
sleep 300 &
sleep 300
"""


@pytest.fixture
def relay():
    """A way to the host that can be cut."""
    with Relay() as relay:
        yield relay


@pytest.fixture
def rack(require_program, monkeypatch, relay):
    require_program("sshd")
    require_program("ssh-keygen")
    monkeypatch.syspath_prepend(str(BENCH))
    from rack import Rack

    with Rack(("127.0.0.1",), others={"127.0.0.2": relay.port}) as rack:
        relay.to = rack.port
        yield rack


@pytest.fixture
def client(rack, tmp_path):
    """Start a client that reads a host whose tools hang; gives its process and those of the loop by then."""
    pids, tool = tmp_path / "pids", tmp_path / "hanging-tool"
    tool.write_text(TOOL.format(pids=pids))
    tool.chmod(0o755)
    started, groups = [], []

    def start(address, port):
        told = rack.settings()
        arguments = [address, port, told["user"], told["key"], told["known_hosts"], tool]
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        # It reads on beside what hangs.
        assert "ok\n" in (process.stdout.readline() for _ in range(100))
        group = os.getpgid(int(pids.read_text().split()[0]))
        groups.append(group)
        left = members(group)
        names = sorted(left.values())
        assert names.count("sleep") == 4, names
        assert len(names) >= 9, names
        assert group not in {os.getpgid(0), os.getpgid(process.pid)}
        return process, left

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
    for group in groups:
        # A test that failed leaves nothing behind either.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


class Relay:
    """Forwards connections until it is cut."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.2", 0))
        self.port = self._listener.getsockname()[1]
        self.to = 0
        self._sockets = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.to))
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    @staticmethod
    def _forward(near, far):
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                far.sendall(data)

    def cut(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
        self._thread.join(5)
        for sock in self._sockets:
            sock.close()


def members(group):
    """The processes of a process group, by name."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            name, _, rest = (entry / "stat").read_text().rpartition(")")
            state, _, theirs = rest.split()[:3]
            if int(theirs) == group and state != "Z":
                found[int(entry.name)] = name.partition("(")[2]
    return found


def survivors(processes, within_s=5.0):
    """Those of some processes that do not end soon."""
    ends = time.monotonic() + within_s
    left = {}
    for pid, name in processes.items():
        with contextlib.suppress(ProcessLookupError):
            watched = os.pidfd_open(pid)
            if not select.select([watched], [], [], max(0.0, ends - time.monotonic()))[0]:
                left[pid] = name
            os.close(watched)
    return left


def sessions(rack):
    return Path(f"/proc/{rack.pid}/task/{rack.pid}/children").read_text().split()


def test_the_client_is_killed(client, rack):
    process, loop = client("127.0.0.1", rack.port)
    assert sessions(rack)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert survivors(loop) == {}
    until(lambda: not sessions(rack))


def test_the_connection_is_cut(client, rack, relay):
    process, loop = client("127.0.0.2", relay.port)
    relay.cut()
    assert survivors(loop) == {}
    until(lambda: not sessions(rack))
    assert process.poll() is None
    assert "h: the connection was lost\n" in (process.stdout.readline() for _ in range(100))


def test_the_host_s_end_of_the_connection_is_killed(client, rack):
    process, loop = client("127.0.0.1", rack.port)
    tree = [int(pid) for pid in sessions(rack)]
    for pid in tree:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (*map(int, below), pid):
            if each not in loop:
                os.kill(each, signal.SIGKILL)
    assert survivors(loop) == {}
    assert process.poll() is None
