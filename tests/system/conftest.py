"""Simulators for tests: each in a private runtime folder, ended with the test or by the death of the test process.

``simulate("prototype")`` starts one of an example inventory (or of any inventory file) and gives a ``Simulated``:
``inventory, endpoints = simulate("prototype")``. It is dark: nothing is programmed yet. Faults and the true state of
its meshes are at hand through ``simulated.process.inject(...)`` and ``.clear()``, and ``simulated.mesh(DEVICE)``.
``prototype_sim`` is one of the four-server example, shared by the tests of a module: clear what you inject.
``ssh_client``: a module that uses it runs each test over both SSH clients.
``serve_ssh(KEY, COMMAND)`` starts OpenSSH's sshd, which does this command for whoever has this key.
"""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import paramiko
import pytest
from sshd_settings import BY_KEYS_ONLY
from sshds import end_sshd

from lumctl.devices.endpoints import HostEndpoint
from lumctl.devices.protocols import DriverContext
from lumctl.inventory.load import EXAMPLES, example, load_inventory
from lumctl.inventory.model import Inventory, SshSettings
from lumctl.sim.launch import SimProcess, launch
from lumctl.sim.meshes.driver import SimMesh

SSHD_CONFIG = (
    BY_KEYS_ONLY
    + """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
TrustedUserCAKeys {folder}/ca.pub
ForceCommand {command}
"""
)


class Simulated:
    """A running simulator and its inventory; unpacks into ``(inventory, endpoints)``."""

    def __init__(self, process: SimProcess) -> None:
        self.process = process
        self.inventory = process.inventory
        self.endpoints = process.endpoints()
        self.folder = process.folder
        self.control = process.control

    def __iter__(self) -> Iterator[Any]:
        return iter((self.inventory, self.endpoints))

    def mesh(self, device: str) -> SimMesh:
        """The true state of a mesh, whatever driver the inventory names for it."""
        return SimMesh(DriverContext(device=device, address=f"unix:{self.control}"))


class Simulations:
    """Starts simulators and ends them all."""

    def __init__(self) -> None:
        self._running = ExitStack()

    def __call__(self, inventory: str | Path | Inventory, **options: Any) -> Simulated:
        if not isinstance(inventory, Inventory):
            inventory = load_inventory(example(inventory) if inventory in EXAMPLES else Path(inventory))
        # Not pytest's own folder: the path of a socket must be short.
        folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
        self._running.callback(shutil.rmtree, folder, ignore_errors=True)
        process = launch(inventory, folder=folder / "sim", tied=True, **options)
        return Simulated(self._running.enter_context(process))

    def close(self) -> None:
        self._running.close()


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulated]]:
    """Start simulators for one test."""
    simulations = Simulations()
    yield simulations
    simulations.close()


@pytest.fixture(params=["fast", "plain"])
def ssh_client(request, monkeypatch) -> str:
    """Read hosts over one SSH client and then over the other; which it is."""
    monkeypatch.setenv("LUMCTL_PLAIN_SSH", "1" if request.param == "plain" else "0")
    return request.param


@pytest.fixture(scope="module")
def prototype_sim() -> Iterator[Simulated]:
    """The four-server example, for all tests of a module."""
    simulations = Simulations()
    yield simulations("prototype")
    simulations.close()


@pytest.fixture(scope="module")
def serve_ssh(require_program, tmp_path_factory) -> Iterator[Callable[[Path, str], HostEndpoint]]:
    """Start sshd; the endpoint is called s0, and the authority of its users lies beside the file of known hosts."""
    with ExitStack() as running:
        yield lambda key, command: _serve_ssh(require_program, tmp_path_factory.mktemp("sshd"), key, command, running)


def _serve_ssh(
    require_program: Callable[[str], str], folder: Path, client_key: Path, command: str, running: ExitStack
) -> HostEndpoint:
    program, keygen = require_program("sshd"), require_program("ssh-keygen")
    for name in ("host_key", "ca"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    client = paramiko.PKey.from_path(client_key)
    (folder / "authorized_keys").write_text(f"{client.get_name()} {client.get_base64()}\n")
    if os.geteuid() == 0:
        # sshd that runs as root wants this folder; the system makes it when it starts its own.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "sshd_config"
    config.write_text(SSHD_CONFIG.format(port=port, folder=folder, command=command))
    serving = threading.Event()
    process = subprocess.Popen([program, "-D", "-e", "-f", config], stderr=subprocess.PIPE, text=True)
    lines: list[str] = []

    def listen() -> None:
        for line in process.stderr:
            lines.append(line)
            if "Server listening" in line:
                serving.set()
        serving.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()

    running.callback(end_sshd, process, listener)
    assert serving.wait(10)
    assert process.poll() is None, "".join(lines)
    kind, blob, *_ = (folder / "host_key.pub").read_text().split()
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {kind} {blob}\n")
    settings = SshSettings(user=getpass.getuser(), port=port, key_file=client_key, config_file=Path(os.devnull))
    return HostEndpoint("s0", "127.0.0.1", settings, known)
