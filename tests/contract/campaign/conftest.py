"""What all campaigns share: how many sequences are run, and a simulated world with a clock that tests set."""

import contextlib
import os
import socket
import tempfile
import time
from pathlib import Path

import pytest

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.campaign import STEPS, Rig, TroubleCount, run_sequence
from lumctl.devices.testing.campaign_settings import run_settings
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.testing.interception import UnixSocket
from lumctl.inventory.load import load_inventory
from lumctl.sim import client
from lumctl.sim.control import Control
from lumctl.sim.power.machines import machines_of, power_requests
from lumctl.sim.switches.requests import switch_requests
from lumctl.sim.world.world import World

WHOLE = 2000 if os.environ.get("LUMCTL_CAMPAIGN") else 0
SAMPLE = 60
HABITS = ("device-down", "device-lying", "device-cut", "device-refuse", "device-half")
RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-2]
    power: bmc/slot-[1-2]
    accelerators:
      - id: "{host}-gpu0"
        model: X100
        memory_gib: 80
        pci: 0000:17:00.0
devices:
  - {id: whole, kind: mesh, driver: sim-mesh, address: "a.example:1", geometry: {columns: 3, rows: 2}}
  - {id: object, kind: mesh, driver: smartlight-object, address: "b.example:1", geometry: {columns: 3, rows: 2}}
  - {id: switch, kind: switch, driver: sim-switch, address: "c.example:1", port_count: 16}
  - {id: shelf, kind: chassis, driver: sim-transponder, address: "d.example:1"}
  - {id: bmc, kind: power, driver: sim-power, address: "e.example:1"}
transponders:
  - id: h[1-2]-gpu0-a
    accelerator: h[1-2]-gpu0
    interface: eth2
    device: whole
    port: [0, 4]
    module: shelf/och-[1-2]
"""


@pytest.fixture
def run_campaign(capsys):
    """Run all sequences of a rig, which must have met what they are there for; a slow one takes a ``share`` of them."""

    def run(rig, *least, sample=SAMPLE, share=1):
        count = WHOLE // share if WHOLE else sample
        one = run_sequence if isinstance(rig, Rig) else run_settings
        tally, began = TroubleCount(), time.monotonic()
        for seed in range(count):
            one(rig, seed, tally)
        with capsys.disabled() if WHOLE else contextlib.nullcontext():
            print(f"\n{count} sequences in {time.monotonic() - began:.1f} s, {tally}")  # noqa: T201 - the account
        assert tally.steps == count * STEPS
        tally.require(*least, least=10 if count > 1000 else 1, faults=count >= SAMPLE / 2)

    return run


class Pipe:
    """The way into a NETCONF server of ours without SSH, which only takes time here."""

    def __init__(self, server):
        self._server = server

    def subsystem(self, name, _default_port, timeout_s):
        assert name == "netconf"
        ours, theirs = socket.socketpair()
        ours.settimeout(timeout_s)
        self._server.open_session(theirs)
        return ours


@pytest.fixture
def pipe():
    return Pipe


class Bench:
    """A world in this process behind its control socket, at a time that is told; ``way`` is what leads there."""

    def __init__(self, folder):
        (folder / "rack.yaml").write_text(RACK)
        self.time = 1_000_000.0
        self.world = World(load_inventory(folder / "rack.yaml"), seed=0, now=lambda: self.time)
        self.folder = folder
        self.path = folder / "control"
        self.way = FaultyWay(UnixSocket(self.path))
        self._control = Control(
            self.world,
            self.path,
            status=dict,
            changed=lambda: None,
            open_loop=lambda *_: pytest.fail("no loop is opened"),
            pause=lambda _seconds: None,
            end=lambda: None,
        )
        machines = machines_of(self.world, self.world.inventory, lambda _host: None)
        self._control.answer_also(power_requests(machines) | switch_requests(self.world))
        self._control.service.open()

    def context(self, device, **more):
        return DriverContext(device=device, address=f"unix:{self.path}", now=lambda: self.time, **more)

    def pass_time(self, seconds):
        self.time += seconds

    def misbehaves(self, device):
        """Gives a device one of its habits."""

        def misbehave(habit):
            if self.world.faults():
                self.world.clear()
            if habit is not None:
                self.world.inject(device, habit)

        return misbehave

    @contextlib.contextmanager
    def plant(self):
        """All that there is, whoever would be told of it."""
        with self.world._caught_up():
            yield self.world._plant

    def close(self):
        self._control.service.close()


@pytest.fixture
def bench(monkeypatch):
    """Drivers of simulated devices ask over the control socket: here on a way of ours."""
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:  # a short path: sockets lie in it
        made, elsewhere = Bench(Path(folder)), client._connected

        def connected(control, timeout_s):
            if control != made.path:
                return elsewhere(control, timeout_s)
            try:
                return made.way.tcp(0, timeout_s)
            except OSError as error:
                raise DeviceUnreachableError(f"no simulator answers at {control} ({error.strerror})") from None

        monkeypatch.setattr(client, "_connected", connected)
        yield made
        made.close()


@pytest.fixture
def habits():
    """The habits of simulated devices. A slow one is one whose answers are not waited for: a fault of the way."""
    return HABITS


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(3600 if WHOLE else 120))
