"""An alarm of a switch on its way to the operator: check, health explain, device show, metrics, and its end."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateways import serving, through
from prometheus_client.parser import text_string_to_metric_families

from lumctl.cli.main import run
from lumctl.context import Context
from lumctl.context.device_answers import ports_in_use, read_device
from lumctl.daemon.notifications.message import cases_of
from lumctl.devices.endpoints import sim_endpoints
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.replay import ReplaySwitch
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.client import ask
from lumctl.sim.switches.driver import SimSwitch
from lumctl.swap import commission

SWITCH = "ocs"
PSU = "power supply 1 has failed"


class Rack:
    """The switched example on a simulator that runs, its switch one that reads everything."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rack.yaml"
        self.path.write_text(example("switched").read_text().replace("driver: polatis-scpi", "driver: sim-switch"))
        self.metrics_file = folder / "lumctl.prom"
        assert run(["sim", "up", "--detach", "--dark", "-i", str(self.path)]) == 0
        self.inventory = load_inventory(self.path)
        self.control = Path(sim_endpoints(self.inventory).devices[SWITCH].address.removeprefix("unix:"))
        with self.context() as context:
            commission(context)

    def context(self) -> Context:
        return Context(self.inventory, "sim")

    def fault(self, kind: str, value: float | None = None) -> None:
        ask(self.control, "fault", component=SWITCH, kind=kind, value=value)

    def clear(self) -> None:
        ask(self.control, "clear", component=SWITCH)

    def metrics(self) -> dict[str, float]:
        """The metrics of the last check about the switch, by name and by the labels that matter."""
        samples = [
            sample
            for family in text_string_to_metric_families(self.metrics_file.read_text())
            for sample in family.samples
            if sample.labels.get("id") == SWITCH
        ]
        told = ("rule", "severity", "port")
        return {" ".join([s.name, *(s.labels[k] for k in told if k in s.labels)]): s.value for s in samples}


@pytest.fixture(scope="module")
def running() -> Iterator[Rack]:
    # Not pytest's own folder: the path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
    (folder / "run").mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
        patch.setenv("LUMCTL_TARGET", "sim")
        made = Rack(folder)
        yield made
        assert run(["sim", "down", "-i", str(made.path)]) == 0
    shutil.rmtree(folder)


@pytest.fixture
def rack(running: Rack) -> Iterator[Rack]:
    """The rack, well before and after."""
    yield running
    running.clear()


@pytest.fixture
def lumctl(rack, capsys):
    """Run a command that ends with an exit code, and give what it printed."""

    def command(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run([*words, "-i", str(rack.path)]) == code
        return capsys.readouterr().out

    return command


def test_a_critical_alarm_reaches_the_operator_and_its_end_as_well(rack, lumctl):
    rack.fault("alarm")
    said = lumctl("check", "--textfile", str(rack.metrics_file), code=2)
    told = f"1 of 1 devices failed ({SWITCH}: CRITICAL alarm: {PSU} (psu/1))"
    assert said.startswith(f"LUMCTL CRITICAL - switched: {told}")
    metrics = rack.metrics()
    assert (metrics["lumctl_device_alarms critical"], metrics["lumctl_device_alarms major"]) == (1, 0)
    assert metrics["lumctl_finding_since_timestamp_seconds device.alarm"] > 0
    assert 20 < metrics["lumctl_device_temperature_celsius"] < 50
    assert metrics["lumctl_device_port_power_dbm 0"] > -20

    explained = json.loads(lumctl("health", "explain", SWITCH, "-o", "json"))
    (about,) = explained["explanations"]
    assert (about["state"], about["findings"][0]["rule"]) == ("failed", "device.alarm")
    assert about["findings"][0]["line"]["origin"].startswith("the device's own alarm")
    readings = {r["name"]: r["value"] for rule in about["rules"] for r in rule["readings"]}
    assert readings["alarms"] == f"CRITICAL {PSU}"
    assert explained["history"][-1]["rules"] == ["device.alarm"]
    (shown,) = json.loads(lumctl("device", "show", SWITCH, "-o", "json"))["devices"]
    assert (shown["state"], shown["findings"][0]["rule"], shown["alarms"][0]["text"]) == ("failed", "device.alarm", PSU)

    rack.clear()
    assert lumctl("check", "--textfile", str(rack.metrics_file)).startswith("LUMCTL OK")
    metrics = rack.metrics()
    assert metrics["lumctl_device_alarms critical"] == 0
    assert "lumctl_finding_since_timestamp_seconds device.alarm" not in metrics


@pytest.mark.parametrize(("fault", "rule"), [(("alarm", 2.0), "device.alarm"), (("overheat",), "device.temperature")])
def test_what_a_device_complains_of_opens_a_case_that_ends_with_it(rack, fault, rule):
    with rack.context() as context:
        rack.fault(*fault)
        (case,) = cases_of(context.observe().report).values()
        assert (case.component, case.rule, case.state.value) == (SWITCH, rule, "degraded")
        rack.clear()
        assert cases_of(context.observe().report) == {}


def test_a_device_that_stops_answering_its_alarms_is_no_longer_ok(rack, monkeypatch):
    def cut(_driver):
        raise DeviceUnreachableError("the session was cut")

    monkeypatch.setattr(SimSwitch, "read_alarms", cut)
    with rack.context() as context:
        health = context.observe().report.devices[SWITCH]
    assert health.state.value == "unknown"
    assert "the session was cut" in health.findings[0].evidence


def test_alarms_survive_recording_and_replay(rack, monkeypatch, tmp_path):
    rack.fault("alarm")
    monkeypatch.setenv("LUMCTL_RECORD", str(tmp_path))
    with rack.context() as context:
        recorded = context.observe().devices[SWITCH]
    assert recorded.alarms[0].severity == "CRITICAL"
    replay = ReplaySwitch(DriverContext(SWITCH, f"replay:{tmp_path}"))
    again = read_device(replay, ports_in_use(rack.inventory, SWITCH), recorded.taken_at)
    assert again == recorded


def test_alarms_come_through_a_gateway(rack, tmp_path):
    rack.fault("alarm")
    endpoints = sim_endpoints(rack.inventory)
    socket = rack.path.with_name("gateway.sock")
    with (
        serving(rack.inventory, endpoints, str(tmp_path / "store"), socket, rack="switched"),
        Context(rack.inventory, "sim", endpoints=through(endpoints, socket, "switched")) as context,
    ):
        seen = context.observe()
    (finding,) = seen.report.devices[SWITCH].findings
    assert (finding.rule, finding.case) == ("device.alarm", "critical")
    assert seen.devices[SWITCH].powers_dbm
