"""Seeded fault sequences on the drivers of power; see test_campaign_meshes.py.

A controller says that it has accepted an order; that a machine followed is read, as the change engine does it.
"""

import json
import time
import urllib.request
from dataclasses import dataclass, field

import pytest
import sushy_emulator
from lumctl_redfish import RedfishPower

from lumctl.devices.errors import DeviceError, DeviceRefusedError, InconsistentError, OutcomeUnknownError
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.campaign_settings import Knob, SettingsRig
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.ways import Direct
from lumctl.sim.power.driver import SimPower
from lumctl.sim.power.redfish import RedfishTwin
from lumctl.sim.world.misbehaviour import Misbehaviour

EVERY = ("done", "DeviceUnreachableError", "DeviceRefusedError", "OutcomeUnknownError", "InconsistentError")
CONDUCT = {habit: Misbehaviour(**{habit: True}) for habit in ("lying", "refuses", "half", "cuts")}


def switched(driver, on):
    driver.set_power(on, force=True)
    try:
        shown = driver.read_power().on
    except DeviceError as error:
        raise OutcomeUnknownError(f"accepted, and not read: {error.message}") from error
    if shown is not on:
        raise InconsistentError("accepted, but not done")


def power_rig(opened, truth, way, **more):
    return SettingsRig(
        opened,
        lambda driver: {"on": driver.read_power().on},
        lambda: {"on": truth()},
        {"on": Knob((True, False), switched)},
        way,
        **more,
    )


def test_sim_power(bench, habits, run_campaign):
    context = bench.context("bmc", component="slot-1")
    rig = power_rig(
        lambda: SimPower(context),
        lambda: bench.world.is_on("h1"),
        bench.way,
        others=lambda: bench.world.is_on("h2"),
        habits=habits,
        misbehave=bench.misbehaves("bmc"),
        most_bytes=150,
    )
    run_campaign(rig, *EVERY)


@dataclass
class Machines:
    """Two machines on a bench."""

    names: tuple[str, ...] = ("1", "2")
    on: dict[str, bool] = field(default_factory=lambda: {"1": True, "2": True})
    behaves: Misbehaviour = field(default_factory=Misbehaviour)

    def conduct(self):
        return self.behaves

    def is_on(self, name):
        return self.on[name]

    def watts(self, _name):
        return 512.25

    def switch(self, name, *, on):
        self.on |= dict.fromkeys(self.behaves.taken([name]), on)
        if self.behaves.says_no:
            raise DeviceRefusedError(self.behaves.complaint)

    def misbehave(self, habit):
        self.behaves = CONDUCT[habit] if habit else Misbehaviour()


@pytest.fixture
def login(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    return Login("operator", secret)


def test_redfish(run_campaign, request, login):
    machines = Machines()
    twin = RedfishTwin("bmc1", machines, lambda _seconds: None, login=("operator", "open sesame"))
    request.addfinalizer(twin.service.close)
    twin.service.open()
    way = FaultyWay(Direct(twin.service.address))
    context = DriverContext("bmc1", twin.address, way, login=login, component="1", timeout_s=5.0, now=time.time)
    rig = power_rig(
        lambda: RedfishPower(context),
        lambda: machines.on["1"],
        way,
        others=lambda: machines.on["2"],
        habits=list(CONDUCT),
        misbehave=machines.misbehave,
        most_bytes=6000,
    )
    run_campaign(rig, *EVERY)


def test_redfish_on_sushy_tools(run_campaign, tmp_path):
    """A tenth of the sequences: it takes tens of milliseconds for each request."""
    ours, others = "27946b59-9e44-4fa7-8e91-f3527a1ef094", "4c1d0a64-5d55-4f9e-8f0b-0f6f1a2a9f10"
    with sushy_emulator.emulator(tmp_path, {ours: "ours", others: "others"}, follows_s=0) as (address, _):

        def is_on(machine):
            with urllib.request.urlopen(f"{address}/redfish/v1/Systems/{machine}") as answer:  # noqa: S310 - our own
                return json.load(answer)["PowerState"] == "On"

        way = FaultyWay(Direct(address.removeprefix("http://")))
        context = DriverContext("bmc1", address, way, component=ours, timeout_s=10.0, now=time.time)
        rig = power_rig(
            lambda: RedfishPower(context), lambda: is_on(ours), way, others=lambda: is_on(others), most_bytes=20_000
        )
        run_campaign(rig, "done", "DeviceUnreachableError", sample=4, share=10)
