"""``lumctl device`` and ``lumctl plugin doctor`` as a shell runs them, on a simulated mesh and a simulated switch."""

import json
import os
from pathlib import Path

import pytest
from forked_commands import run_lumctl

from lumctl.inventory.load import example


class Shell:
    """Runs lumctl on one inventory's simulator, in a private folder."""

    def __init__(self, folder: Path, name: str) -> None:
        text = example("prototype").with_name(f"{name}.yaml").read_text()
        self.inventory = folder / f"{name}.yaml"
        self.inventory.write_text(text + "\nthresholds: {light_deadline_s: 2.0}\n")
        (folder / "run").mkdir(mode=0o700)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LUMCTL_INVENTORY": str(self.inventory),
            "LUMCTL_TARGET": "sim",
            "LANG": "C.UTF-8",
        }

    def __call__(self, *words, **more):
        return run_lumctl(*words, env={**self.environment, **more})

    def data(self, *words, code=0):
        done = self(*words, "-o", "json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def device(self, name, code=0):
        (shown,) = self.data("device", "show", name, code=code)["devices"]
        return shown


def running(folder: Path, name: str):
    shell = Shell(folder, name)
    up = shell("sim", "up", "--detach")
    assert up.returncode == 0, up.stderr
    yield shell
    assert shell("sim", "down").returncode == 0


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    yield from running(tmp_path_factory.mktemp("mesh"), "prototype")


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    yield from running(tmp_path_factory.mktemp("switched"), "switched")


@pytest.fixture(autouse=True)
def _well(request):
    yield
    for name in {"mesh", "switched"} & set(request.fixturenames):
        request.getfixturevalue(name)("sim", "clear")


def said(done, code):
    """The error of a command: one line, and at most a hint."""
    assert done.returncode == code, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("lumctl: ")]
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


# -- a rack with a mesh --------------------------------------------------------------------------------------------


def test_devices_are_listed_and_asked(mesh):
    document = mesh.data("device", "list")
    assert document["schema"] == "lumctl/device/v1"
    (device,) = document["devices"]
    assert (device["id"], device["kind"], device["driver"], device["state"]) == ("mesh", "mesh", "smartlight", "ok")
    assert "not run on hardware" in device["proven"]
    assert mesh("device", "list", "-o", "name").stdout.split() == ["mesh"]
    assert "PROVEN ON" in mesh("device", "list", "-o", "wide").stdout
    assert "CAPABILITIES" not in mesh("device", "list").stdout


def test_a_device_that_is_down_is_failed_and_shown_by_its_record(mesh):
    assert mesh("sim", "fault", "mesh", "mesh-down").returncode == 0
    (device,) = mesh.data("device", "list", code=3)["devices"]
    assert device["state"] == "failed"
    assert device["problem"]
    shown = mesh.device("mesh", code=3)
    assert shown["read_back"] is None
    assert "certain since fabric-0001" in shown["record"]
    assert said(mesh("device", "set", "mesh/puc/40", "state=cross", "--yes"), 3)


def test_a_mesh_of_the_line_protocol_cannot_be_read_back_and_says_so(mesh):
    shown = mesh("device", "show", "mesh")
    assert "it cannot be read back: recorded as" in shown.stdout
    assert mesh.device("mesh")["read_back"] is False
    assert "s2-gpu0-b rx" in shown.stdout
    carried = mesh.device("mesh/port/12")
    assert [circuit["owner"] for circuit in carried["circuits"]] == ["finetune"]


def test_a_transponder_shows_its_optics_with_thresholds(mesh):
    shown = mesh.device("s0-gpu0-a")
    readings = {reading["name"]: reading for reading in shown["readings"]}
    assert readings["rx_power_dbm"]["unit"] == "dBm"
    assert set(readings["rx_power_dbm"]["limits"]) == {"low_alarm", "low_warning", "high_warning", "high_alarm"}
    assert readings["hears"]["value"] == "s2-gpu0-b"
    assert mesh("sim", "fault", "s2-gpu0-b", "dark").returncode == 0
    dark = {reading["name"]: reading for reading in mesh.device("s0-gpu0-a")["readings"]}["rx_power_dbm"]
    assert (dark["value"], dark["dark"]) == (None, True)


def test_a_cell_that_no_circuit_needs_is_set_replayed_and_taken_back(mesh):
    before = mesh.device("mesh/puc/40")
    assert (before["record"].partition(",")[0], before["circuits"]) == ("bar", [])
    run = mesh.data("device", "set", "mesh/puc/40", "state=cross", "--yes")["run"]
    assert run.startswith("set-")
    assert mesh.device("mesh/puc/40")["record"] == f"cross, certain since {run}"
    assert run in mesh("swap", "list", "-o", "name").stdout.split()
    assert mesh.data("runbook", "replay", run, "--target", "sim")["identical"] is True
    assert mesh("swap", "rollback", run, "--yes").returncode == 0
    assert mesh.device("mesh/puc/40")["record"].startswith("bar, certain since rollback-")
    assert mesh("status").returncode == 0
    assert mesh("runbook", "verify").returncode == 0


