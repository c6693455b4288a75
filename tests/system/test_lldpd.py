"""The mark against the real lldpd: two of them, each in a network namespace of its own, joined by a virtual cable."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lumctl_hostport import HostPort

from lumctl.devices.errors import DeviceError
from lumctl.devices.protocols import CommandResult, DriverContext
from lumctl.devices.types import Neighbour

WAIT_S = 15.0


class Namespace:
    """A host of its own on this machine, with one interface ``fibre0`` and a running lldpd."""

    def __init__(self, name: str, folder: Path, lldpd: str) -> None:
        self.name, self.socket = name, folder / f"{name}.sock"
        self.daemon = subprocess.Popen(
            ["ip", "netns", "exec", name, lldpd, "-d", "-u", self.socket, "-C", "fibre0", "-I", "fibre0", "-S", name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run a command as the driver sends it, aimed at this namespace's own lldpd."""
        tool, *rest = command.split()
        aimed = ["ip", "netns", "exec", self.name, tool, "-u", str(self.socket), *rest]
        done = subprocess.run(aimed, capture_output=True, text=True, timeout=timeout_s, check=False)
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def driver(self) -> HostPort:
        return HostPort(DriverContext(device=self.name, shell=self, interface="fibre0", timeout_s=10.0))


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder for sockets that lldpd can enter after it has given up root."""
    with tempfile.TemporaryDirectory(prefix="lumctl-lldpd-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def hosts(open_folder: Path, require_program: Callable[[str], str]) -> Iterator[tuple[Namespace, Namespace]]:
    ip, lldpd = require_program("ip"), require_program("lldpd")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    names = [f"lumctl{os.getpid()}{side}" for side in "ab"]

    def do(*words: str) -> None:
        subprocess.run([ip, *words], check=True, capture_output=True)

    running: list[Namespace] = []
    try:
        for name in names:
            do("netns", "add", name)
        do("link", "add", "fibre0", "netns", names[0], "type", "veth", "peer", "name", "fibre0", "netns", names[1])
        for name in names:
            do("-n", name, "link", "set", "fibre0", "up")
            running.append(Namespace(name, open_folder, lldpd))
        yield running[0], running[1]
    finally:
        for host in running:
            host.daemon.terminate()
            host.daemon.wait()
        for name in names:
            subprocess.run([ip, "netns", "del", name], check=False, capture_output=True)


def until(hear: Callable[[], tuple[Neighbour, ...]], holds: Callable[[Neighbour], bool]) -> Neighbour:
    """Poll a neighbour table, also while the daemon behind it is still starting: lldpd tells nobody by itself."""
    deadline = time.monotonic() + WAIT_S
    while True:
        with contextlib.suppress(DeviceError):
            for neighbour in hear():
                if holds(neighbour):
                    return neighbour
        assert time.monotonic() < deadline


def test_a_mark_told_to_one_lldpd_is_read_from_the_other(hosts: tuple[Namespace, Namespace]) -> None:
    near, far = (host.driver() for host in hosts)

    def announced(mark: str) -> tuple[Neighbour, ...]:
        near.announce(mark)  # again and again: whoever starts last has not heard the first
        return far.neighbours()

    marked = until(lambda: announced("0123456789ab00ff"), lambda n: n.mark is not None)
    assert (marked.mark, marked.port) == ("0123456789ab00ff", "fibre0")
    near.announce("0123456789ac00ff")
    assert until(far.neighbours, lambda n: n.mark == "0123456789ac00ff").age_s <= WAIT_S
