"""The NETCONF driver of Polatis switches against a real server, netconfd, that has their model and no switch behind."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
from lumctl_polatis import PolatisNetconf
from lumctl_polatis.model import NS

from lumctl.devices.errors import DeviceBusyError, UnsupportedError
from lumctl.devices.netconf import NetconfClient
from lumctl.devices.testing import SwitchContract, SwitchUnderTest

PORTS = 16
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def server(require_program):
    """A netconfd whose ports are all there, as they are on a switch."""
    spec = importlib.util.spec_from_file_location("netconfd", HERE / "netconfd.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    running = loaded.Netconfd(require_program, ("optical-switch",), module_paths=(HERE / "yang" / "polatis",))
    client = NetconfClient(running.context("x1"))
    ports = "".join(f"<port><port-id>{number}</port-id></port>" for number in range(1, PORTS + 1))
    with client.locked("running", "candidate"):
        client.edit_config(f'<port-config xmlns="{NS}">{ports}</port-config>')
        client.commit()
    client.close()
    yield running
    running.close()


@pytest.fixture
def opened(server):
    drivers = []

    def driver(**more):
        context = server.context("x1", port_count=PORTS, input_count=PORTS // 2, timeout_s=10.0)
        drivers.append(PolatisNetconf(replace(context, **more)))
        return drivers[-1]

    yield driver
    for each in drivers:
        each.close()


class TestOnNetconfd(SwitchContract):
    @pytest.fixture
    def switch(self, opened) -> SwitchUnderTest:
        return SwitchUnderTest(
            opened(),
            port_count=PORTS,
            input_count=PORTS // 2,
            other=opened(),
            wrong_size=opened(port_count=PORTS + 2),
        )

    def test_powers_are_read_or_refused_as_declared(self, ready):
        """There is nothing behind netconfd that could measure."""
        with pytest.raises(UnsupportedError, match="no power monitor at port 0, 1"):
            ready.driver.read_powers((0, 1))

    def test_a_port_is_switched_and_read_back(self, ready):
        """Nor anything that could be shut; nothing is sent."""
        with pytest.raises(UnsupportedError, match="cannot be switched"):
            ready.driver.set_port(0, enabled=False)

    def test_a_switch_that_somebody_has_locked_is_busy(self, ready, server):
        client = NetconfClient(server.context("x1"))
        with client.locked("candidate"), pytest.raises(DeviceBusyError):
            ready.write({0: ready.outputs[0]})
        client.close()
        assert ready.holds({})
