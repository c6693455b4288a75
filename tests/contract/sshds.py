"""Hosts behind OpenSSH's sshd on loopback, each with an address, a host key and a home folder of its own.

A host's agent and workers are real processes with that home; whatever else it is asked, its readings, a simulated host
answers.
"""

import getpass
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from sshd_settings import BY_KEYS_ONLY

READY_WITHIN_S = 20.0

CONFIG = (
    BY_KEYS_ONLY
    + """
ListenAddress {address}
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {user_key}.pub
ForceCommand {folder}/command
"""
)

COMMAND = """#!/bin/sh
HOME={home}; export HOME
unset XDG_RUNTIME_DIR
cd "$HOME" || exit 1
case $SSH_ORIGINAL_COMMAND in
*lumctl.training.agent*) exec /bin/sh -c "$SSH_ORIGINAL_COMMAND" ;;
*) exec {forward} ;;
esac
"""


class Sshd:
    """The sshd of one host."""

    def __init__(self, program: str, folder: Path) -> None:
        # Nothing of ours is in its environment: what a session has, sshd itself has given it.
        self.process = subprocess.Popen(
            [program, "-D", "-e", "-f", folder / "sshd_config"], env={}, stderr=subprocess.PIPE, text=True
        )
        self._lines: list[str] = []
        self._serving = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        for line in self.process.stderr:
            self._lines.append(line)
            if "Server listening" in line:
                self._serving.set()
        self._serving.set()

    def await_serving(self) -> None:
        assert self._serving.wait(READY_WITHIN_S)
        assert self.process.poll() is None, "".join(self._lines)

    def sessions(self) -> list[int]:
        """The processes that serve connections."""
        return sessions_of(self.process)

    def close(self) -> None:
        """End it and all its connections."""
        if self.process.returncode is None:
            end_sshd(self.process, self._listener)


def sessions_of(sshd: subprocess.Popen[str]) -> list[int]:
    """The processes that serve connections of an sshd."""
    return [int(each) for each in Path(f"/proc/{sshd.pid}/task/{sshd.pid}/children").read_text().split()]


def end_sshd(sshd: subprocess.Popen[str], listener: threading.Thread) -> None:
    """End an sshd, all its connections, and the thread that reads its standard error."""
    sessions = sessions_of(sshd)
    sshd.terminate()
    sshd.wait(READY_WITHIN_S)
    for pid in sessions:  # they would continue, and keep standard error open
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    listener.join(READY_WITHIN_S)
    # Closing a file that another thread reads waits for that thread without any limit.
    assert not listener.is_alive(), "a process of a session has left its session, and goes on"
    sshd.stderr.close()


class Sshds:
    """The sshds of some hosts; leaving the ``with`` block ends them.

    Args:
        folder: everything of theirs lies here; ``ssh_config`` in it is what a client has to be given.
        hosts: their names, an h and a number, of which their addresses are made.
        control: the control socket of the simulator that answers for the hosts.
        require_program: finds programs of the system.
    """

    network = "127.0.1."

    def __init__(
        self, folder: Path, hosts: Iterable[str], control: Path, require_program: Callable[[str], str]
    ) -> None:
        self._stack = ExitStack()
        self._folder, self._control = folder, control
        self._keygen, program = require_program("ssh-keygen"), require_program("sshd")
        folder.mkdir()
        if os.geteuid() == 0:
            # sshd that runs as root wants this folder; the system makes it when it starts its own.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self._user_key = self._key(folder / "user_key")
        with socket.create_server(("0.0.0.0", 0)) as free:  # noqa: S104 - free at every address of loopback
            self.port = free.getsockname()[1]
        self.addresses = {host: f"{self.network}{host.removeprefix('h')}" for host in hosts}
        try:
            self._running = {host: self._start(program, host) for host in self.addresses}
            for running in self._running.values():
                running.await_serving()
        except BaseException:
            self._stack.close()
            raise
        self.know(dict.fromkeys(self.addresses))
        self.config.write_text(
            f"Host *\nUser {getpass.getuser()}\nPort {self.port}\nIdentityFile {self._user_key}\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {folder}/known_hosts\n"
        )

    @property
    def config(self) -> Path:
        """The configuration of an SSH client that may log in everywhere."""
        return self._folder / "ssh_config"

    def home(self, host: str) -> Path:
        """The home folder that a session on a host has."""
        return self._folder / host / "home"

    def know(self, keys: dict[str, str | None]) -> None:
        """Write the known hosts again: each with its own key, or that of another host."""
        lines = []
        for host, other in keys.items():
            key = (self._folder / (other or host) / "host_key.pub").read_text().split()
            lines.append(f"[{self.addresses[host]}]:{self.port} {key[0]} {key[1]}\n")
        (self._folder / "known_hosts").write_text("".join(lines))

    def cut(self, host: str) -> None:
        """All connections to a host break; what runs there continues, and who connects again is let in."""
        for pid in self._running[host].sessions():
            os.kill(pid, signal.SIGKILL)

    def end(self, host: str) -> None:
        """Nobody reaches a host any more."""
        self._running[host].close()

    def _key(self, path: Path) -> Path:
        subprocess.run([self._keygen, "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        return path

    def _start(self, program: str, host: str) -> Sshd:
        folder = self._folder / host
        (folder / "home").mkdir(parents=True)
        self._key(folder / "host_key")
        settings = {"address": self.addresses[host], "port": self.port, "user_key": self._user_key}
        (folder / "sshd_config").write_text(CONFIG.format(folder=folder, **settings))
        forward = [sys.executable, "-P", "-m", "lumctl.sim.hosts.forward", str(self._control), host]
        command = folder / "command"
        command.write_text(COMMAND.format(home=shlex.quote(str(self.home(host))), forward=shlex.join(forward)))
        command.chmod(0o700)
        running = Sshd(program, folder)
        self._stack.callback(running.close)
        return running

    def close(self) -> None:
        self._stack.close()
