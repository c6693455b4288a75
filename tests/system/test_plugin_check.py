"""``lumctl plugin check`` and ``lumctl plugin doctor`` on a package that is installed in a folder."""

import json
import os
import shutil

import pytest
import wrong_drivers
from forked_commands import run_lumctl

from lumctl.cli.plugin import template


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
        return run_lumctl(*words, env=environment, cwd=tmp_path, timeout=None)

    return run


def test_a_wrong_driver_fails_by_its_rule_on_its_twin(lumctl):
    done = lumctl("plugin", "check", "kelvin")
    assert done.returncode == 4, done.stderr
    assert "twin: wrong_drivers.device:twin of wrong-drivers 0.7" in done.stdout
    assert "FAILED units: readings are what the device measures" in done.stdout
    assert "read_temperature() returns 304.65, but the device has 31.5 C" in done.stdout
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


@pytest.mark.parametrize(
    ("driver", "says"),
    [
        ("fails-at-import", "does not import: RuntimeError: this driver cannot be imported"),
        ("needs-a-library", "it needs acme_optical_line_systems_management_interface_library, which is not installed"),
    ],
)
def test_a_driver_that_does_not_import_fails_with_the_whole_reason(lumctl, driver, says):
    done = lumctl("plugin", "check", driver)
    assert done.returncode == 4, done.stderr
    assert "verdict  FAILED: the driver does not load, so no test was run" in done.stdout
    assert "FAILED loading: the driver loads" in done.stdout
    assert says in done.stdout
    for misleading in ("0 tests passed", "kind None", "no optional capability", "the test process ended"):
        assert misleading not in done.stdout
    document = json.loads(lumctl("plugin", "check", driver, "-o", "json").stdout)
    (checked,) = document["drivers"]
    assert (checked["verdict"], [rule["rule"] for rule in checked["rules"]]) == ("failed", ["loading"])


def test_tests_that_do_not_import_fail_with_the_whole_reason(lumctl, tmp_path):
    tests = tmp_path / "test_mine.py"
    tests.write_text("from acme_optical_line_systems_management_interface_library.twins.switches import Twin\n")
    done = lumctl("plugin", "check", "right-switch", "--tests", str(tests))
    assert done.returncode == 4, done.stderr
    library = "No module named 'acme_optical_line_systems_management_interface_library'"
    assert f"found: test_mine.py: ModuleNotFoundError: {library}" in done.stdout


def test_each_driver_gets_the_outcomes_of_its_own_class(lumctl, folder, tmp_path):
    (folder / "two_switches.py").write_text(
        "from wrong_drivers import RightSwitch\n"
        "class Switch(RightSwitch): pass\n"
        "class FastSwitch(RightSwitch): pass\n"
        "Alias = Switch\n"
    )
    about = folder / "two_switches-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: two-switches\nVersion: 1.0\n")
    points = "usual = two_switches:Switch\nfast = two_switches:FastSwitch\nalias = two_switches:Alias\n"
    (about / "entry_points.txt").write_text(f"[lumctl.drivers]\n{points}")
    tests = tmp_path / "test_both.py"
    tests.write_text(
        "from types import SimpleNamespace\n"
        "import pytest\n"
        "from two_switches import FastSwitch, Switch\n"
        "@pytest.fixture(params=[FastSwitch, Switch])\n"
        "def switch(request): return SimpleNamespace(driver=object.__new__(request.param))\n"
        "def test_one(switch): assert type(switch.driver) is Switch\n"
        "test_one.contract_rule = 'errors'\n"
    )
    for driver, made, verdict in (
        ("usual", "Switch", "passed"),
        ("fast", "FastSwitch", "failed"),
        ("alias", "Switch", "passed"),
    ):
        done = lumctl("plugin", "check", driver, "--tests", str(tests), "-o", "json")
        (checked,) = json.loads(done.stdout)["drivers"]
        assert [each["driver"] for each in checked["tests"]] == [f"two_switches:{made}"]
        assert checked["verdict"] == verdict


def test_a_package_that_offers_a_kind_of_job_control_only_is_told_how_that_is_tested(lumctl, folder):
    source = template("job")
    shutil.copytree(source / "lumctl_example_job", folder / "lumctl_example_job", dirs_exist_ok=True)
    about = folder / "lumctl_example_job-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lumctl-example-job\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lumctl.jobs]\nexample = lumctl_example_job:ExampleJob\n")
    (about / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {}}))
    for name in ("example", "lumctl-example-job", str(source)):
        done = lumctl("plugin", "check", name)
        assert done.returncode == 2
        assert "lumctl-example-job 1.0 offers " in done.stderr
        assert "this command tests drivers only" in done.stderr
        assert f"-m pytest {source / 'tests' / 'test_contract.py'}" in done.stderr
    assert lumctl("plugin", "doctor", "example").returncode == 0  # what the hint names


def test_a_package_without_any_plug_in_is_not_said_to_be_missing(lumctl):
    done = lumctl("plugin", "check", "typer")
    assert done.returncode == 2
    assert "is installed but offers no driver" in done.stderr


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
