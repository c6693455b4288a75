"""A whole simulator in this process: the world, and the services of its hosts and meshes around it."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lumctl.devices.endpoints import RUNTIME_FILE
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.sim import keys
from lumctl.sim.control import Control, fault_document
from lumctl.sim.controller import MeshController
from lumctl.sim.faults import FaultKind
from lumctl.sim.host import SimHost
from lumctl.sim.runtime import CLIENT_KEY, CONTROL_SOCKET, KNOWN_HOSTS
from lumctl.sim.service import Service
from lumctl.sim.sshd import HostServer
from lumctl.sim.world import World

USER = "lumctl"
_LOOPBACK = "127.0.0.1"
_MOST_SOCKET_PATH = 100
_WORKERS = 8


class Simulator:
    """Everything that ``sim up`` starts, in ``folder`` (which is private and ours). Start it once, stop it once."""

    def __init__(self, inventory: Inventory, folder: Path, *, delay_ms: float = 0.0, seed: int = 0) -> None:
        control = folder / CONTROL_SOCKET
        if len(str(control)) > _MOST_SOCKET_PATH:
            raise UsageError(f"{folder} is too long a path for a socket", hint="set XDG_RUNTIME_DIR to a shorter one")
        self.ended = threading.Event()
        self._inventory = inventory
        self._folder = folder
        self._delay_s = delay_ms / 1000
        self._started_at = time.time()
        self._world = World(inventory, seed=seed, now=time.time)
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="answer")
        self._client_key = keys.new_private_key()
        client = keys.loaded(self._client_key)
        self._hosts = {name: self._host(name, client) for name in inventory.hosts}
        self._meshes = {
            device.id: MeshController(self._world, device.id, device.geometry.puc_count, self._settle)
            for device in inventory.devices.values()
            if device.geometry
        }
        self._control = Control(
            self._world,
            control,
            status=self._status,
            changed=self._follow_faults,
            open_loop=lambda host, pipe: self._hosts[host].open_loop(pipe),
            settle=self._settle,
            end=self.ended.set,
        )
        # A switch has no service yet. Its address is one that refuses, so that nothing else is taken for it.
        self._unserved = {
            device.id: Service(f"switch {device.id}", lambda connection: connection.close(), most=0)
            for device in inventory.devices.values()
            if device.geometry is None
        }

    def start(self) -> None:
        """Open every service, then leave the runtime file, by which the rest of the program finds them."""
        for server in self._hosts.values():
            server.service.open()
        for mesh in self._meshes.values():
            mesh.service.open()
        self._control.service.open()
        known = "".join(keys.known_host(_LOOPBACK, server.service.port, server.key) for server in self._hosts.values())
        self._write(KNOWN_HOSTS, known)
        self._write(CLIENT_KEY, self._client_key)
        self._write(RUNTIME_FILE, json.dumps(self._runtime(), indent=2) + "\n")

    def stop(self) -> None:
        """Close every service; connections are cut."""
        self.ended.set()
        for service in [
            *(server.service for server in self._hosts.values()),
            *(mesh.service for mesh in self._meshes.values()),
            *self._unserved.values(),
        ]:
            service.close()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _host(self, name: str, client: Any) -> HostServer:
        return HostServer(SimHost(self._world, name), keys.loaded(keys.new_private_key()), client, self._workers)

    def _settle(self) -> None:
        """Let the cells of a mesh settle; the end of the simulator ends this wait too."""
        if self._delay_s > 0:
            self.ended.wait(self._delay_s)

    def _follow_faults(self) -> None:
        """Shut the services of what is unreachable now, and open those of what is not any more."""
        for host, server in self._hosts.items():
            if self._world.has_fault(host, FaultKind.UNREACHABLE):
                server.cut()
            else:
                server.service.open()
            if not self._world.has_fault(host, FaultKind.HUNG_SMI):
                server.go_on()
        for device, mesh in self._meshes.items():
            if self._world.has_fault(device, FaultKind.MESH_DOWN):
                mesh.service.shut()
            else:
                mesh.service.open()

    def _addresses(self) -> dict[str, str]:
        return {
            device.id: self._address(device.id, simulated=device.driver == "sim-mesh")
            for device in self._inventory.devices.values()
        }

    def _address(self, device: str, *, simulated: bool) -> str:
        if device in self._unserved:
            return self._unserved[device].address
        return self._control.service.address if simulated else self._meshes[device].service.address

    def _runtime(self) -> dict[str, Any]:
        return {
            "schema": "lumctl/sim-runtime/v1",
            "pid": os.getpid(),
            "inventory": str(self._inventory.path),
            "digest": self._inventory.digest,
            "control": str(self._folder / CONTROL_SOCKET),
            "user": USER,
            "key_file": str(self._folder / CLIENT_KEY),
            "known_hosts": str(self._folder / KNOWN_HOSTS),
            "hosts": {
                name: {"address": _LOOPBACK, "port": server.service.port} for name, server in self._hosts.items()
            },
            "devices": self._addresses(),
            "started_at": self._started_at,
        }

    def _status(self) -> dict[str, Any]:
        faults = [fault_document(fault) for fault in self._world.faults()]
        return {"runtime": self._runtime(), "unserved": list(self._unserved), "faults": faults}

    def _write(self, name: str, text: str) -> None:
        """Write a private file of the runtime folder in one step."""
        fresh = self._folder / f"{name}.new"
        with open(fresh, "x", opener=partial(os.open, mode=0o600), encoding="utf-8") as file:
            file.write(text)
        fresh.rename(self._folder / name)
