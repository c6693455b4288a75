"""The driver of vendor-style objects on an object in this process: the contract, what it writes, and whom it takes."""

import contextlib
import math
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from lumctl_smartlight import SmartlightObjectMesh, session

from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import MeshContract, MeshUnderTest
from lumctl.devices.types import DeviceReading, PucChange, PucState, Receipt
from lumctl.devices.ways import Direct

BAR, CROSS = PucState.BAR, PucState.CROSS
PUCS = 29
ADDRESS = "m1.example:4000"


class Chip:
    """What a vendor's object stands before: couplings and phases that stay when the object goes."""

    def __init__(self) -> None:
        self.settings = {puc: (0.0, 0.1 * puc) for puc in range(PUCS)}
        self.written = []
        self.is_halving = False

    def states(self):
        return {puc: CROSS if k > 0.5 else BAR for puc, (k, _) in self.settings.items()}

    @contextlib.contextmanager
    def halving(self):
        self.is_halving = True
        yield
        self.is_halving = False


class VendorObject:
    """An object as the vendor's is seen to be; ``chip`` is what it stands before."""

    def __init__(self, chip, address) -> None:
        self.chip, self.address, self.calls = chip, address, []

    def connect(self):
        self.calls.append("connect")
        if self.address.startswith("down"):
            raise ConnectionRefusedError(111, "Connection refused")

    def disconnect(self):
        self.calls.append("disconnect")

    def get_puc_states(self):
        return dict(self.chip.settings)

    def set_puc_states(self, states):
        self.chip.written.append(dict(states))
        if self.chip.is_halving:
            self.chip.settings |= dict(list(states.items())[: len(states) // 2])
            raise RuntimeError("stopped in the middle")
        self.chip.settings |= states

    def get_output_power(self, ports):
        return {port: -math.inf if port else -3.5 for port in ports}

    def get_temp(self):
        return 31


@pytest.fixture
def chip():
    return Chip()


@pytest.fixture
def install(monkeypatch):
    """Install the packages that offer an object, by name."""

    def installed(**makers):
        points = [EntryPoint(name, f"vendor_{name}:opened", session.GROUP) for name in makers]
        for name, maker in makers.items():
            monkeypatch.setitem(sys.modules, f"vendor_{name}", SimpleNamespace(opened=maker))
        monkeypatch.setattr(session, "entry_points", lambda group: points if group == session.GROUP else [])

    return installed


@pytest.fixture
def opened(install, chip):
    """Open drivers before the chip. ``opened.objects`` are the objects that they made."""
    made = []

    def maker(address, way):
        assert isinstance(way, Direct)
        made.append(VendorObject(chip, address))
        return made[-1]

    def open_at(address=ADDRESS, puc_count=PUCS):
        return SmartlightObjectMesh(
            DriverContext(device="m1", address=address, way=Direct(address), puc_count=puc_count, port_count=24)
        )

    install(vendor=maker)
    open_at.objects = made
    return open_at


class TestObjectInThisProcess(MeshContract):
    @pytest.fixture
    def mesh(self, opened, chip) -> MeshUnderTest:
        def put_between(puc):
            chip.settings[puc] = (0.4, chip.settings[puc][1])

        return MeshUnderTest(
            driver=opened(),
            puc_count=PUCS,
            truth=chip.states,
            unreachable=opened("down.example:4000"),
            other=opened(),
            wrong_size=opened(puc_count=PUCS - 1),
            put_between=put_between,
            stops_midway=chip.halving,
            reading=lambda: DeviceReading(0.0, temperature_c=31.0, powers_dbm={0: -3.5, 1: -math.inf}),
        )


def test_only_the_couplings_of_the_change_are_written_and_phases_stay(opened, chip):
    chip.settings[5] = (0.0, 7.0)
    driver = opened()
    driver.commit(driver.stage({5: CROSS, 3: BAR}))
    assert chip.written == [{3: (0.0, pytest.approx(0.3)), 5: (1.0, pytest.approx(7.0 - math.tau))}]


def test_a_coupling_near_an_end_is_that_end(opened, chip):
    chip.settings |= {0: (0.009, 0.0), 1: (0.991, 0.0), 2: (-0.009, 0.0), 3: (1.009, 0.0), 4: (0.02, 0.0), 5: (0.98, 0)}
    states = opened().read_states()
    assert [states.get(puc) for puc in range(6)] == [BAR, CROSS, BAR, CROSS, None, None]


def test_another_mesh_is_never_written(opened, chip):
    staged = opened().stage({3: CROSS})
    with pytest.raises(InconsistentError, match=r"has 29 PUCs \(numbered 0 to 28\); the inventory has 30"):
        opened(puc_count=30).commit(staged)
    chip.settings = {puc + 1: setting for puc, setting in chip.settings.items()}
    with pytest.raises(InconsistentError, match="numbered 1 to 29"):
        opened().commit(staged)
    chip.settings = {}
    with pytest.raises(InconsistentError, match="m1 has 0 PUCs; the inventory has"):
        opened().commit(staged)
    assert chip.written == []


def test_one_object_serves_many_calls_and_is_disconnected_at_the_end(opened):
    driver = opened()
    for _ in range(3):
        driver.read_temperature()
    driver.commit(driver.stage({3: CROSS}))
    driver.close()
    driver.close()
    (made,) = opened.objects
    assert made.calls == ["connect", "disconnect"]
    assert driver.read_temperature() == 31.0, "it may be used again"
    assert len(opened.objects) == 2


def test_nothing_is_made_before_the_first_call_nor_for_a_change_out_of_range(opened):
    driver = opened()
    with pytest.raises(DeviceRefusedError, match="no PUC 29"):
        driver.stage({29: CROSS})
    with pytest.raises(DeviceRefusedError, match="no port 24"):
        driver.read_powers((24,))
    driver.close()
    assert opened.objects == []


def test_a_change_of_nothing_asks_nobody(opened, chip):
    driver = opened()
    staged = driver.stage({})
    driver.commit(staged)
    assert chip.written == []


def test_powers_are_read_by_port(opened):
    assert opened().read_powers((1, 0)) == {1: -math.inf, 0: -3.5}
    assert opened().read_powers(()) == {}


def test_who_offers_the_object_stands_in_the_identity(opened):
    assert opened().identify() == "SmartLight object of vendor, 29 PUCs"


def test_an_undo_needs_no_answer_that_was_lost(opened, chip):
    driver = opened()
    staged = driver.stage({0: CROSS, 1: CROSS})
    with chip.halving(), pytest.raises(OutcomeUnknownError, match="stopped in the middle"):
        driver.commit(staged)
    assert driver.compare(staged) == (PucChange(1, BAR, CROSS),)
    driver.roll_back(Receipt(staged, revert_armed=False))
    assert set(chip.states().values()) == {BAR}


def test_a_timer_is_refused_before_anything_is_made(opened):
    driver = opened()
    staged = driver.stage({})
    opened.objects.clear()
    driver.close()
    with pytest.raises(UnsupportedError):
        driver.commit(staged, revert_after_s=1)
    assert opened.objects == []


def test_without_a_package_nothing_can_be_reached(opened, install):
    install()
    with pytest.raises(DeviceUnreachableError, match="no installed package offers a SmartLight object") as error:
        opened().identify()
    assert session.GROUP in error.value.hint


def test_two_packages_are_one_too_many(opened, install):
    install(lab=VendorObject, vendor=VendorObject)
    with pytest.raises(DeviceUnreachableError, match="lab, vendor all offer a SmartLight object"):
        opened().identify()


@pytest.mark.parametrize("address", ["127.0.0.1:4000", "unix:4000", "localhost:65432"])
def test_the_simulators_object_is_never_taken_for_a_rack(opened, install, address):
    install(sim=VendorObject)
    with pytest.raises(DeviceUnreachableError, match="no installed package"):
        opened(address).identify()


def test_only_the_simulators_object_is_taken_for_a_simulator(opened, install, chip):
    install(vendor=lambda *_: pytest.fail("the vendor's was made"), sim=lambda address, _: VendorObject(chip, address))
    assert opened("unix:/run/lumctl/mesh.sock0").identify() == "SmartLight object of sim, 29 PUCs"


def test_a_package_that_does_not_import_is_named(opened, install, monkeypatch):
    install(vendor=None)
    with pytest.raises(DeviceUnreachableError, match="vendor cannot be created"):
        opened().identify()
    monkeypatch.setitem(sys.modules, "vendor_vendor", None)
    with pytest.raises(DeviceUnreachableError, match="vendor does not import: ModuleNotFoundError"):
        opened().identify()
