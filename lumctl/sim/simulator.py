"""A whole simulator in this process: the world, and the services of its hosts and devices."""

import json
import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lumctl.devices.endpoints import RUNTIME_FILE
from lumctl.errors import UsageError
from lumctl.inventory.model import Device, DeviceKind, Inventory
from lumctl.sim import ssh
from lumctl.sim.chassis.chassis import chassis_services
from lumctl.sim.control import Control, fault_document
from lumctl.sim.hosts.exporters import exporters_of
from lumctl.sim.hosts.host import SimHost
from lumctl.sim.hosts.sshd import HostServer
from lumctl.sim.lanes.keeper import SimulatedLanes
from lumctl.sim.meshes.controller import SMARTLIGHT_DRIVER, MeshController
from lumctl.sim.meshes.object_server import OBJECT_DRIVER, ObjectServer
from lumctl.sim.netconf import NetconfServer
from lumctl.sim.power.machines import machines_of, power_requests
from lumctl.sim.power.redfish import REDFISH_DRIVER, RedfishTwin
from lumctl.sim.runtime import CLIENT_KEY, CONTROL_SOCKET, KNOWN_HOSTS, LANES_SOCKET, MESH_SOCKET
from lumctl.sim.service import SimulatedService
from lumctl.sim.switches.requests import switch_requests
from lumctl.sim.switches.services import NETCONF_DRIVER, SCPI_DRIVER, switch_services
from lumctl.sim.twins import BEGINS_WITHIN_S, PlugInTwin, device_of, twins_for
from lumctl.sim.world.faults import FaultKind
from lumctl.sim.world.work import ChangeTimes
from lumctl.sim.world.world import World

USER = "lumctl"
_LOOPBACK = "127.0.0.1"
# Linux allows 107 bytes (sun_path, see unix(7)). Checking the length first gives an error that says what to do.
_MOST_SOCKET_PATH = 100
_WORKERS = 8


