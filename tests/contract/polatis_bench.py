"""The NETCONF twin of a Polatis switch, alone on loopback, and drivers for it."""

import math
import os
import time
from pathlib import Path

import pytest
from lumctl_polatis import PolatisNetconf

from lumctl.devices.endpoints import DeviceEndpoint
from lumctl.devices.protocols import DriverContext
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.routes import Routes
from lumctl.fleet.ways import SshWay
from lumctl.inventory.model import SshSettings
from lumctl.sim import ssh
from lumctl.sim.netconf import NetconfServer
from lumctl.sim.switches.services import SwitchTree
from lumctl.sim.world.misbehaviour import Misbehaviour
from lumctl.sim.world.switch import SwitchState

PORTS = 16
LIT, DARK = 2, 3


class Bench:
    """One switch behind a twin, and drivers that log in to it over SSH."""

    def __init__(self, folder, *, inputs, candidate) -> None:
        self.state = SwitchState(PORTS, inputs)
        self.candidate = candidate
        self.conduct = Misbehaviour()
        private = ssh.new_private_key()
        (folder / "key").write_text(private)
        (folder / "key").chmod(0o600)
        tree = SwitchTree(
            self.state.held,
            powers=lambda ports: {port: -7.25 if port == LIT else -math.inf for port in ports},
            conduct=lambda: self.conduct,
        )
        self.server = NetconfServer(
            "x1",
            tree,
            key=ssh.loaded(ssh.new_private_key()),
            client_key=ssh.loaded(private),
            candidate=candidate,
            conduct=lambda: self.conduct,
            operations=tree.operations,
        )
        self.server.service.open()
        known = ssh.known_host("127.0.0.1", self.server.service.port, self.server.key)
        (folder / "known_hosts").write_text(known)
        settings = SshSettings(user="lumctl", key_file=folder / "key", config_file=Path(os.devnull))
        self._endpoint = DeviceEndpoint("x1", self.server.service.address, settings, folder / "known_hosts")
        self._drivers = []

    def driver(self, *, ports=PORTS, timeout_s=5.0) -> PolatisNetconf:
        way = SshWay(self._endpoint, Connector(timeout_s=5.0), Routes(), lambda host: pytest.fail(f"through {host}"))
        inputs = self.state.input_count
        about = {"port_count": ports, "input_count": inputs, "timeout_s": timeout_s, "now": time.time}
        self._drivers.append(PolatisNetconf(DriverContext("x1", self._endpoint.address, way, **about)))
        return self._drivers[-1]

    def close(self) -> None:
        for driver in self._drivers:
            driver.close()
        self.server.close()
