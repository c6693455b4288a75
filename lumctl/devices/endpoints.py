"""Where the hosts and devices of an inventory answer: on the rack itself, or on the simulator of that inventory.

A running simulator leaves a small file (``sim.json``) in its runtime folder; this module reads it and nothing else of
the simulator. The folder is private to the user and named after the inventory, so two inventories never meet.
"""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lumctl.devices.logins import Login
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.files import make_private
from lumctl.inventory.exporters import EXPORTER_KINDS, Exporter
from lumctl.inventory.model import Device, Inventory, SshSettings

RUNTIME_FILE = "sim.json"


@dataclass(frozen=True, slots=True)
class HostEndpoint:
    """How one host is reached. ``known_hosts`` is ``None`` where the user's own file is meant.

    ``exporters`` are those that health is read from, beside the shell or instead of it.
    """

    host: str
    address: str
    ssh: SshSettings
    known_hosts: Path | None = None
    exporters: tuple[Exporter, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceEndpoint:
    """How one device is reached. ``address`` is ``host:port``; ``via`` is the host that leads there, if one does.

    ``ssh`` and ``known_hosts`` are for devices that are themselves reached over SSH.
    """

    device: str
    address: str
    ssh: SshSettings = field(default_factory=SshSettings)
    known_hosts: Path | None = None
    via: HostEndpoint | None = None
    login: Login = field(default_factory=Login)
    stand_in: str = ""
    """The driver of the generic device that replaces it on a simulator, if any."""


@dataclass(frozen=True, slots=True)
class GatewayEndpoint:
    """Where a rack's gateway listens: a socket of this machine, or of the host ``via``."""

    path: Path
    via: HostEndpoint | None = None

    @property
    def place(self) -> str:
        """As messages name it."""
        return f"{self.via.host}:{self.path}" if self.via else str(self.path)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where everything answers. ``target`` is ``rack`` or ``sim``; racks in ``gateways`` are driven by those alone.

    ``lanes`` is the socket at which a simulator lets connections between accelerators be led over its light.
    """

    target: str
    hosts: Mapping[str, HostEndpoint]
    devices: Mapping[str, DeviceEndpoint]
    gateways: Mapping[str, GatewayEndpoint] = field(default_factory=dict)
    lanes: Path | None = None


def rack_endpoints(inventory: Inventory) -> Endpoints:
    """The real rack, as the inventory writes it down."""
    hosts = {h.name: HostEndpoint(h.name, h.address, h.ssh, exporters=h.exporters) for h in inventory.hosts.values()}
    devices = {d.id: _rack_device(d, hosts[d.via] if d.via else None) for d in inventory.devices.values()}
    return Endpoints("rack", hosts, devices)


def _rack_device(device: Device, via: HostEndpoint | None) -> DeviceEndpoint:
    login = device.login
    return DeviceEndpoint(
        device=device.id,
        address=device.address,
        ssh=SshSettings(user=login.user, key_file=login.key_file),
        via=via,
        login=Login(login.user or "", login.secret_file, login.secret_variable),
    )


def sim_endpoints(inventory: Inventory, folder: Path | None = None) -> Endpoints:
    """The running simulator of this inventory.

    Raises:
        UnreachableError: none is running.
        RefusedError: one is running, of an older text of this inventory.
    """
    folder = folder or sim_runtime_folder(inventory.path)
    again = "lumctl sim up --detach"
    try:
        runtime = json.loads((folder / RUNTIME_FILE).read_text())
    except FileNotFoundError:
        raise UnreachableError(f"no simulator of {inventory.path} is running", hint=f"start it: {again}") from None
    except (OSError, ValueError) as error:
        raise UnreachableError(
            f"what the simulator of {inventory.path} left in {folder} cannot be read: {error}",
            hint=f"lumctl sim down, then {again}",
        ) from error
    if not _alive(int(runtime["pid"])):
        raise UnreachableError(f"the simulator of {inventory.path} has ended", hint=f"start it again: {again}")
    if runtime["digest"] != inventory.digest:
        raise RefusedError(
            f"the running simulator was started from an older text of {inventory.path}",
            hint=f"lumctl sim down, then {again}",
        )
    ssh = SshSettings(user=runtime["user"], key_file=Path(runtime["key_file"]), config_file=Path(os.devnull))
    known_hosts, stand_ins = Path(runtime["known_hosts"]), runtime.get("stand_ins", {})
    return Endpoints(
        target="sim",
        hosts={
            name: HostEndpoint(
                name,
                where["address"],
                SshSettings(
                    user=ssh.user,
                    port=int(where["port"]),
                    key_file=ssh.key_file,
                    config_file=ssh.config_file,
                    sudo=inventory.hosts[name].ssh.sudo,
                ),
                known_hosts,
                tuple(
                    Exporter(kind, origin, EXPORTER_KINDS[kind].path)
                    for kind, origin in where.get("exporters", {}).items()
                ),
            )
            for name, where in runtime["hosts"].items()
        },
        devices={
            name: DeviceEndpoint(name, address, ssh, known_hosts, stand_in=str(stand_ins.get(name, "")))
            for name, address in runtime["devices"].items()
        },
        lanes=Path(runtime["lanes"]),
    )


def sim_runtime_folder(inventory_path: Path) -> Path:
    """The runtime folder of an inventory's simulator (it need not exist)."""
    key = hashlib.sha256(str(inventory_path.resolve()).encode()).hexdigest()[:8]
    return private_runtime_folder() / f"sim-{inventory_path.stem}-{key}"


def private_runtime_folder() -> Path:
    """A folder for sockets and keys that only this user can enter, made if it is not there.

    Raises:
        RefusedError: somebody else owns it, or others may enter it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "lumctl" if base else Path(tempfile.gettempdir()) / f"lumctl-{os.getuid()}"
    try:
        make_private(folder)
        found = folder.lstat()
    except OSError as error:
        raise UsageError(
            f"no private folder can be had at {folder}: {error.strerror}", hint="set $XDG_RUNTIME_DIR to one of yours"
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(f"{folder} is not a private folder of this user", hint=f"remove it or chmod 700 {folder}")
    return folder


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
