"""The half of the driver that writes configuration, against a server that nobody here wrote: netconfd of Debian.

It has OpenConfig's models and no device behind them, so that no component has a type and no state is shown. That is
one device among those there are: it takes the configuration of an optical channel, says yes, and drops it, since the
models of 2016 make it depend on the component's type. With that condition taken out of the models it keeps it. Another
one, of a logical channel's assignment, can never be met as it is written there, and is put right.
"""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from lumctl_openconfig import OpenConfigTransponder

from lumctl.devices.errors import DeviceBusyError, DeviceRefusedError, InconsistentError
from lumctl.devices.netconf import NetconfClient

MODELS = Path(__file__).parents[1] / "yang" / "openconfig"
MODULES = ("openconfig-terminal-device", "openconfig-platform-transceiver")
CONDITION = re.compile(r'\n {4}when "/oc-platform:components.*?" \{.*?\n {4}\}', re.DOTALL)
WRONG = re.compile(r'must "assignment-type = (\w+)"')
RIGHT = r"""must "../assignment-type = '\1'" """
PLATFORM = "http://openconfig.net/yang/platform"
TERMINAL = "http://openconfig.net/yang/terminal-device"
PATIENCE_S = 20.0
"""On a busy machine netconfd is now and then silent for seconds."""
COMPONENTS = f"""
<components xmlns="{PLATFORM}">
  <component><name>och-1</name><config><name>och-1</name></config></component>
  <component><name>och-2</name><config><name>och-2</name></config></component>
</components>"""
LOGICAL = f"""
<terminal-device xmlns="{TERMINAL}"><logical-channels><channel>
  <index>7</index><config><index>7</index><admin-state>ENABLED</admin-state></config>
  <logical-channel-assignments><assignment><index>1</index><config>
    <index>1</index><assignment-type>OPTICAL_CHANNEL</assignment-type><optical-channel>och-1</optical-channel>
  </config></assignment></logical-channel-assignments>
</channel></logical-channels></terminal-device>"""


@pytest.fixture(scope="module")
def dropping(netconfd_class, require_program):
    """A server with the models as they are."""
    server = netconfd_class(require_program, MODULES, module_paths=(MODELS,))
    yield server
    server.close()


@pytest.fixture(scope="module")
def keeping(netconfd_class, require_program, tmp_path_factory):
    """A server that keeps what is configured, whatever a component is."""
    folder = tmp_path_factory.mktemp("models")
    for model in MODELS.glob("*.yang"):
        shutil.copy(model, folder)
    for name in MODULES:
        text, changed = CONDITION.subn("", (folder / f"{name}.yang").read_text())
        assert changed == 1
        (folder / f"{name}.yang").write_text(WRONG.sub(RIGHT, text))
    server = netconfd_class(require_program, MODULES, module_paths=(folder,))
    yield server
    server.close()


@pytest.fixture
def opened():
    drivers = []

    def open_at(server, component="och-1", *, written=COMPONENTS + LOGICAL):
        client = NetconfClient(server.context(timeout_s=PATIENCE_S))
        with client.locked("candidate"):
            client.edit_config(written)
            client.commit()
        driver = OpenConfigTransponder(server.context(component=component, timeout_s=PATIENCE_S))
        drivers.extend((client, driver))
        return driver, client

    yield open_at
    for each in drivers:
        each.close()


def configured(client):
    """The whole running configuration, as text without its layout."""
    root = client.get_config("running", "")
    return ET.tostring(root, encoding="unicode")


@pytest.mark.parametrize(
    ("write", "leaf"),
    [(lambda d: d.set_channel(193_700_000), "frequency"), (lambda d: d.set_output_power(-3.0), "target-output-power")],
    ids=["channel", "power"],
)
def test_configuration_that_is_dropped_without_a_word_is_found_out(dropping, opened, write, leaf):
    driver, client = opened(dropping, written=COMPONENTS)
    with pytest.raises(InconsistentError, match=f"{leaf} was set .* the device confirmed it, .* does not show it"):
        write(driver)
    assert leaf not in configured(client)


def test_the_logical_channel_switches_where_nothing_else_does(keeping, opened):
    driver, client = opened(keeping)
    for wanted in (False, False, True, True):
        driver.set_transmit(wanted)
        assert driver.transmitting() is wanted
        assert driver.read_optics().transmitting is wanted
        assert ("DISABLED" in configured(client)) is not wanted


def test_channel_and_power_are_kept_each_for_itself(keeping, opened):
    driver, client = opened(keeping)
    for frequency, dbm in ((193_100_000, -1.0), (193_400_000, 0.25)):
        driver.set_channel(frequency)
        driver.set_output_power(dbm)
        optics = driver.read_optics()
        assert (optics.frequency_mhz, optics.target_power_dbm) == (frequency, dbm)
    assert optics.rx_power_dbm is None
    assert optics.thresholds == {}
    assert configured(client).count("target-output-power>0.25") == 1


def test_what_the_models_forbid_is_refused_and_nothing_is_left_of_it(keeping, opened):
    driver, client = opened(keeping)
    driver.set_channel(193_100_000)
    before = configured(client)
    with pytest.raises(DeviceRefusedError, match=r"invalid-value .*target-output-power"):
        driver.set_output_power(1e30)
    with client.locked("candidate"):
        client.validate()
    assert configured(client) == before


def test_a_number_that_is_kept_as_another_is_found_out(keeping, opened):
    driver, _ = opened(keeping)
    with pytest.raises(InconsistentError, match=f"shows '{2**64 - 1}'"):
        driver.set_channel(2**64)


def test_a_component_that_is_not_there_is_not_made(keeping, opened):
    driver, client = opened(keeping, "och-9")
    with pytest.raises(DeviceRefusedError, match="no component 'och-9'"):
        driver.set_channel(193_100_000)
    assert "och-9" not in configured(client)


def test_another_component_has_nothing_that_switches_it(keeping, opened):
    driver, _ = opened(keeping, "och-2")
    with pytest.raises(DeviceRefusedError, match="no leaf that switches"):
        driver.set_transmit(enabled=False)
    assert driver.read_optics().transmitting is None


def test_a_lock_of_another_session_is_busy(keeping, opened):
    driver, client = opened(keeping)
    with client.locked("candidate"), pytest.raises(DeviceBusyError, match="lock-denied"):
        driver.set_channel(193_100_000)
    driver.set_channel(193_100_000)
