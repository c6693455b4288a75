"""One program, run by a real shell and by a simulated host: the same requests get the same answers.

The real shell finds tools that print what the simulated host's tools print at that moment.
"""

import os
import signal
import subprocess
from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from lumctl.fleet.loop import program
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.hosts.host import SimHost
from lumctl.sim.hosts.loop import HostLoop
from lumctl.sim.world.world import World

HOST, INTERFACE = "s0", "enp65s0f0"
TOOL = """\
#!/bin/sh
cd "$0.says" || exit
cat errors >&2
cat output
read -r status <status
exit "$status"
"""


class Asked(NamedTuple):
    lane: str
    command: str


TABLE = (
    Asked("", "files /sys/class/net/l[o]/operstate /sys/class/net/lo/speed /sys/class/net/lo/flags /no/such*/file"),
    Asked("nvidia", "run nvidia-smi -q -x"),
    Asked("kernel", "grow 'NVRM: .*(Xid|fallen)|^[^<[0-9 ]' dmesg"),
    Asked("optics", f"run ethtool -m {INTERFACE}"),
    Asked("nvidia", "run no-such-tool --at all"),
    Asked("", "files /no/such/file"),
    Asked("kernel", "grow 'no such line' dmesg"),
)
TOOLS = {"nvidia-smi": "nvidia-smi -q -x", "dmesg": "dmesg", "ethtool": f"ethtool -m {INTERFACE}"}
NOT_FOUND = "4"
EVERY = "0 1 2 3 4 5 6"
STEPS = (
    ("nothing happens", (), EVERY),
    ("nothing happens again", (), EVERY),
    ("a kernel log begins", ("s0-gpu0", "ecc"), EVERY),
    ("it grows", ("s0-gpu0", "row-remap-failed"), EVERY),
    ("a reading changes", ("s0-gpu0", "overheat"), EVERY),
    ("a tool fails", ("s0-gpu0", "gpu-lost"), "1 3 2"),
    ("the log shrinks", None, EVERY),
    ("nothing is asked", (), ""),
    ("a number has no row", (), "99 0 42"),
)


class Frozen:
    """A simulated host in a world whose clock stands still, and the tools that say the same."""

    def __init__(self, folder: Path) -> None:
        inventory = load_inventory(example("prototype"))
        self.world = World(inventory, seed=3, now=lambda: 1_800_000_000.0)
        self.host = SimHost(self.world, HOST, now=lambda: 1_800_000_000.0)
        self.folder = folder
        for tool in TOOLS:
            (folder / tool).write_text(TOOL)
            (folder / tool).chmod(0o755)
            (folder / f"{tool}.says").mkdir()

    def change(self, fault) -> None:
        if fault is None:
            self.world.clear()
        elif fault:
            self.world.inject(*fault)
        for tool, command in TOOLS.items():
            said = self.host.answer(command)
            for name, text in (("output", said.stdout), ("errors", said.stderr), ("status", f"{said.exit_status}\n")):
                (self.folder / f"{tool}.says" / name).write_text(text)


class RealShell:
    def __init__(self, command, folder: Path) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)},
            start_new_session=True,
        )

    def close(self):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def readline(self):
        return self.process.stderr.readline()

    def read(self, count):
        return self.process.stderr.read(count)

    def end(self):
        """What it still says, and the signal that ends it."""
        self.process.stdin.close()
        assert self.process.stdout.read() == b""
        return self.process.stderr.read(), -self.process.wait(20)


class SimulatedShell:
    def __init__(self, host: SimHost) -> None:
        self.incoming: deque[bytes] = deque()
        self.said = b""
        self.status = None
        self.loop = HostLoop(host, self, lambda run: run())

    # The loop's side.

    def write(self, data):
        self.said += data

    def close(self, exit_status):
        self.status = exit_status

    # The client's side.

    def send(self, data):
        self.incoming.append(data)
        self.loop.wake()

    def readline(self):
        line, newline, self.said = self.said.partition(b"\n")
        return line + newline

    def take(self, count):
        taken, self.said = self.said[:count], self.said[count:]
        return taken

    def read(self, count=None):
        """Both sides read: the loop what came in, the client so many bytes of what was said."""
        if count is None:
            return self.incoming.popleft() if self.incoming else None
        return self.take(count)

    def end(self):
        self.send(b"")
        return self.said, self.status - 128


def answers(shell, count):
    """So many answers, in the order of the probes; of a shell's complaint about a tool, that it is not there."""
    found = []
    for _ in range(count):
        mark, number, request, status, *length = shell.readline().decode().split()
        text = shell.read(int(length[0])) if length else b""
        assert not length or shell.read(1) == b"\n"
        if number == NOT_FOUND and length:
            text = text[-len(b"not found") :]
        found.append((int(number), mark, request, int(status), text))
    return sorted(found)


SHELLS = [("sh",), ("dash",), ("bash",), ("bash", "--posix"), ("busybox", "sh")]


@pytest.mark.parametrize("command", SHELLS, ids=" ".join)
def test_a_real_shell_and_a_simulated_one_give_the_same_answers(command, require_program, tmp_path):
    require_program(command[0])
    if not Path("/sys/class/net/lo").exists():
        pytest.skip("this system has no loopback interface in /sys")
    frozen = Frozen(tmp_path)
    frozen.change(())
    simulated = SimulatedShell(frozen.host)
    with closing(RealShell(command, tmp_path)) as real:
        hellos = []
        for shell in (real, simulated):
            shell.send(program(TABLE))
            # A real one begins a line of its own: a login script may have left one open.
            hellos.append(next(line for line in iter(shell.readline, None) if line.strip()).split())
        assert [hello[:2] for hello in hellos] == [[b"lumctl-loop", b"2"]] * 2
        assert [len(hello[2]) for hello in hellos] == [36, 36]
        for request, (what, fault, numbers) in enumerate(STEPS):
            frozen.change(fault)
            given = []
            for shell in (real, simulated):
                shell.send(f"{request} {numbers}\n".encode())
                given.append(answers(shell, len(numbers.split())))
            assert given[0] == given[1], what
        assert real.end() == simulated.end() == (b"", 9)