def test_a_cell_of_a_circuit_is_refused_with_the_circuits_name(mesh):
    crosses = mesh.data("fabric", "show")["devices"]["mesh"]["crosses"]
    circuits = {circuit["id"] for circuit in mesh.data("fabric", "show")["circuits"]}
    used = next(puc for puc in crosses if mesh.device(f"mesh/puc/{puc}")["circuits"])
    for more in ((), ("--even-if-used",)):
        text = said(mesh("device", "set", f"mesh/puc/{used}", "state=bar", "--yes", *more), 5)
        assert any(circuit in text for circuit in circuits)
    assert mesh.data("fabric", "show")["devices"]["mesh"]["crosses"] == crosses


def test_a_transmitter_of_a_job_is_switched_only_when_that_is_meant(mesh):
    refused = said(mesh("device", "set", "s1-gpu0-a", "transmit=off", "--yes"), 5)
    assert "finetune/0-1:ba of finetune" in refused
    assert "--even-if-used" in refused
    run = mesh.data("device", "set", "s1-gpu0-a", "transmit=off", "--yes", "--even-if-used")["run"]
    transmit = {reading["name"]: reading["value"] for reading in mesh.device("s1-gpu0-a")["readings"]}["transmit"]
    assert transmit is False
    assert mesh("status").returncode == 4
    assert mesh.data("runbook", "replay", run, "--target", "sim")["identical"] is True
    assert mesh("swap", "rollback", run, "--yes").returncode == 0
    assert mesh("status").returncode == 0


def test_nothing_is_done_without_a_yes_or_in_a_dry_run_or_where_it_is_so(mesh):
    runs = mesh("swap", "list", "-o", "name").stdout
    asked = mesh("device", "set", "s3-gpu0-a", "transmit=off")
    assert "--yes" in said(asked, 2)
    assert "set s3-gpu0-a transmit=off (it shows on)" in asked.stdout
    dry = mesh("device", "set", "s3-gpu0-a", "transmit=off", "--dry-run")
    assert (dry.returncode, "dry run" in dry.stderr) == (0, True)
    assert mesh.data("device", "set", "s3-gpu0-a", "transmit=on", "--yes")["outcome"] == "nothing to do"
    assert mesh("swap", "list", "-o", "name").stdout == runs


def test_an_edited_runbook_of_a_setting_is_checked_before_its_first_step(mesh, tmp_path):
    run = mesh.data("device", "set", "s3-gpu0-a", "transmit=off", "--yes")["run"]
    file = tmp_path / "edited.yaml"
    assert mesh("runbook", "export", run, "--out", str(file)).returncode == 0
    assert mesh("swap", "rollback", run, "--yes").returncode == 0
    text = file.read_text()
    for old, new, code, says in (
        ("component: s3-gpu0-a", "component: s9-gpu0-a", 2, "s9-gpu0-a"),
        ("setting: transmit", "setting: state", 2, "no setting 'state'"),
        ("after: false", "after: 5", 2, "5"),
        ("component: s3-gpu0-a", "component: s1-gpu0-a", 5, "would disturb finetune/0-1:ba"),
    ):
        assert old in text, old
        file.write_text(text.replace(old, new))
        for on in (("sim",), ("sim", "--running")):
            assert says in said(mesh("runbook", "replay", str(file), "--target", *on, "--yes"), code)
    file.write_text(text)
    assert mesh.data("runbook", "replay", str(file), "--target", "sim", "--running", "--yes")["identical"] is True
    assert mesh("device", "set", "s3-gpu0-a", "transmit=on", "--yes").returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("show", "mehs"), 2, "did you mean mesh?"),
        (("show", "mesh/puc/82"), 2, "valid numbers: 0 to 81"),
        (("show", "mesh/prot/1"), 2, "mesh/port/N or mesh/puc/N"),
        (("show", "s0"), 2, "gives no controller of its power"),
        (("show", "s0-gpu0"), 2, "its lanes: s0-gpu0-a, s0-gpu0-b"),
        (("set", "mesh", "state=bar"), 2, "mesh/puc/0"),
        (("set", "mesh/port/3", "enabled=true"), 2, "it has no settings"),
        (("set", "mesh/puc/3"), 2, "SETTING=VALUE"),
        (("set", "mesh/puc/3", "state=up"), 2, "expected bar or cross"),
        (("set", "mesh/puc/3", "state"), 2, "state=bar|cross"),
        (("set", "s0-gpu0-a", "frequency_mhz=193.1THz"), 2, "that is 193100000"),
        (("set", "s0-gpu0-a", "frequency_mhz=193100000"), 5, "it supports: transmit"),
    ],
)
def test_wrong_words_are_one_line_with_a_hint(mesh, words, code, says):
    done = mesh("device", *words)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


