"""Accelerators that a probe plug-in reads, over real SSH: the simulator's amd-smi, and a package of somebody else."""

import json
import os
import shutil
import tempfile

import pytest
from forked_commands import run_lumctl

from lumctl.cli.plugin import template
from lumctl.inventory.load import example

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def lumctl(tmp_path):
    """lumctl on the simulator of mi300, with the template's package installed in a folder."""
    packages, runtime = tmp_path / "site", tempfile.mkdtemp(prefix="lumctl-")  # a socket's path must be short
    shutil.copytree(template("probe") / "lumctl_example_probe", packages / "lumctl_example_probe")
    about = packages / "lumctl_example_probe-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lumctl-example-probe\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[lumctl.probes]\nexample-probe = lumctl_example_probe:ExampleProbe\n")
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(example("mi300").read_text())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LUMCTL")} | {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(packages),
        "LUMCTL_STATE": str(tmp_path / "state"),
        "LUMCTL_TARGET": "sim",
        "LUMCTL_INVENTORY": str(inventory),
        "XDG_RUNTIME_DIR": runtime,
    }

    def ran(*words):
        return run_lumctl(*words, env=environment, cwd=tmp_path, timeout=None)

    yield ran
    ran("sim", "down")
    shutil.rmtree(runtime)


def test_faults_of_amd_hosts_show_and_heal(lumctl, tmp_path):
    assert lumctl("sim", "up", "--detach").returncode == 0
    assert lumctl("check").returncode == 0
    for accelerator, fault in (("m1-gpu3", "gpu-lost"), ("m2-gpu1", "ecc"), ("m3-gpu7", "overheat")):
        assert lumctl("sim", "fault", accelerator, fault).returncode == 0
    shown = json.loads(lumctl("status", "-o", "json").stdout)
    states = {each["id"]: each["state"] for each in shown["accelerators"] if each["state"] != "ok"}
    assert states == {"m1-gpu3": "failed", "m2-gpu1": "degraded", "m3-gpu7": "degraded"}
    assert "nvidia-smi" not in json.dumps(shown["hosts"])
    assert lumctl("fleet", "capture", "--out", "taken").returncode == 0
    assert (tmp_path / "taken" / "m1" / "amd-smi.json").is_file()
    captured = lumctl("check", "--from-capture", "taken")
    assert captured.returncode == 2
    assert "m1-gpu3: amd-smi does not list it" in captured.stdout
    lumctl("sim", "clear")
    assert {each["state"] for each in json.loads(lumctl("status", "-o", "json").stdout)["accelerators"]} == {"ok"}


def test_a_package_of_somebody_else_is_found_checked_and_used(lumctl, tmp_path):
    assert "example-probe" in lumctl("plugin", "list").stdout
    checked = lumctl("plugin", "check", "example-probe", "-o", "json")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    (found,) = json.loads(checked.stdout)["probes"]
    assert (found["distribution"], found["version"]) == ("lumctl-example-probe", "1.0")
    folder = template("probe") / "lumctl_example_probe" / "fixtures" / "faults"
    judged = json.loads(lumctl("check", "--from-capture", str(folder), "-o", "json").stdout)
    rules = {finding["rule"] for each in judged["components"] for finding in each["findings"]}
    assert {"gpu.example-probe.halted", "gpu.example-probe.lanes"} <= rules
    rack = tmp_path / "rack.yaml"
    rack.write_text(rack.read_text().replace("probe: amd-smi", "probe: example-probe"))
    assert lumctl("inventory", "validate").returncode == 0
