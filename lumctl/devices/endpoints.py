"""Addresses of the hosts, devices and gateways of an inventory: on the rack itself, or on its simulator.

A running simulator leaves a small file (``sim.json``) in its runtime folder; this module reads only that file. The
folder is private to the user and named after the inventory, so two inventories never share one.
"""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lumctl.devices.logins import Login
from lumctl.errors import LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.files import make_private
from lumctl.inventory.exporters import EXPORTER_KINDS, Exporter
from lumctl.inventory.model import Device, Inventory, SshSettings

RUNTIME_FILE = "sim.json"


@dataclass(frozen=True, slots=True)
class HostEndpoint:
    """How one host is reached. ``known_hosts`` is ``None`` for the user's own file.

    Health is read from ``exporters``, in addition to the shell or instead of it.
    """

    host: str
    address: str
    ssh: SshSettings
    known_hosts: Path | None = None
    exporters: tuple[Exporter, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceEndpoint:
    """How one device is reached. ``address`` is ``host:port``; ``via`` is the host through which it is reached, if any.

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
        """The socket as messages show it."""
        return f"{self.via.host}:{self.path}" if self.via else str(self.path)


@dataclass(frozen=True, slots=True)
class Endpoints:
    """All addresses. ``target`` is ``rack`` or ``sim``; racks in ``gateways`` are driven through their gateway only.

    ``lanes`` is the socket of a simulator that transports connections between accelerators over its simulated light.
    """

    target: str
    hosts: Mapping[str, HostEndpoint]
    devices: Mapping[str, DeviceEndpoint]
    gateways: Mapping[str, GatewayEndpoint] = field(default_factory=dict)
    lanes: Path | None = None


def rack_endpoints(inventory: Inventory) -> Endpoints:
    """The addresses of the real rack, as the inventory states them."""
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


START_SIMULATOR = "lumctl sim up --detach"


def no_simulator(inventory: Path, why: str = "") -> UnreachableError:
    """The error of every command that needs the simulator of an inventory when it does not run.

    ``why`` says what happened to a simulator that ran before, such as ``has ended``.
    """
    said = f"the simulator of {inventory} {why}" if why else f"no simulator of {inventory} is running"
    return UnreachableError(said, hint=f"start it: {START_SIMULATOR}")


def simulator_runs(inventory: Inventory) -> bool:
    """Whether a simulator of exactly this version of the inventory runs; for hints."""
    try:
        sim_endpoints(inventory)
    except LumctlError:
        return False
    return True


def sim_endpoints(inventory: Inventory, folder: Path | None = None) -> Endpoints:
    """The addresses on the running simulator of this inventory.

    Raises:
        UnreachableError: no simulator is running, or what it left about itself cannot be read.
        RefusedError: the running simulator was started from an older version of this inventory.
    """
    folder = folder or sim_runtime_folder(inventory.path)
    try:
        return _in_runtime(json.loads((folder / RUNTIME_FILE).read_text()), inventory)
    except FileNotFoundError:
        raise no_simulator(inventory.path) from None
    # A simulator of another version may have left other keys and values.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else error
        raise UnreachableError(
            f"the files of the simulator of {inventory.path} in {folder} cannot be read: {why}",
            hint=f"lumctl sim down, then {START_SIMULATOR}",
        ) from error


def _in_runtime(runtime: Any, inventory: Inventory) -> Endpoints:
    """The addresses in the content of a runtime file."""
    # A simulator that was killed leaves its file behind.
    if not _alive(int(runtime["pid"])):
        raise no_simulator(inventory.path, "has ended")
    if runtime["digest"] != inventory.digest:
        raise RefusedError(
            f"the running simulator was started from an older version of {inventory.path}",
            hint=f"lumctl sim down, then {START_SIMULATOR}",
        )
    # Without the user's own SSH configuration: a jump host in it would lead away from loopback.
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
    # Short, because Linux limits the paths of the sockets in this folder to 107 bytes.
    key = hashlib.sha256(str(inventory_path.resolve()).encode()).hexdigest()[:8]
    return private_runtime_folder() / f"sim-{inventory_path.stem}-{key}"


def private_runtime_folder() -> Path:
    """A folder for sockets and keys that only this user can enter; created if it does not exist.

    Raises:
        RefusedError: another user owns it, or other users may enter it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    # With the user's number in the name, because all users share that folder.
    folder = Path(base) / "lumctl" if base else Path(tempfile.gettempdir()) / f"lumctl-{os.getuid()}"
    try:
        make_private(folder)
        require_private(folder)
    except OSError as error:
        raise UsageError(
            f"cannot create a private folder at {folder}: {error.strerror}",
            hint="set $XDG_RUNTIME_DIR to a folder of yours",
        ) from error
    return folder


def require_private(folder: Path) -> None:
    """Check that a folder is this user's alone.

    Raises:
        RefusedError: another user owns it, or other users may enter it.
        OSError: it does not exist.
    """
    # In a shared /tmp another user may have made the folder, or a link in its place, before us.
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise RefusedError(f"{folder} is not a private folder of this user", hint=f"remove it or chmod 700 {folder}")


GATEWAY_VARIABLE = "LUMCTL_GATEWAY"
"""The socket of a gateway, or a folder with a socket RACK.sock for each; the simulator accepts no other setting."""


def gateways_of(inventory: Inventory, target: str, hosts: Mapping[str, HostEndpoint]) -> dict[str, GatewayEndpoint]:
    """The racks that are written through a gateway. Gateways in the inventory are for target ``rack`` only."""
    if named := os.environ.get(GATEWAY_VARIABLE):
        return {rack: GatewayEndpoint(_socket_of(Path(named).expanduser(), rack)) for rack in inventory.racks}
    if target != "rack":
        return {}
    return {
        rack.name: GatewayEndpoint(rack.gateway, hosts[rack.gateway_via] if rack.gateway_via else None)
        for rack in inventory.racks.values()
        if rack.gateway is not None
    }


def default_socket(inventory: Inventory, rack: str, target: str) -> Path:
    """The socket where a gateway listens by default: in the private runtime folder of its user."""
    key = hashlib.sha256(f"{inventory.path.resolve()}\0{target}".encode()).hexdigest()[:12]
    return private_runtime_folder() / f"gateway-{key}" / f"{rack}.sock"


def _socket_of(named: Path, rack: str) -> Path:
    return named / f"{rack}.sock" if named.is_dir() else named


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
