"""``lumctl plugin check`` and ``lumctl plugin doctor`` on a package that is installed in a folder."""

import json
import os
import subprocess
import sys

import pytest
import wrong_drivers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The wrong drivers, installed."""
    made = tmp_path_factory.mktemp("site")
    wrong_drivers.install(made)
    return made


@pytest.fixture
def lumctl(folder, tmp_path):
    """Run a command where those drivers are installed."""

    def run(*words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LUMCTL")}
        environment |= {"PYTHONPATH": str(folder), "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "lumctl", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)

    return run


def test_a_wrong_driver_fails_by_its_rule_on_its_twin(lumctl):
    done = lumctl("plugin", "check", "kelvin")
    assert done.returncode == 4, done.stderr
    assert "twin: wrong_drivers.device:twin of wrong-drivers 0.7" in done.stdout
    assert "FAILED units: readings are what the device measures" in done.stdout
    assert "read_temperature() gives 304.65, the device has 31.5 C" in done.stdout
    assert "NOT TESTED the set-up gives no `put_between`" in done.stdout


def test_a_right_driver_passes_whole(lumctl):
    done = lumctl("plugin", "check", "right-switch", "-o", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    (driver,) = document["drivers"]
    assert document["schema"] == "lumctl/plugin-check/v1"
    assert (driver["verdict"], driver["kind"], driver["version"]) == ("passed", "switch", "0.7")
    assert {each["outcome"] for each in driver["tests"]} <= {"passed", "not-applicable"}
    assert sum(each["passed"] for each in driver["rules"]) > 20


def test_without_a_device_the_rest_is_not_tested_and_not_passed(lumctl):
    done = lumctl("plugin", "check", "gives-text", "-o", "json")
    assert done.returncode == 4
    (driver,) = json.loads(done.stdout)["drivers"]
    outcomes = [each["outcome"] for each in driver["tests"]]
    assert "no device" in driver["against"]
    assert outcomes.count("not-tested") > 10
    assert "not-applicable" not in outcomes


def test_a_driver_that_ends_its_process_is_a_failure(lumctl):
    done = lumctl("plugin", "check", "ends-the-process")
    assert done.returncode == 4
    assert "the test process ended (status 9)" in done.stdout


def test_what_is_not_installed_is_told(lumctl):
    done = lumctl("plugin", "check", "kelvn")
    assert done.returncode == 2
    assert "did you mean kelvin?" in done.stderr


def test_the_doctor_judges_what_the_inventory_uses(lumctl, tmp_path):
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(
        "lumctl: 1\nracks: {lab: {}}\nhosts:\n"
        "  - {name: h1, power: bmc1, accelerators: [{id: '{host}-gpu0', model: L4, memory_gib: 24}]}\n"
        "devices:\n  - {id: bmc1, kind: power, driver: right-power, address: 'bmc1.memory:443'}\n"
    )
    done = lumctl("-i", str(inventory), "--target", "rack", "plugin", "doctor", "-o", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    states = {finding["driver"]: finding["state"] for finding in json.loads(done.stdout)["findings"]}
    assert (states["right-power"], states["fails-at-import"], states["smartlight"]) == ("ok", "disabled", "disabled")
    named = lumctl("-i", str(inventory), "plugin", "doctor", "fails-at-import", "-o", "json")
    assert named.returncode == 4
    assert "RuntimeError: this driver cannot be imported" in named.stdout
