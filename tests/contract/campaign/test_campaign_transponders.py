"""Seeded fault sequences on the drivers of transponders; see test_campaign_meshes.py."""

import re
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from lumctl_hostport import HostPort
from lumctl_openconfig import OpenConfigTransponder

from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.campaign_settings import Knob, SettingsRig
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.testing.shell_faults import FaultyShell, ShellFault
from lumctl.fleet.fleet import Fleet
from lumctl.sim import ssh
from lumctl.sim.chassis.chassis import Chassis
from lumctl.sim.chassis.driver import SimTransponder
from lumctl.sim.client import ask
from lumctl.sim.launch import launch
from lumctl.sim.netconf import NetconfServer

TRANSMIT = Knob((True, False), lambda driver, value: driver.set_transmit(value))
KNOBS = {
    "transmit": TRANSMIT,
    "channel": Knob((193_100_000, 193_400_000, 193_700_000), lambda driver, value: driver.set_channel(value)),
    "power": Knob((-6.0, -3.25, -1.0), lambda driver, value: driver.set_output_power(value)),
}
EVERY = ("done", "DeviceUnreachableError", "DeviceRefusedError", "OutcomeUnknownError", "InconsistentError")


def read(driver):
    optics = driver.read_optics()
    return {"transmit": driver.transmitting(), "channel": optics.frequency_mhz, "power": optics.target_power_dbm}


def settings_of(bench, transponder):
    view = bench.world.module(transponder)
    return {"transmit": view.laser_on, "channel": view.frequency_mhz, "power": view.target_power_dbm}


def rig_on(bench, opened, way, **more):
    """A rig of the first of two transponders of a simulated chassis; the other one is somebody else's."""
    bench.world.set_channel("h1-gpu0-a", 193_100_000)
    return SettingsRig(
        opened,
        read,
        lambda: settings_of(bench, "h1-gpu0-a"),
        KNOBS,
        way,
        others=lambda: settings_of(bench, "h2-gpu0-a"),
        misbehave=bench.misbehaves("shelf"),
        **more,
    )


def test_sim_transponder(bench, habits, run_campaign):
    context = bench.context("h1-gpu0-a", component="och-1")
    rig = rig_on(bench, lambda: SimTransponder(context), bench.way, habits=habits, most_bytes=3000)
    run_campaign(rig, *EVERY)


@pytest.mark.parametrize("candidate", [True, False], ids=["candidate", "running only"])
def test_openconfig(bench, habits, run_campaign, pipe, request, candidate):
    key = ssh.loaded(ssh.new_private_key())
    server = NetconfServer(
        "shelf",
        Chassis(bench.world, {"och-1": "h1-gpu0-a", "och-2": "h2-gpu0-a"}),
        key=key,
        client_key=key,
        candidate=candidate,
        conduct=lambda: bench.world.misbehaviour("shelf"),
    )
    request.addfinalizer(server.close)
    way = FaultyWay(pipe(server))
    context = DriverContext("h1-gpu0-a", "shelf", way, component="och-1", timeout_s=5.0)
    rig = rig_on(bench, lambda: OpenConfigTransponder(context), way, habits=habits, most_bytes=9000)
    run_campaign(rig, *EVERY, sample=30)


class Host:
    """The shell of a simulated host over SSH, and what befalls it."""

    def __init__(self, shell):
        self.shell = FaultyShell(shell)
        self._dice = Random(0)  # noqa: S311 - the same in every run

    def misbehave(self, habit):
        if habit is None:
            self.shell.set(None)
        else:
            self.shell.set(ShellFault(habit), after=self._dice.randint(0, 1), passes=self._dice.random() < 0.5)


def test_hostport(bench, run_campaign, request):
    """Over the simulator's own SSH. Every command that is lost may have been run, or not."""
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
    request.addfinalizer(lambda: shutil.rmtree(folder))
    running = launch(bench.world.inventory, folder=folder / "sim", tied=True)
    request.addfinalizer(running.stop)
    fleet = Fleet(running.inventory, running.endpoints())
    request.addfinalizer(fleet.close)
    host = Host(fleet.shell("h1"))

    def flags(name):
        said = ask(running.control, "answer", host=name, command="cat /sys/class/net/eth2/flags")
        return bool(int(said["stdout"], 16) & 1)

    context = DriverContext("h1-gpu0-a", shell=host.shell, interface="eth2", now=time.time)
    rig = SettingsRig(
        lambda: HostPort(context),
        lambda driver: {"transmit": driver.transmitting()},
        lambda: {"transmit": flags("h1")},
        {"transmit": TRANSMIT},
        None,
        others=lambda: flags("h2"),
        habits=list(ShellFault),
        misbehave=host.misbehave,
    )
    run_campaign(rig, "done", "DeviceUnreachableError", "DeviceRefusedError", "OutcomeUnknownError", "not read")
    assert min(host.shell.struck[fault] for fault in ShellFault) > 0


MODELS = Path(__file__).parents[1] / "yang" / "openconfig"
MODULES = ("openconfig-terminal-device", "openconfig-platform-transceiver")
CONDITION = re.compile(r'\n {4}when "/oc-platform:components.*?" \{.*?\n {4}\}', re.DOTALL)
COMPONENTS = "".join(f"<component><name>{n}</name><config><name>{n}</name></config></component>" for n in ("a", "b"))
PLATFORM = f'<components xmlns="http://openconfig.net/yang/platform">{COMPONENTS}</components>'


@pytest.fixture
def netconfd(serve_netconf, tmp_path):
    """A real server that keeps what is configured of two components; see openconfig/test_openconfig_netconfd.py."""
    for model in MODELS.glob("*.yang"):
        shutil.copy(model, tmp_path)
    for name in MODULES:
        path = tmp_path / f"{name}.yang"
        path.write_text(CONDITION.sub("", path.read_text()))
    server = serve_netconf(*MODULES, module_paths=(tmp_path,))
    client = NetconfClient(server.context(timeout_s=20.0))
    with client.locked("candidate"):
        client.edit_config(PLATFORM)
        client.commit()
    drivers = [OpenConfigTransponder(server.context(component=name, timeout_s=20.0)) for name in ("a", "b")]
    for driver in drivers:
        driver.set_channel(193_100_000)
        driver.set_output_power(-1.0)
    yield server, drivers
    for each in (client, *drivers):
        each.close()


def configured(driver):
    optics = driver.read_optics()
    return {"channel": optics.frequency_mhz, "power": optics.target_power_dbm}


def test_openconfig_on_netconfd(netconfd, run_campaign):
    """What it keeps: channel and output power. A tenth of the sequences: each lost session is a new process of sshd."""
    server, (ours, others) = netconfd
    context = server.context(component="a", timeout_s=20.0)
    way = FaultyWay(context.way)
    context = replace(context, way=way)
    rig = SettingsRig(
        lambda: OpenConfigTransponder(context),
        configured,
        lambda: configured(ours),
        {name: KNOBS[name] for name in ("channel", "power")},
        way,
        others=lambda: configured(others),
        most_bytes=9000,
    )
    run_campaign(rig, "done", "DeviceUnreachableError", sample=4, share=10)
