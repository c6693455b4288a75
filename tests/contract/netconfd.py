"""A real NETCONF server for tests and measurements: netconfd (yuma123) behind OpenSSH's sshd, on loopback.

It runs as whoever runs the tests, in a folder of its own, with keys of its own, and ends with its ``close``. All that
it leaves is an empty ~/.yuma, which it insists on.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sshd_settings import BY_KEYS_ONLY

from lumctl.devices.endpoints import DeviceEndpoint
from lumctl.devices.protocols import DriverContext
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.routes import Routes
from lumctl.fleet.ways import SshWay
from lumctl.inventory.model import SshSettings

OWN_MODULES = Path(__file__).parent / "yang"
SYSTEM_MODULES = Path("/usr/share/yuma/modules")
STARTS_WITHIN_S = 20.0
SSHD_CONFIG = (
    BY_KEYS_ONLY
    + """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
Subsystem netconf {subsystem} --ncxserver-sockname={port}@{folder}/ncx.sock
"""
)


class Netconfd:
    """A running server. ``address`` is where its SSH answers; ``context(...)`` is what a driver for it is given."""

    def __init__(
        self,
        require_program: Callable[[str], str],
        modules: Sequence[str] = ("lumctl-joins",),
        *,
        module_paths: Sequence[Path] = (OWN_MODULES,),
        options: Sequence[str] = (),
    ) -> None:
        netconfd, subsystem, sshd, keygen = map(
            require_program, ("netconfd", "netconf-subsystem", "sshd", "ssh-keygen")
        )
        self._running = ExitStack()
        # Not pytest's own folder: the path of a socket must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="netconfd-"))
        self._running.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            for name in ("host_key", "user_key"):
                subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
            self.address = f"127.0.0.1:{self.port}"
            path = ":".join(map(str, (*module_paths, SYSTEM_MODULES)))
            self._start_netconfd(netconfd, [*(f"--module={name}" for name in modules), f"--modpath={path}", *options])
            self._start_sshd(sshd, subsystem)
        except BaseException:
            self.close()
            raise

    def endpoint(self, device: str = "d1", **changed: Any) -> DeviceEndpoint:
        """How the device is reached, with whatever a test wants otherwise."""
        ssh = SshSettings(user=getpass.getuser(), key_file=self.folder / "user_key", config_file=Path(os.devnull))
        return replace(DeviceEndpoint(device, self.address, ssh, self.folder / "known_hosts"), **changed)

    def way(self, endpoint: DeviceEndpoint | None = None, timeout_s: float = 5.0) -> SshWay:
        """A real way to an endpoint, or here; the host's key is checked."""
        return SshWay(endpoint or self.endpoint(), Connector(timeout_s=timeout_s), Routes(), _no_host)

    def context(self, device: str = "d1", **more: Any) -> DriverContext:
        """A driver's context with a real way here."""
        given = {"way": self.way(self.endpoint(device)), "address": self.address, "now": time.time, **more}
        return DriverContext(device=device, **given)

    def end_sessions(self) -> None:
        """Have sshd lose every connection, as if it was restarted."""
        for pid in _descendants(self._sshd):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End both, and whatever sshd has started."""
        self._running.close()

    def _start_netconfd(self, program: str, options: list[str]) -> None:
        # Without this folder it keeps what is committed in the user's home.
        (self.folder / "data").mkdir()
        socket_path = self.folder / "ncx.sock"
        command = [
            *(program, "--target=candidate", "--no-startup", f"--superuser={getpass.getuser()}", "--log-level=info"),
            # It takes nobody whom the subsystem did not meet at a port that it knows, and ours is sshd's.
            *(f"--ncxserver-sockname={socket_path}", f"--port={self.port}", *options),
        ]
        self._start(command, "Running netconfd server", env={**os.environ, "YUMA_HOME": str(self.folder)})
        # It says so a moment before it listens.
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            with socket.socket(socket.AF_UNIX) as asking:
                if asking.connect_ex(str(socket_path)) == 0:
                    return
            assert time.monotonic() < deadline, "netconfd does not listen"
            threading.Event().wait(0.005)

    def _start_sshd(self, program: str, subsystem: str) -> None:
        if os.geteuid() == 0:
            # sshd that runs as root wants this folder; the system makes it when it starts its own.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(SSHD_CONFIG.format(port=self.port, folder=self.folder, subsystem=subsystem))
        self._sshd = self._start([program, "-D", "-e", "-f", str(config)], "Server listening")
        kind, blob, *_ = (self.folder / "host_key.pub").read_text().split()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {blob}\n")
        self.host_key = blob

    def _start(self, command: list[str], ready: str, **options: Any) -> int:
        """Start a program and wait until it says that it is ready; gives its process id."""
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options
        )
        said, lines = threading.Event(), []

        def listen() -> None:
            for line in process.stdout:
                lines.append(line)
                if ready in line:
                    said.set()
            said.set()

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()

        def end() -> None:
            # sshd's own child of each connection is in a session of its own, and would outlive it.
            for pid in [process.pid, *_descendants(process.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(10)
            listener.join(10)
            process.stdout.close()

        self._running.callback(end)
        assert said.wait(STARTS_WITHIN_S), f"{command[0]} does not start: {''.join(lines)}"
        assert process.poll() is None, f"{command[0]} has ended: {''.join(lines)}"
        return process.pid


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from _descendants(int(child))


def _no_host(host: object) -> Any:
    raise AssertionError(f"nothing here is reached through {host}")
