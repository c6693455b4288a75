"""What a replay answers, and where it says that something else was recorded."""

import dataclasses

import pytest

from lumctl.devices.drivers import load
from lumctl.devices.endpoints import rack_endpoints
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recorded_calls import recording_name
from lumctl.devices.recording import record
from lumctl.devices.registry import DeviceSet
from lumctl.devices.replay import ReplayTransponder
from lumctl.devices.ways import Nowhere
from lumctl.inventory.load import load_inventory


def test_the_same_run_passes(taped, blink):
    blink(taped(blink))


def test_a_replay_says_what_it_is_of(taped, blink, make_lamp):
    replay = taped(blink)
    assert (replay.capabilities, replay.proven) == (make_lamp().capabilities, "replay of: a lamp")
    with pytest.raises(UnsupportedError, match="lacks set-channel"):
        replay.set_channel(193_100_000)


def test_fewer_reads_and_more_are_well(taped, blink):
    replay = taped(blink)
    replay.set_transmit(enabled=False)
    assert not replay.transmitting()
    assert replay.read_optics().taken_at == 3.0
    assert [replay.read_optics().taken_at for _ in range(3)] == [3.0] * 3


def test_a_reading_from_before_a_change_is_none_after_it(taped, blink):
    replay = taped(blink)
    replay.transmitting()
    with pytest.raises(
        DeviceRefusedError,
        match=r"replay was called with read_optics\(\), but line 3 has set_transmit\(enabled=false\)",
    ):
        replay.read_optics()
    replay.set_transmit(enabled=False)
    replay.set_transmit(enabled=True)
    with pytest.raises(DeviceRefusedError, match="the recording ends"):
        replay.transmitting()


def test_a_change_that_is_not_the_next_one_is_the_first_difference(taped, path, blink):
    replay = taped(blink)
    with pytest.raises(DeviceRefusedError) as refused:
        replay.set_transmit(True)
    asked = "t1: replay was called with set_transmit(enabled=true), but line 3 has set_transmit(enabled=false)"
    assert refused.value.message == asked
    assert str(path) in refused.value.hint
    replay.set_transmit(False)
    replay.set_transmit(True)
    with pytest.raises(DeviceRefusedError, match="the recording ends"):
        replay.set_transmit(True)


def test_a_driver_that_is_opened_again_goes_on_in_its_recording(taped):
    taped(lambda lamp: lamp.set_transmit(enabled=False))
    replay = taped(lambda lamp: lamp.set_transmit(enabled=True))
    replay.set_transmit(enabled=False)
    replay.set_transmit(enabled=True)


def test_a_recording_that_is_not_there(tmp_path, monkeypatch):
    context = DriverContext(device="t1", address=f"replay:{tmp_path}/none.jsonl")
    with pytest.raises(DeviceUnreachableError, match="cannot read a recording at "):
        ReplayTransponder(context).read_optics()
    monkeypatch.delenv("LUMCTL_RECORDINGS", raising=False)
    with pytest.raises(DeviceUnreachableError, match="the path of its recording is not set") as absent:
        ReplayTransponder(dataclasses.replace(context, address="")).read_optics()
    assert "LUMCTL_RECORDINGS" in absent.value.hint


@pytest.mark.parametrize("named", [True, False], ids=["by the address", "by the variable"])
def test_a_folder_holds_the_recordings_of_many(tmp_path, monkeypatch, named, make_lamp):
    context = DriverContext(device="r1/t1", component="och 1")
    lamp = record(
        make_lamp(device=context.device, component=context.component), tmp_path / recording_name("transponder", context)
    )
    lamp.set_transmit(enabled=False)
    lamp.close()
    monkeypatch.setenv("LUMCTL_RECORDINGS", "" if named else str(tmp_path))
    ReplayTransponder(dataclasses.replace(context, address=f"replay:{tmp_path}" if named else "")).set_transmit(False)


@pytest.mark.parametrize("kind", ["mesh", "switch", "transponder", "power"])
def test_each_kind_has_its_driver(kind):
    assert load(f"replay-{kind}").kind == kind


def test_a_device_set_opens_what_was_recorded(tmp_path, monkeypatch, make_lamp):
    """As an operator has it: the inventory names the drivers, and the variable the folder."""
    rack = tmp_path / "rack.yaml"
    rack.write_text(RACK)
    lamp = record(make_lamp(), tmp_path / recording_name("transponder", DriverContext(device="t1")))
    lamp.set_transmit(enabled=False)
    lamp.close()
    monkeypatch.setenv("LUMCTL_RECORDINGS", str(tmp_path))
    inventory = load_inventory(rack)
    devices = DeviceSet(
        inventory,
        rack_endpoints(inventory),
        shell_of=lambda _host: None,
        way_of=lambda _endpoint: Nowhere(),
        known_states=lambda _device: {},
        now=lambda: 4.0,
    )
    devices.transponder("t1").set_transmit(enabled=False)
    with pytest.raises(DeviceUnreachableError, match=r"mesh-m1\.jsonl"):
        devices.mesh("m1").identify()
    devices.close()


RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h1
    accelerators:
      - {id: gpu0, model: X100, memory_gib: 80, pci: 0000:17:00.0}
devices:
  - {id: m1, kind: mesh, driver: replay-mesh, address: "m1.example:65432", geometry: {columns: 3, rows: 2}}
transponders:
  - {id: t1, driver: replay-transponder, accelerator: gpu0, interface: eth2, device: m1, port: 0}
"""
