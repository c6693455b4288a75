"""The contract suite over the Redfish driver against our own twin, and the twin read by a client of somebody else."""

import time
from dataclasses import dataclass, field

import pytest
import sushy
import sushy.auth
from lumctl_redfish import RedfishPower

from lumctl.devices.errors import DeviceLoginError, DeviceRefusedError
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import PowerContract, PowerUnderTest
from lumctl.devices.types import PowerReading
from lumctl.devices.ways import Direct
from lumctl.sim.power.redfish import RedfishTwin
from lumctl.sim.world.misbehaviour import Misbehaviour


def driver_for(address, *, component="", login=None) -> RedfishPower:
    return RedfishPower(
        DriverContext(
            device="bmc1",
            address=address,
            way=Direct(address),
            login=login or Login(),
            component=component,
            now=time.time,
        )
    )


@dataclass
class Machines:
    """One machine on a bench."""

    on: bool = True
    names: tuple[str, ...] = ("1",)
    acts: list[str] = field(default_factory=list)
    behaves: Misbehaviour = field(default_factory=Misbehaviour)

    def conduct(self) -> Misbehaviour:
        return self.behaves

    def is_on(self, name) -> bool:
        assert name == "1"
        return self.on

    def watts(self, name) -> float:
        return 512.25 if self.is_on(name) else 12.5

    def switch(self, name, *, on) -> None:
        if self.behaves.says_no:
            raise DeviceRefusedError(self.behaves.complaint)
        for _ in self.behaves.taken([name]):
            self.on = on

    def restart(self, name) -> None:
        if self.is_on(name):
            self.acts.append("restart")


@pytest.fixture
def machines():
    return Machines()


@pytest.fixture
def twin(machines):
    served = RedfishTwin("bmc1", machines, lambda _seconds: None, login=("operator", "open sesame"))
    served.service.open()
    yield served
    served.service.close()


@pytest.fixture
def login(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    return Login("operator", secret)


class TestOurTwin(PowerContract):
    @pytest.fixture
    def power(self, request, twin, machines, nobody, login) -> PowerUnderTest:
        under_test = PowerUnderTest(
            driver=driver_for(twin.address, login=login),
            truth=lambda: machines.on,
            orders=lambda: len(twin.orders),
            reading=lambda: PowerReading(0.0, machines.on, "OK", machines.watts("1")),
            unreachable=driver_for(f"http://{nobody}"),
            nobody=driver_for(twin.address, component="2", login=login),
        )
        yield under_test
        under_test.driver.close()
        under_test.nobody.close()
        if "spoilt" not in request.node.name:  # a session whose answer was lost cannot be closed
            assert twin.sessions == set()

    def test_the_reading_is_whole(self, power):
        reading = power.driver.read_power()
        assert (reading.on, reading.health, reading.watts) == (True, "OK", 512.2)
        assert reading.model == "lumctl simulated machine"

    def test_one_session_serves_all_calls(self, power, twin):
        for _ in range(3):
            power.driver.read_power()
        assert len(twin.sessions) == 1

    def test_a_session_that_the_controller_forgot_is_opened_anew(self, power, twin):
        power.driver.read_power()
        for act in (power.driver.reset, power.driver.read_power):
            twin.sessions.clear()
            act()
            assert len(twin.sessions) == 1
        assert twin.orders == [("1", "ForceRestart")]

    def test_without_a_free_session_the_password_is_shown_each_time(self, power, twin):
        twin.sessions |= {f"that belongs to somebody else {count}" for count in range(16)}
        assert power.driver.read_power().on is True
        assert len(twin.sessions) == 16
        twin.sessions.clear()

    def test_a_wrong_secret_is_a_login_error(self, twin, login):
        login.secret_file.write_text("open barley\n")
        driver = driver_for(twin.address, login=login)
        with pytest.raises(DeviceLoginError, match="refuses the login of operator: 401 The user name or the password"):
            driver.set_power(on=False)
        driver.close()
        assert twin.orders == []

    def test_no_login_at_all_is_a_login_error(self, twin):
        with pytest.raises(DeviceLoginError, match="401 Log in first"):
            driver_for(twin.address).read_power()

    def test_a_controller_that_takes_it_and_does_nothing_is_seen_by_reading(self, power, machines):
        machines.behaves = Misbehaviour(lying=True)
        power.driver.set_power(on=False, force=True)
        assert power.driver.read_power().on is True

    def test_a_refusal_says_why(self, power, machines):
        machines.behaves = Misbehaviour(refuses=True)
        with pytest.raises(DeviceRefusedError, match="409 no change is accepted now"):
            power.driver.set_power(on=False)
        assert machines.on


class TestOurTwinByAForeignClient:
    """OpenStack's client reads our twin: it is Redfish beyond what our own driver looks at."""

    @pytest.mark.parametrize("way_in", [sushy.auth.SessionAuth, sushy.auth.BasicAuth])
    def test_it_is_read_and_switched(self, twin, machines, way_in):
        # Left open, the session is closed by the garbage collector: in any thread, against a server that is gone.
        with way_in("operator", "open sesame") as auth:
            root = sushy.Sushy(twin.address, auth=auth)
            system = root.get_system()
            assert (system.power_state, system.status.health) == (sushy.PowerState.ON, sushy.Health.OK)
            system.reset_system(sushy.ResetType.FORCE_OFF)
            system.refresh()
            assert system.power_state is sushy.PowerState.OFF
            assert not machines.on
            assert root.get_chassis().identity == "1"

    def test_a_word_that_it_does_not_take_is_refused(self, twin, machines):
        root = sushy.Sushy(twin.address, auth=sushy.auth.BasicAuth("operator", "open sesame"))
        with pytest.raises(sushy.exceptions.BadRequestError, match="'Nmi' is not a ResetType that this system accepts"):
            root._conn.post("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", data={"ResetType": "Nmi"})
        assert machines.on
