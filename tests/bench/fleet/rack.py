"""Hosts for a measurement: one real OpenSSH server on loopback that answers as many hosts, each at its own address.

The server, its host key, the client's key and the list of known hosts are made for one run and removed after it;
nothing of the user's own SSH configuration is read, on either side.
"""

import getpass
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

_START_S = 10.0
_SERVER_CONFIG = """\
Port {port}
ListenAddress 0.0.0.0
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
AllowUsers {user}@127.0.0.0/8
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
X11Forwarding no
PidFile none
LogLevel ERROR
LoginGraceTime 120
MaxStartups 4096:100:8192
MaxSessions 64
SetEnv HOME={folder}/home
"""
_CLIENT_CONFIG = """\
Host *
  User {user}
  Port {port}
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
  BatchMode yes
  LogLevel ERROR
"""
_KEPT = """\
  ControlMaster auto
  ControlPath {folder}/kept/%h
  ControlPersist 3600
"""


def addresses(count: int, first_block: int = 10) -> tuple[str, ...]:
    """Distinct loopback addresses, 250 in each block ``127.BLOCK.x.0/24``."""
    return tuple(f"127.{first_block}.{at // 250}.{at % 250 + 1}" for at in range(count))


class Rack:
    """A running SSH server and what a client needs to reach it.

    ``payload`` is the file that hosts are asked for; it lies in memory, for a disk is not what is measured.
    """

    def __init__(self, hosts: tuple[str, ...], *, others: dict[str, int] | None = None, sshd: bool = True) -> None:
        self.hosts = hosts
        self.user = getpass.getuser()
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="lumctl-bench-"))
        self._shared_memory = Path(tempfile.mkdtemp(prefix="lumctl-bench-", dir="/dev/shm"))
        self.payload = self._shared_memory / "payload"
        self.ports = dict.fromkeys(hosts, self.port) | (others or {})
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._write_files()
            if sshd:
                self.process = self._start()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The server's process; the processes of its sessions descend from it."""
        if self.process is None:
            raise RuntimeError("this rack has no OpenSSH server")
        return self.process.pid

    @property
    def command(self) -> str:
        """What a host runs for its answer: a tool, so that it costs the host a fork."""
        return f"cat {self.payload}"

    def settings(self) -> dict[str, object]:
        """What a contender's process is told."""
        return {
            "hosts": self.hosts,
            "ports": self.ports,
            "port": self.port,
            "user": self.user,
            "key": str(self.folder / "client_key"),
            "known_hosts": str(self.folder / "known_hosts"),
            "config": str(self.folder / "ssh_config"),
            "kept_config": str(self.folder / "ssh_config_kept"),
            "command": self.command,
            "payload": str(self.payload),
            "folder": str(self.folder),
        }

    def environment(self) -> dict[str, str]:
        """An environment in which no tool finds the user's agent, keys or configuration."""
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "PYTHONPATH"}}
        return kept | {"HOME": str(self.folder / "home"), "USER": self.user, "LOGNAME": self.user}

    def close(self) -> None:
        """Stop the server and its sessions; remove what was made."""
        if self.process is not None:
            sessions = _children(self.process.pid)
            self.process.terminate()
            for session in sessions:
                _terminate(session)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self._shared_memory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write_files(self) -> None:
        folder = self.folder
        # OpenSSH keeps the names of its control sockets below 108 characters, hence the short folder.
        for name in ("home", "kept"):
            (folder / name).mkdir(mode=0o700)
        for name in ("host_key", "client_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True)
        kind, key = (folder / "host_key.pub").read_text().split()[:2]
        known = "".join(f"[{host}]:{port} {kind} {key}\n" for host, port in self.ports.items())
        (folder / "known_hosts").write_text(known)
        words = {"user": self.user, "port": self.port, "folder": folder}
        (folder / "sshd_config").write_text(_SERVER_CONFIG.format(**words))
        (folder / "ssh_config").write_text(_CLIENT_CONFIG.format(**words))
        (folder / "ssh_config_kept").write_text((_CLIENT_CONFIG + _KEPT).format(**words))

    def _start(self) -> subprocess.Popen[bytes]:
        # sshd starts itself again for each connection and asks for its own absolute path.
        sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if sshd is None:
            raise SystemExit("sshd is not installed; on Debian: apt install openssh-server")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        # Since 9.8 one address that connects often is made to wait; older servers do not know the word.
        unpunished = config.read_text() + "PerSourcePenalties no\n"
        (self.folder / "sshd_config_newer").write_text(unpunished)
        newer = [sshd, "-t", "-f", self.folder / "sshd_config_newer"]
        if subprocess.run(newer, check=False, capture_output=True).returncode == 0:
            config.write_text(unpunished)
        log = (self.folder / "sshd.log").open("wb")
        with log:
            process = subprocess.Popen([sshd, "-D", "-e", "-f", config], stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.02)
        process.kill()
        process.wait()
        raise SystemExit(f"sshd did not start: {(self.folder / 'sshd.log').read_text().strip()}")


def free_port() -> int:
    """A TCP port that nobody listens on, at any address of this machine."""
    with socket.socket() as sock:
        sock.bind(("", 0))
        return int(sock.getsockname()[1])


def allow_many_files() -> None:
    """Raise this process's and its children's limit of open files as far as the system lets it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, 15)
    except ProcessLookupError:
        return