# -- a rack with a switch, a chassis and controllers of power -------------------------------------------------------


def test_every_device_of_a_switched_rack_is_listed(switched):
    names = switched("device", "list", "-o", "name").stdout.split()
    assert {"ocs", "shelf", "bmc1", "h1-gpu0-a", "h1/power"} <= set(names)
    answers = {each["id"]: each for each in json.loads(switched("device", "list", "-o", "json").stdout)["devices"]}
    assert list(answers) == names
    assert {answers[name]["state"] for name in ("ocs", "bmc1", "h1/power")} == {"ok"}
    assert answers["h1/power"]["part_of"] == "bmc1"


def test_a_port_of_a_switch_is_disabled_and_put_back(switched):
    refused = said(switched("device", "set", "ocs/port/0", "enabled=false", "--yes"), 5)
    assert "of finetune" in refused
    run = switched.data("device", "set", "ocs/port/9", "enabled=false", "--yes")["run"]
    assert switched.device("ocs/port/9")["ports"][0]["enabled"] is False
    assert switched.data("runbook", "replay", run, "--target", "sim")["identical"] is True
    assert switched("swap", "rollback", run, "--yes").returncode == 0
    assert switched.device("ocs/port/9")["ports"][0]["enabled"] is True


def test_a_port_of_a_switch_is_joined_and_put_back(switched):
    run = switched.data("device", "set", "ocs/port/6", "joined=22", "--yes")["run"]
    assert switched.device("ocs/port/22")["ports"][0]["joined"] == 6
    whole = switched.device("ocs")
    assert (whole["read_back"], whole["differences"], len(whole["ports"])) == (True, [], 32)
    assert switched.data("runbook", "replay", run, "--target", "sim")["identical"] is True
    assert switched("swap", "rollback", run, "--yes").returncode == 0
    assert switched.device("ocs/port/6")["ports"][0]["joined"] is None
    assert "of finetune" in said(switched("device", "set", "ocs/port/0", "joined=none", "--yes"), 5)
    circuits = json.loads(switched("status", "-o", "json").stdout)["circuits"]
    assert {circuit["state"] for circuit in circuits} == {"ok"}


def test_a_machine_is_switched_off_and_on_and_reset(switched):
    assert "rank 0 of finetune runs on h1-gpu0" in said(switched("device", "set", "h1", "power=off", "--yes"), 5)
    run = switched.data("device", "set", "h4", "power=off", "--yes")["run"]
    assert {r["name"]: r["value"] for r in switched.device("h4/power")["readings"]}["power"] == "off"
    assert switched("swap", "rollback", run, "--yes").returncode == 0
    assert {r["name"]: r["value"] for r in switched.device("h4/power")["readings"]}["power"] == "on"
    reset = switched.data("device", "set", "h4/power", "power=reset", "--yes")["run"]
    assert "cannot be undone" in said(switched("swap", "rollback", reset, "--yes"), 5)


# -- the doctor ----------------------------------------------------------------------------------------------------


def test_the_doctor_finds_our_drivers_well_and_the_device_answering(mesh):
    done = mesh("plugin", "doctor")
    assert done.returncode == 0, done.stdout
    assert "used by mesh; on target sim it answers" in done.stdout
    one = mesh.data("plugin", "doctor", "smartlight")
    assert {finding["driver"] for finding in one["findings"]} == {"smartlight"}
    assert "did you mean smartlight?" in said(mesh("plugin", "doctor", "smartlihgt"), 2)


def test_the_doctor_tells_of_a_device_that_does_not_answer(mesh):
    assert mesh("sim", "fault", "mesh", "mesh-down").returncode == 0
    done = mesh("plugin", "doctor", "smartlight")
    assert done.returncode == 4
    assert "used by mesh, on target sim: " in done.stdout
    assert "lumctl device show mesh" in done.stdout


def test_a_driver_that_nobody_has_is_an_error_to_validate_and_ill_to_the_doctor(mesh, tmp_path):
    file = tmp_path / "rack.yaml"
    file.write_text(mesh.inventory.read_text().replace("driver: smartlight", "driver: smartlihgt"))
    checked = mesh("inventory", "validate", str(file))
    assert checked.returncode == 2
    assert "driver 'smartlihgt' is not known; did you mean 'smartlight'?" in checked.stderr
    doctor = mesh("-i", str(file), "plugin", "doctor", "--target", "rack")
    assert doctor.returncode == 4
    assert "smartlihgt" in doctor.stdout
    (listed,) = json.loads(mesh("-i", str(file), "device", "list", "--target", "rack", "-o", "json").stdout)["devices"]
    assert (listed["state"], listed["problem"]) == ("unknown", "mesh: no driver 'smartlihgt' is installed")
