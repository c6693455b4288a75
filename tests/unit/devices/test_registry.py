import threading
from dataclasses import replace
from pathlib import Path

import pytest
from lumctl_hostport import HostPort
from lumctl_smartlight import SmartlightMesh

from lumctl.devices.endpoints import Endpoints, HostEndpoint, rack_endpoints
from lumctl.devices.errors import DeviceUnreachableError, DriverFaultError, UnsupportedError
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import PucState
from lumctl.devices.ways import Direct
from lumctl.errors import UsageError
from lumctl.inventory.model import (
    Accelerator,
    Device,
    DeviceKind,
    Evidence,
    Geometry,
    Host,
    Inventory,
    Lane,
    PartOf,
    Rack,
    Role,
    SshSettings,
    Thresholds,
    Transponder,
)

BAR, CROSS = PucState.BAR, PucState.CROSS


def device(name, *, driver="smartlight", kind=DeviceKind.MESH, geometry=Geometry(2, 1)):  # noqa: B008 - frozen
    return Device(
        id=name,
        rack="r1",
        kind=kind,
        driver=driver,
        address="127.0.0.1:9",
        geometry=geometry,
        port_count=16,
        loss_per_puc_db=0.3,
        loss_per_port_db=1.0,
        settle_ms=20,
    )


def transponder(name, driver):
    return Transponder(
        id=name,
        accelerator="a1",
        host="h1",
        interface="eth2",
        lane=Lane("m1", 0, 0),
        driver=driver,
        verify=(Evidence.LLDP,),
        tx_power_dbm=0.0,
        rx_sensitivity_dbm=-15.0,
    )


@pytest.fixture
def inventory():
    devices = [
        device("m1"),
        device("lost", driver="no-such"),
        device("odd", driver="hostport"),
        device("ocs", kind=DeviceKind.SWITCH, geometry=None),
    ]
    transponders = [transponder("t1", "hostport"), transponder("t2", "smartlight")]
    return Inventory(
        path=Path("rack.yaml"),
        digest="0",
        racks={"r1": Rack("r1")},
        hosts={"h1": Host("h1", "r1", "h1.lab", SshSettings(sudo=True))},
        accelerators={"a1": Accelerator("a1", "h1", "r1", "GPU", 48.0, Role.ACTIVE, 0)},
        transponders={each.id: each for each in transponders},
        devices={each.id: each for each in devices},
        jobs={},
        thresholds=Thresholds(),
    )


class Shell:
    def run(self, command, *, timeout_s):
        raise DeviceUnreachableError(f"nobody runs {command} within {timeout_s}")


@pytest.fixture
def known():
    """The store's record, which a test may change."""
    return {}


@pytest.fixture
def devices(inventory, known):
    opened = DeviceSet(
        inventory,
        rack_endpoints(inventory),
        shell_of=lambda _host: Shell(),
        way_of=lambda at: Direct(at.address),
        known_states=lambda name: known.get(name, {}),
        now=lambda: 1.0,
    )
    yield opened
    opened.close()


def test_a_mesh_is_opened_once(devices):
    assert devices.mesh("m1").proven == SmartlightMesh.proven
    assert devices.mesh("m1") is devices.mesh("m1")


def test_it_is_opened_with_what_the_inventory_and_the_store_say(devices, known):
    known["m1"] = {12: CROSS}
    mesh = devices.mesh("m1")
    changes = mesh.stage({0: BAR, 10: BAR}).changes
    assert [change.before for change in changes] == [None, None]
    with pytest.raises(UsageError):
        devices.mesh("m2")


def test_threads_that_ask_at_once_share_one_driver(devices):
    gate = threading.Barrier(8)
    found = []

    def ask():
        gate.wait()
        found.append(devices.mesh("m1"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1


def test_what_another_process_wrote_is_taken_over(devices, known):
    known["m1"] = dict.fromkeys(range(11), BAR)
    assert devices.mesh("m1").stage({3: CROSS}).changes[0].before is BAR
    known["m1"] = known["m1"] | {3: CROSS}
    assert devices.mesh("m1").stage({3: CROSS}).changes[0].before is CROSS


def test_a_record_that_a_run_has_made_uncertain_does_not_forget_what_was_before(devices, known):
    known["m1"] = dict.fromkeys(range(11), BAR)
    before = devices.mesh("m1")
    known["m1"] = {}
    assert devices.mesh("m1") is before
    assert devices.mesh("m1").stage({3: CROSS}).changes[0].before is BAR


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("m7", UsageError, "no device 'm7'"),
        ("lost", DriverFaultError, "no driver 'no-such' is installed"),
        ("odd", DriverFaultError, "odd is a mesh, but its driver 'hostport' is for a transponder"),
        ("ocs", UnsupportedError, "ocs is a switch"),
    ],
)
def test_a_device_that_cannot_be_opened_says_why(devices, name, error, text):
    with pytest.raises(error, match=text):
        devices.mesh(name)


def test_an_unknown_device_is_met_with_the_nearest(devices):
    with pytest.raises(UsageError) as caught:
        devices.mesh("ocs1")
    assert caught.value.hint == "did you mean ocs?"


def test_a_transponder_is_opened_behind_its_host(devices):
    assert devices.transponder("t1") is devices.transponder("t1")
    with pytest.raises(DeviceUnreachableError, match="nobody runs sudo -n ethtool -m eth2"):
        devices.transponder("t1").read_optics()


def test_a_transponder_with_a_mesh_driver_is_refused(devices):
    with pytest.raises(DriverFaultError, match="t2 is a transponder, but its driver 'smartlight' is for a mesh"):
        devices.transponder("t2")


def test_the_host_s_driver_is_closed_if_the_chassis_s_does_not_open(inventory, devices, monkeypatch):
    closed = []
    monkeypatch.setattr(HostPort, "close", lambda driver: closed.append(driver.context.device))
    inventory.transponders["t1"] = replace(inventory.transponders["t1"], module=PartOf("lost", "och-1"))
    with pytest.raises(DriverFaultError, match="no driver 'no-such' is installed"):
        devices.transponder("t1")
    assert closed == ["t1"]


def test_a_device_that_the_simulator_lacks_is_never_looked_for_on_the_rack(inventory):
    where = Endpoints("sim", {"h1": HostEndpoint("h1", "127.0.0.1", SshSettings())}, devices={})
    aimed = DeviceSet(
        inventory,
        where,
        shell_of=lambda _host: Shell(),
        way_of=lambda at: Direct(at.address),
        known_states=lambda _name: {},
        now=lambda: 1.0,
    )
    with pytest.raises(DeviceUnreachableError, match="m1 does not answer on target sim"):
        aimed.mesh("m1")


def test_after_closing_a_device_is_opened_again(devices):
    first = devices.mesh("m1")
    devices.close()
    assert devices.mesh("m1") is not first


@pytest.mark.parametrize(
    ("columns", "rows", "pucs", "ports"), [(1, 1, 6, 12), (2, 1, 11, 16), (7, 3, 82, 44), (9, 9, 278, 76)]
)
def test_counts_of_a_mesh_follow_from_its_shape(columns, rows, pucs, ports):
    shape = Geometry(columns, rows)
    assert (shape.puc_count, shape.port_count) == (pucs, ports)
