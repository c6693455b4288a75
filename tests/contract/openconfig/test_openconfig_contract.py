"""The contract suite over the OpenConfig driver and a chassis of its own."""

import math

import pytest

from lumctl.devices.testing import TransponderContract, TransponderUnderTest


class TestOpenConfig(TransponderContract):
    """With a candidate, and where only the running configuration can be written."""

    @pytest.fixture(params=[True, False], ids=["candidate", "running"])
    def transponder(self, request, make_shelf) -> TransponderUnderTest:
        shelf = make_shelf(candidate=request.param)
        lost = make_shelf()
        unreachable = lost.driver()
        lost.server.service.shut()
        return TransponderUnderTest(
            driver=shelf.driver(),
            truth=lambda: shelf.module().tx_power_dbm > -math.inf,
            told=lambda: (shelf.module().frequency_mhz, shelf.module().target_power_dbm),
            sent=lambda: len(shelf.operations),
            unreachable=unreachable,
            wrong=shelf.driver("och-9"),
        )


def test_the_other_end_sees_the_light_go_and_come(shelf):
    near, far = shelf.driver("och-1"), shelf.driver("och-2")
    assert far.read_optics().rx_los is False
    near.set_transmit(enabled=False)
    seen = far.read_optics()
    assert (seen.rx_power_dbm, seen.rx_los, seen.transmitting) == (-math.inf, True, True)
    near.set_transmit(enabled=True)
    assert far.read_optics().rx_power_dbm > -math.inf


def test_the_output_power_shifts_the_light_at_the_other_end(shelf):
    near, far = shelf.driver("och-1"), shelf.driver("och-2")
    before = far.read_optics().rx_power_dbm
    told = near.read_optics().target_power_dbm
    near.set_output_power(told - 3)
    assert far.read_optics().rx_power_dbm == pytest.approx(before - 3, abs=0.3)
    assert near.read_optics().tx_power_dbm == pytest.approx(told - 3, abs=0.3)


def test_every_reading_is_what_the_module_has(shelf):
    optics, module = shelf.driver().read_optics(), shelf.module()
    assert optics.rx_power_dbm == pytest.approx(module.rx_power_dbm, abs=0.3)
    assert optics.temperature_c == pytest.approx(module.temperature_c, abs=5)
    assert (optics.vendor, optics.transmitting, optics.tx_fault) == ("LUMCTL-SIM", True, False)
    assert optics.thresholds["rx_power_low_warning"] == module.transponder.rx_sensitivity_dbm
    assert len(optics.thresholds) == 16
    assert 0 < optics.pre_fec_ber < 1e-2
    assert optics.post_fec_ber == 0
    assert (optics.bias_ma, optics.voltage_v) == (pytest.approx(36.4), pytest.approx(3.29))


@pytest.mark.parametrize("kind", ["dark", "dim"])
def test_faults_of_a_transponder_show(shelf, kind):
    near, far = shelf.driver("och-1"), shelf.driver("och-2")
    before = far.read_optics().rx_power_dbm
    shelf.world.inject("h1-gpu0-a", kind)
    seen, sent = far.read_optics(), near.read_optics()
    if kind == "dark":
        assert (seen.rx_power_dbm, sent.tx_power_dbm) == (-math.inf, -math.inf)
        assert sent.tx_fault is True
    else:
        assert seen.rx_power_dbm == pytest.approx(before - 6, abs=0.3)
        assert seen.pre_fec_ber is not None
    assert sent.transmitting is True


def test_one_transponder_is_set_and_the_others_stay(shelf):
    before = shelf.module(2)
    driver = shelf.driver("och-1")
    driver.set_transmit(enabled=False)
    driver.set_channel(193_700_000)
    after = shelf.module(2)
    assert (after.laser_on, after.frequency_mhz) == (before.laser_on, before.frequency_mhz)


def test_each_write_is_locked_committed_and_unlocked(shelf):
    driver = shelf.driver()
    driver.set_channel(193_700_000)
    writes = [name for name in shelf.operations if name not in {"get", "get-config"}]
    assert [name for name in writes if name != "discard-changes"] == ["lock", "edit-config", "commit", "unlock"]
    assert shelf.server.sessions() == 1
