"""Racks with devices that nobody here knows, rehearsed: with the twin that their plug-in ships, a broken one, or none."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumctl.inventory.examples import example

PLUGIN = Path(__file__).parent / "acme_lab"
Lumctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """A folder with the plug-in in it, installed: its driver and two twins, one for a driver of its own."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(PLUGIN, folder / "acme_lab", ignore=shutil.ignore_patterns("__pycache__"))
    about = folder / "acme_lab-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-lab\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text(
        "[lumctl.drivers]\nacme = acme_lab.driver:AcmeMesh\nacme-old = acme_lab.driver:AcmeMesh\n"
        "acme-bare = acme_lab.driver:AcmeMesh\n"
        "[lumctl.twins]\nacme = acme_lab.twin:acme\nacme-old = acme_lab.twin:broken\n"
    )
    return folder


@contextmanager
def rehearsed(folder: Path, packages: Path, driver: str) -> Iterator[Lumctl]:
    """lumctl on the prototype with this driver for its mesh; each call says which exit code is due."""
    path = folder / "rack.yaml"
    path.write_text(example("prototype").read_text().replace("driver: smartlight", f"driver: {driver}"))
    with tempfile.TemporaryDirectory() as runtime:  # the path of a socket must be short
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(packages),
            "LUMCTL_STATE": str(folder / "state"),
            "LUMCTL_TARGET": "sim",
            "LUMCTL_INVENTORY": str(path),
            "XDG_RUNTIME_DIR": runtime,
        }

        def lumctl(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
            done = subprocess.run(
                [sys.executable, "-m", "lumctl", *words],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == code, done.stderr
            assert "Traceback" not in done.stderr
            return done

        try:
            yield lumctl
        finally:
            lumctl("sim", "down")


def test_a_rack_of_somebody_elses_devices_is_rehearsed_on_the_twin_that_they_ship(tmp_path, packages) -> None:
    with rehearsed(tmp_path, packages, "acme") as lumctl:
        up = lumctl("sim", "up", "--detach")
        assert "stands in" not in up.stderr
        assert "does not answer" not in up.stderr
        shown = json.loads(lumctl("device", "show", "mesh", "-o", "json").stdout)
        assert "acme mesh, 48 PUCs" in json.dumps(shown)
        lumctl("sim", "fault", "s1-gpu0", "gpu-lost")
        lumctl("sim", "fault", "mesh", "slow-commit", "--value", "0.3")
        plan = json.loads(lumctl("swap", "plan", "finetune", "--failed", "s1-gpu0", "-o", "json").stdout)
        swap = lumctl("swap", "apply", plan["id"], "--yes", "-o", "json")
        assert "mesh is still at work" in swap.stderr
        done = json.loads(swap.stdout)
        assert done["outcome"] == "done"
        assert {proof["circuit"] for proof in done["verified"]} == {each["id"] for each in plan["circuits"]["add"]}
        lumctl("fabric", "apply", "--rewrite", "--yes")


def test_without_a_twin_a_generic_device_stands_in_and_that_is_said(tmp_path, packages) -> None:
    with rehearsed(tmp_path, packages, "acme-bare") as lumctl:
        up = lumctl("sim", "up", "--detach", "-o", "json")
        said = [line for line in up.stderr.splitlines() if line.startswith("mesh")]
        assert said == [
            "mesh: driver 'acme-bare' brings no twin; a generic mesh stands in, with every capability of sim-mesh"
        ]
        (mesh,) = (each for each in json.loads(up.stdout)["devices"] if each["id"] == "mesh")
        assert (mesh["served"], mesh["stand_in"]) == (True, "sim-mesh")
        lumctl("fabric", "apply", "--rewrite", "--yes")


def test_a_broken_twin_costs_its_own_device_and_nothing_stands_in_for_it(tmp_path, packages) -> None:
    with rehearsed(tmp_path, packages, "acme-old") as lumctl:
        up = lumctl("sim", "up", "--detach")
        why = "twin 'acme-old' of acme-lab 2.5 failed: RuntimeError: no licence for mesh at 127.0.0.1"
        assert f"mesh does not answer: {why}" in up.stderr
        assert "no circuits are programmed, for mesh does not answer" in up.stderr
        assert "\x1b" not in up.stderr
        assert "stands in" not in up.stderr
        devices = json.loads(lumctl("device", "list", "-o", "json", code=3).stdout)
        states = {each["id"]: each["state"] for each in devices["devices"]}
        assert states.pop("mesh") != "ok"
        assert set(states.values()) == {"ok"}
