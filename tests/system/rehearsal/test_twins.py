"""Rehearsals with third-party devices: on the plug-in's twin, on a generic device, or without one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from third_party import Lumctl, install, shell

from lumctl.devices.endpoints import sim_runtime_folder
from lumctl.inventory.load import example
from lumctl.sim.client import ask
from lumctl.sim.runtime import CONTROL_SOCKET

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A folder with the plug-in in it, installed: its driver and two twins, one for a driver of its own."""
    return install(
        tmp_path_factory.mktemp("packages"),
        "[lumctl.drivers]\nacme = acme_lab.driver:AcmeMesh\nacme-old = acme_lab.driver:AcmeMesh\n"
        "acme-bare = acme_lab.driver:AcmeMesh\n"
        "[lumctl.twins]\nacme = acme_lab.twin:acme\nacme-old = acme_lab.twin:broken\n",
    )


LAB = """\
  - {id: bare, rack: lab, kind: mesh, driver: acme-bare, address: "a.example:1", geometry: {columns: 2, rows: 1}}
  - {id: ocs, rack: lab, kind: switch, driver: nobody-knows, address: "b.example:1", port_count: 8, input_count: 4}
  - {id: old, rack: lab, kind: mesh, driver: acme-old, address: "c.example:1", geometry: {columns: 2, rows: 1}}

"""
"""A second rack: one device's driver has no twin, another's is not installed, one twin is broken."""


@pytest.fixture
def lumctl(tmp_path, packages, runtime) -> Iterator[Lumctl]:
    """lumctl on the prototype with an Acme mesh, and the lab; each call states the expected exit code."""
    path = tmp_path / "rack.yaml"
    text = example("prototype").read_text().replace("driver: smartlight", "driver: acme\n    rack: prototype")
    text = text.replace("racks:\n", "racks:\n  lab:\n").replace("  - name: s", "  - rack: prototype\n    name: s")
    path.write_text(text.replace("# Published binding", LAB + "# Published binding", 1))
    with shell(path, packages, runtime) as run:
        yield run


@pytest.fixture
def control(runtime, tmp_path) -> Path:  # noqa: ARG001 - it decides where that is
    """The control socket of its simulator."""
    return sim_runtime_folder(tmp_path / "rack.yaml") / CONTROL_SOCKET


def test_any_inventory_is_rehearsed_and_what_stands_in_or_is_missing_is_said(lumctl, control) -> None:
    up = lumctl("sim", "up", "--detach", "-o", "json", code=3)
    assert [line for line in up.stderr.splitlines() if "replaces it" in line] == [
        "bare: driver 'acme-bare' has no twin; a generic mesh replaces it, with every capability of sim-mesh",
        "ocs: driver 'nobody-knows' has no twin; a generic switch replaces it, with every capability of sim-switch",
    ]
    why = "twin 'acme-old' of acme-lab 2.5 failed: RuntimeError: no licence for old at 127.0.0.1\\x1b[2J"
    assert [line for line in up.stderr.splitlines() if "does not answer: " in line] == [f"old does not answer: {why}"]
    assert "the simulator started without old\n" in up.stderr
    assert "hint: test the driver on its simulated device: lumctl plugin check acme-old" in up.stderr
    assert "\x1b" not in up.stderr
    served = {each["id"]: (each["served"], each["stand_in"]) for each in json.loads(up.stdout)["devices"]}
    assert served == {
        "mesh": (True, None),
        "bare": (True, "sim-mesh"),
        "ocs": (True, "sim-switch"),
        "old": (False, None),
    }
    listed = json.loads(lumctl("device", "list", "-o", "json", code=3).stdout)
    states = {each["id"]: each["state"] for each in listed["devices"] if each["id"] in served}
    assert states.pop("old") != "ok"
    assert set(states.values()) == {"ok"}
    ask(control, "fault", component="s1-gpu0", kind="gpu-lost")
    ask(control, "fault", component="mesh", kind="slow-commit", value=0.3)
    plan = json.loads(lumctl("swap", "plan", "finetune", "--failed", "s1-gpu0", "-o", "json").stdout)
    swap = lumctl("swap", "apply", plan["id"], "--yes", "-o", "json")
    assert "mesh is still at work" in swap.stderr
    done = json.loads(swap.stdout)
    assert done["outcome"] == "done"
    assert {proof["circuit"] for proof in done["verified"]} == {each["id"] for each in plan["circuits"]["add"]}
    lumctl("fabric", "apply", "--rack", "prototype", "--rewrite", "--yes")