class Simulator:
    """Everything that ``sim up`` starts, in a private ``folder`` of its own. Start it once, stop it once.

    ``change_ms`` is the time that a change takes, by mesh or switch; by default no time.
    """

    def __init__(
        self,
        inventory: Inventory,
        folder: Path,
        *,
        change_ms: Mapping[str, float] | None = None,
        seed: int = 0,
        lane_mbps: float | None = None,
    ) -> None:
        control = folder / CONTROL_SOCKET
        if len(str(control)) > _MOST_SOCKET_PATH:
            raise UsageError(f"{folder} is too long a path for a socket", hint="set XDG_RUNTIME_DIR to a shorter one")
        self.ended = threading.Event()
        self._inventory = inventory
        self._folder = folder
        self._started_at = time.time()
        takes_s = {device: ms / 1000 for device, ms in (change_ms or {}).items()}
        times = ChangeTimes(takes_s, self.ended.wait)
        self._world = World(inventory, seed=seed, now=time.time, times=times)
        self._lanes = SimulatedLanes(self._world, folder / LANES_SOCKET, mbps=lane_mbps)
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="answer")
        self._client_key = ssh.new_private_key()
        client = ssh.loaded(self._client_key)
        self._hosts = {name: self._host(name, client) for name in inventory.hosts}
        self._boots = {name: boot.id for name, boot in self._world.boots.items()}
        self._exporters = {
            name: exporters_of(self._world, name, time.time, self.ended.wait) for name in inventory.hosts
        }
        offers = twins_for({device.driver for device in inventory.light_devices if not _is_built_in(device)})
        self._twins = {
            device.id: PlugInTwin(
                device_of(self._world, device),
                offers[device.driver],
                partial(self._world.misbehaviour, device.id),
                self.ended.wait,
            )
            for device in inventory.light_devices
            if device.driver in offers
        }
        self._stand_ins = {
            device.id: _GENERIC[device.kind]
            for device in inventory.light_devices
            if not _is_built_in(device) and device.id not in self._twins
        }
        self._meshes = {
            device.id: self._mesh(device, device.geometry.puc_count)
            for device in inventory.devices.values()
            if device.geometry and device.id not in {*self._twins, *self._stand_ins}
        }
        machines = machines_of(self._world, inventory, self._repowered)
        self._controllers = {
            device: RedfishTwin(device, bench, self.ended.wait)
            for device, bench in machines.items()
            if inventory.devices[device].driver == REDFISH_DRIVER
        }
        self._control = Control(
            self._world,
            control,
            status=self._status,
            changed=self._follow_faults,
            open_loop=lambda host, pipe: self._hosts[host].open_loop(pipe),
            pause=self.ended.wait,
            end=self.ended.set,
        )
        self._control.answer_also(power_requests(machines))
        self._control.answer_also(switch_requests(self._world))
        self._switches = switch_services(self._world, client_key=client, pause=self.ended.wait)
        self._chassis = chassis_services(self._world, client_key=client)
        served = {*self._meshes, *self._controllers, *self._switches, *self._chassis, *self._twins, *self._stand_ins}
        # A device whose protocol is not served here gets an address that refuses connections, so that no other service
        # can be mistaken for it.
        self._unserved = {
            device.id: SimulatedService(f"{device.kind} {device.id}", lambda connection: connection.close(), most=0)
            for device in inventory.devices.values()
            if device.id not in served and not _is_simulated(device)
        }

    def start(self) -> None:
        """Open every service, then write the runtime file, by which the rest of the program finds them."""
        for server in self._hosts.values():
            server.service.open()
        for exporters in self._exporters.values():
            for exporter in exporters.values():
                exporter.open()
        for mesh in self._meshes.values():
            mesh.service.open()
        for controller in self._controllers.values():
            controller.service.open()
        for optical in [*self._switches.values(), *self._chassis.values()]:
            optical.service.open()
        self._control.service.open()
        # All begin before the first is awaited: they share one time limit.
        for twin in self._twins.values():
            twin.begin()
        deadline = time.monotonic() + BEGINS_WITHIN_S
        for twin in self._twins.values():
            twin.await_begun(deadline)
        self._lanes.open()
        with_keys: list[HostServer | NetconfServer] = list(self._hosts.values())
        with_keys += [switch for switch in self._switches.values() if isinstance(switch, NetconfServer)]
        with_keys += self._chassis.values()
        known = "".join(ssh.known_host(_LOOPBACK, server.service.port, server.key) for server in with_keys)
        self._write(KNOWN_HOSTS, known)
        self._write(CLIENT_KEY, self._client_key)
        self._write(RUNTIME_FILE, json.dumps(self._runtime(), indent=2) + "\n")

    def stop(self) -> None:
        """Close every service; connections are cut."""
        # First, because it ends the waits of slow answers.
        self.ended.set()
        for service in [
            *(server.service for server in self._hosts.values()),
            *(exporter for exporters in self._exporters.values() for exporter in exporters.values()),
            *(mesh.service for mesh in self._meshes.values()),
            *(controller.service for controller in self._controllers.values()),
            *self._unserved.values(),
        ]:
            service.close()
        for optical in [*self._switches.values(), *self._chassis.values(), *self._twins.values()]:
            optical.close()
        self._lanes.close()
        # Without waiting, because an answer may hang at a client that does not read.
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _mesh(self, device: Device, puc_count: int) -> MeshController | ObjectServer:
        """The server of a mesh: the line protocol, or a server behind a vendor-style object."""
        if device.driver != OBJECT_DRIVER:
            return MeshController(self._world, device.id, puc_count, self.ended.wait)
        # The name is short even if the device's is long, because the length of a socket's path is limited.
        position = list(self._inventory.devices).index(device.id)
        path = self._folder / f"{MESH_SOCKET}{position}"
        return ObjectServer(self._world, device.id, self.ended.wait, path)

    def _host(self, name: str, client: Any) -> HostServer:
        return HostServer(SimHost(self._world, name), ssh.loaded(ssh.new_private_key()), client, self._workers)

    def _follow_faults(self) -> None:
        """Shut the services of unreachable components, and open those of components that are reachable again."""
        for host, server in self._hosts.items():
            boot = self._world.boots[host].id
            if self._boots[host] != boot:
                # A boot ends all sessions.
                self._boots[host] = boot
                server.cut()
            if self._world.answers(host):
                server.service.open()
            else:
                server.cut()
            for exporter in self._exporters[host].values():
                exporter.open() if self._world.answers(host) else exporter.shut()
            if not self._world.has_fault(host, FaultKind.HUNG_SMI):
                server.go_on()
        well = {device: twin for device, twin in self._twins.items() if twin.failure is None}
        twins = {**self._meshes, **self._controllers, **self._switches, **self._chassis, **well}
        for device, twin in twins.items():
            if self._world.misbehaviour(device).down:
                twin.service.shut()
            else:
                twin.service.open()

    def _repowered(self, host: str) -> None:
        """End the sessions of a host whose power was switched."""
        self._hosts[host].cut()
        self._follow_faults()

    def _addresses(self) -> dict[str, str]:
        return {
            device.id: self._address(device.id, simulated=_is_simulated(device) or device.id in self._stand_ins)
            for device in self._inventory.devices.values()
        }

    def _address(self, device: str, *, simulated: bool) -> str:
        if device in self._unserved:
            return self._unserved[device].address
        if device in self._twins:
            return self._twins[device].address
        if device in self._controllers:
            return self._controllers[device].address
        if device in self._switches:
            return self._switches[device].service.address
        if device in self._chassis:
            return self._chassis[device].service.address
        return self._control.service.address if simulated else self._meshes[device].service.address

    def _runtime(self) -> dict[str, Any]:
        return {
            "schema": "lumctl/sim-runtime/v1",
            "pid": os.getpid(),
            "inventory": str(self._inventory.path),
            "digest": self._inventory.digest,
            "control": str(self._folder / CONTROL_SOCKET),
            "lanes": str(self._folder / LANES_SOCKET),
            "user": USER,
            "key_file": str(self._folder / CLIENT_KEY),
            "known_hosts": str(self._folder / KNOWN_HOSTS),
            "hosts": {
                name: {
                    "address": _LOOPBACK,
                    "port": server.service.port,
                    "exporters": {kind: f"http://{each.address}" for kind, each in self._exporters[name].items()},
                }
                for name, server in self._hosts.items()
            },
            "devices": self._addresses(),
            "stand_ins": self._stand_ins,
            "started_at": self._started_at,
        }

    def _status(self) -> dict[str, Any]:
        faults = [fault_document(fault) for fault in self._world.faults()]
        return {
            "runtime": self._runtime(),
            "unserved": self._why_unserved(),
            "faults": faults,
            "lanes": self._lanes.status(),
        }

    def _why_unserved(self) -> dict[str, str]:
        """The devices that do not answer, with the reason for each."""
        why = {
            device: f"the simulator does not serve the protocol of driver {self._inventory.devices[device].driver!r}"
            for device in self._unserved
        }
        return why | {device: twin.failure for device, twin in self._twins.items() if twin.failure is not None}

    def _write(self, name: str, text: str) -> None:
        """Write a private file of the runtime folder in one step."""
        fresh = self._folder / f"{name}.new"
        with open(fresh, "x", opener=partial(os.open, mode=0o600), encoding="utf-8") as file:
            file.write(text)
        fresh.rename(self._folder / name)


_GENERIC = {DeviceKind.MESH: "sim-mesh", DeviceKind.SWITCH: "sim-switch"}
"""Drivers of the generic devices that replace devices without a twin."""
_BUILT_IN = {SMARTLIGHT_DRIVER, OBJECT_DRIVER, SCPI_DRIVER, NETCONF_DRIVER, "replay-mesh", "replay-switch"}


def _is_built_in(device: Device) -> bool:
    """Whether the simulator serves the protocol of a mesh or switch driver, or the driver needs no service."""
    return _is_simulated(device) or device.driver in _BUILT_IN


def _is_simulated(device: Device) -> bool:
    """Whether a device's driver uses the simulator's control socket instead of a device protocol."""
    return device.driver.startswith("sim-")
