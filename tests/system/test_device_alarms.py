"""An alarm of a switch on its way to the operator: check, health explain, device show, metrics, and its end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lumctl.devices.endpoints import sim_endpoints
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.inventory.examples import example
from lumctl.inventory.load import load_inventory
from lumctl.sim.client import ask
from lumctl.sim.switches.driver import SimSwitch
from lumctl.site import Site
from lumctl.watch.cases import cases_of

SWITCH = "ocs"
PSU = "power supply 1 has failed"


class Rack:
    """The switched example with a simulated switch that reads everything, in a private folder."""

    def __init__(self, folder: Path) -> None:
        self.inventory = folder / "rack.yaml"
        self.inventory.write_text(example("switched").read_text().replace("driver: polatis-scpi", "driver: sim-switch"))
        (folder / "run").mkdir(mode=0o700)
        self.metrics_file = folder / "lumctl.prom"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LUMCTL_INVENTORY": str(self.inventory),
            "LUMCTL_TARGET": "sim",
            "LANG": "C.UTF-8",
        }

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "lumctl", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def metrics(self) -> dict[str, float]:
        """The metrics of the last check about the switch, by name and by the labels that matter."""
        return {
            " ".join([sample.name, *(sample.labels[k] for k in ("rule", "severity", "port") if k in sample.labels)]): (
                sample.value
            )
            for family in text_string_to_metric_families(self.metrics_file.read_text())
            for sample in family.samples
            if sample.labels.get("id") == SWITCH
        }


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    made = Rack(tmp_path_factory.mktemp("a"))
    made("sim", "up", "--detach")
    yield made
    made("sim", "down")


def test_a_critical_alarm_reaches_the_operator_and_its_end_as_well(rack):
    rack("sim", "fault", SWITCH, "alarm")
    said = rack("check", "--textfile", str(rack.metrics_file), code=2)
    told = f"1 of 1 devices failed ({SWITCH}: CRITICAL alarm: {PSU} (psu/1))"
    assert said.startswith(f"LUMCTL CRITICAL - switched: {told}")
    metrics = rack.metrics()
    assert (metrics["lumctl_device_alarms critical"], metrics["lumctl_device_alarms major"]) == (1, 0)
    assert metrics["lumctl_finding_since_timestamp_seconds device.alarm"] > 0
    assert 20 < metrics["lumctl_device_temperature_celsius"] < 50
    assert metrics["lumctl_device_port_power_dbm 0"] > -20

    explained = json.loads(rack("health", "explain", SWITCH, "-o", "json"))
    (about,) = explained["explanations"]
    assert (about["state"], about["findings"][0]["rule"]) == ("failed", "device.alarm")
    assert about["findings"][0]["line"]["origin"].startswith("the device's own alarm")
    readings = {r["name"]: r["value"] for rule in about["rules"] for r in rule["readings"]}
    assert readings["alarms"] == f"CRITICAL {PSU}"
    assert explained["history"][-1]["rules"] == ["device.alarm"]
    (shown,) = json.loads(rack("device", "show", SWITCH, "-o", "json"))["devices"]
    assert (shown["state"], shown["findings"][0]["rule"], shown["alarms"][0]["text"]) == ("failed", "device.alarm", PSU)

    rack("sim", "clear", SWITCH)
    assert rack("check", "--textfile", str(rack.metrics_file)).startswith("LUMCTL OK")
    metrics = rack.metrics()
    assert metrics["lumctl_device_alarms critical"] == 0
    assert "lumctl_finding_since_timestamp_seconds device.alarm" not in metrics


def test_an_alarm_opens_a_case_that_ends_with_it_and_heat_another(simulated):
    site, fault = simulated
    for words, rule in ((("alarm", 2.0), "device.alarm"), (("overheat", None), "device.temperature")):
        fault(*words)
        (case,) = cases_of(site.observe().report).values()
        assert (case.component, case.rule, case.state.value) == (SWITCH, rule, "degraded")
        fault()
        assert cases_of(site.observe().report) == {}


def test_a_device_that_stops_answering_its_alarms_is_no_longer_ok(simulated, monkeypatch):
    def cut(_driver):
        raise DeviceUnreachableError("the session was cut")

    monkeypatch.setattr(SimSwitch, "read_alarms", cut)
    site, _ = simulated
    seen = site.observe()
    assert seen.report.devices[SWITCH].state.value == "unknown"
    assert "the session was cut" in seen.report.devices[SWITCH].findings[0].evidence


@pytest.fixture
def simulated(rack, monkeypatch):
    """A site on the running simulator, and a way to set a fault of the switch (without arguments: to heal it)."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, rack.environment[name])
    inventory = load_inventory(rack.inventory)
    control = Path(sim_endpoints(inventory).devices[SWITCH].address.removeprefix("unix:"))

    def fault(kind: str = "", value: float | None = None) -> None:
        if kind:
            ask(control, "fault", component=SWITCH, kind=kind, value=value)
        else:
            ask(control, "clear", component=SWITCH)

    with Site(inventory, "sim") as site:
        yield site, fault
    fault()
