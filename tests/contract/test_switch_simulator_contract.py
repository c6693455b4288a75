"""The contract suite against the simulator's switches, over every protocol that it serves, and the light in them."""

import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sim_devices import devices_of, fleet_of, simulated
from sim_truth import truths

from lumctl.devices.drivers import load
from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.testing import SwitchContract, SwitchUnderTest
from lumctl.devices.types import PortReading
from lumctl.sim.client import ask

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-2]
    accelerators:
      - id: "{host}-gpu[0-2]"
        model: X100
        memory_gib: 80
        pci: ["0000:17:00.0", "0000:18:00.0", "0000:19:00.0"]
devices:
  - {id: scpi, kind: switch, driver: polatis-scpi, address: "a.example:5025", port_count: 16}
  - {id: netconf, kind: switch, driver: polatis-netconf, address: "b.example:830", port_count: 16}
  - {id: whole, kind: switch, driver: sim-switch, address: "c.example:1", port_count: 16, input_count: 16}
  - {id: scpi-down, kind: switch, driver: polatis-scpi, address: "d.example:5025", port_count: 16}
  - {id: netconf-down, kind: switch, driver: polatis-netconf, address: "e.example:830", port_count: 16}
  - {id: whole-down, kind: switch, driver: sim-switch, address: "f.example:1", port_count: 16, input_count: 16}
  - {id: strange, kind: switch, driver: nobody-knows, address: "g.example:1", port_count: 16}
transponders:
  - {id: "h[1-2]-a", accelerator: "h[1-2]-gpu0", interface: eth1, device: scpi, tx: [0, 1], rx: [8, 9]}
  - {id: "h[1-2]-b", accelerator: "h[1-2]-gpu1", interface: eth2, device: netconf, tx: [0, 1], rx: [8, 9]}
  - {id: "h[1-2]-c", accelerator: "h[1-2]-gpu2", interface: eth3, device: whole, port: [0, 8]}
"""


@pytest.fixture(scope="module")
def simulator():
    with simulated(RACK) as running:
        for device in ("scpi-down", "netconf-down", "whole-down"):
            running.inject(device, "device-down")
        yield running


@pytest.fixture(scope="module")
def fleet(simulator):
    with fleet_of(simulator) as opened:
        yield opened


@pytest.fixture
def devices(simulator, fleet):
    with devices_of(simulator, fleet) as opened:
        yield opened


@pytest.fixture
def healed(simulator):
    """Whatever a test has done to the devices that it names is over afterwards."""
    yield simulator
    for device in ("scpi", "netconf", "whole", "scpi/port/8"):
        simulator.clear(device)


def ports_of(simulator, device):
    told = ask(simulator.control, "switch-ports", device=device)["ports"]
    return {port: PortReading(port, each["enabled"], label=each["label"]) for port, each in enumerate(told)}


def under_test(devices, simulator, device):
    driver = devices.switch(device)
    made = load(simulator.inventory.devices[device].driver)
    more = [made(driver.context), made(replace(driver.context, port_count=18, input_count=9))]

    @contextmanager
    def halving():
        simulator.inject(device, "device-half")
        yield
        simulator.clear(device)

    yield SwitchUnderTest(
        driver,
        port_count=driver.context.port_count,
        input_count=driver.context.input_count,
        truth=lambda: dict(ask(simulator.control, "switch-read", device=device)["joins"]),
        other=more[0],
        wrong_size=more[1],
        unreachable=devices.switch(f"{device}-down"),
        stops_midway=halving,
        lit=0,
        dark=5,
        ports=lambda: ports_of(simulator, device),
        **truths(simulator, device, kind="switch", ports=(0, 1, 2)),
    )
    for each in more:
        each.close()


class TestScpi(SwitchContract):
    @pytest.fixture
    def switch(self, devices, simulator):
        yield from under_test(devices, simulator, "scpi")


class TestNetconf(SwitchContract):
    @pytest.fixture
    def switch(self, devices, simulator):
        yield from under_test(devices, simulator, "netconf")

    def test_a_switch_that_somebody_has_locked_is_busy(self, ready, devices):
        from lumctl.devices.netconf import NetconfClient

        client = NetconfClient(devices.switch("netconf").context)
        with client.locked("running"), pytest.raises(DeviceBusyError):
            ready.write({0: ready.outputs[0]})
        client.close()
        assert ready.holds({})


class TestSimSwitch(SwitchContract):
    @pytest.fixture
    def switch(self, devices, simulator):
        yield from under_test(devices, simulator, "whole")


@pytest.mark.parametrize(("device", "interface"), [("scpi", "eth1"), ("netconf", "eth2"), ("whole", "eth3")])
def test_a_join_brings_light_and_a_shut_port_takes_it(devices, device, interface):
    """Both hosts send into the switch: joined, one hears the other, on one fibre both do."""
    switch = devices.switch(device)
    joins = {0: 8} if device == "whole" else {0: 9, 1: 8}
    switch.commit(switch.stage(dict.fromkeys(switch.read_circuits())))
    switch.commit(switch.stage(joins))
    ends = [devices.transponder(f"h{n}-{'abc'[int(interface[-1]) - 1]}") for n in (1, 2)]
    for end, other in zip(ends, ("h2", "h1"), strict=True):
        assert end.read_optics().rx_power_dbm > -20
        assert (other, interface) in [(n.system, n.port) for n in end.neighbours()]
    switch.set_port(8, enabled=False)
    assert ends[0].read_optics().rx_power_dbm == -math.inf or ends[1].read_optics().rx_power_dbm == -math.inf
    assert switch.read_powers((8,)) == {8: -math.inf}
    switch.set_port(8, enabled=True)
    switch.commit(switch.stage(dict.fromkeys(joins)))
    assert ends[0].read_optics().rx_power_dbm == ends[1].read_optics().rx_power_dbm == -math.inf


def test_a_dark_port_has_failed_and_a_dim_one_is_dimmer(devices, healed):
    switch = devices.switch("scpi")
    switch.commit(switch.stage({0: 8}))
    before = switch.read_powers((8,))[8]
    healed.inject("scpi/port/8", "dim", 6)
    assert switch.read_powers((8,))[8] == pytest.approx(before - 6, abs=0.5)
    healed.inject("scpi/port/8", "dark")
    assert switch.read_powers((8,)) == {8: -math.inf}
    reading = switch.read_ports()[8]
    assert (reading.enabled, reading.failed) == (None, True)
    switch.commit(switch.stage({0: None}))


@pytest.mark.parametrize("device", ["scpi", "netconf", "whole"])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("device-down", DeviceUnreachableError),
        ("device-refuse", DeviceRefusedError),
        ("device-lying", InconsistentError),
        ("device-cut", (DeviceUnreachableError, OutcomeUnknownError)),
    ],
)
def test_a_sick_switch_has_its_error_and_recovers(devices, healed, device, fault, error):
    switch = devices.switch(device)
    staged = switch.stage({3: 11})
    healed.inject(device, fault)
    with pytest.raises(error):
        switch.commit(staged)
    healed.clear(device)
    switch.commit(staged)
    assert switch.read_circuits()[3] == 11
    switch.commit(switch.stage({3: None}))


def test_for_what_speaks_an_unknown_protocol_a_generic_switch_stands_in(simulator, devices):
    told = ask(simulator.control, "status")
    assert told["unserved"] == {}
    assert told["runtime"]["stand_ins"] == {"strange": "sim-switch"}
    switch = devices.switch("strange")
    assert switch.identify() == "strange ready, 16 ports"
    switch.commit(switch.stage({0: 9}))
    assert switch.read_circuits() == {0: 9}
