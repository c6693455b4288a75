"""A driver package of somebody else: found where it is installed, and missed by its name where it is gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "plugins" / "template" / "mesh"
RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h1
    accelerators:
      - {id: g1, model: X100, memory_gib: 80}
devices:
  - id: m1
    kind: mesh
    driver: example-mesh
    address: 127.0.0.1:1
    geometry: {columns: 3, rows: 2}
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The template's wheel, built without a network, as its author would with `pip wheel`."""
    folder = tmp_path_factory.mktemp("dist")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, folder], cwd=TEMPLATE, check=True, capture_output=True, text=True
    )
    return folder / done.stdout.split()[-1]


@pytest.fixture
def installed(wheel, tmp_path) -> Path:
    """A folder of packages with the wheel in it, beside whatever is installed already."""
    folder = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", folder, wheel], check=True)
    return folder


@pytest.fixture
def rack(tmp_path) -> Path:
    path = tmp_path / "rack.yaml"
    path.write_text(RACK)
    return path


def lumctl(*arguments, packages: Path | None = None, state: Path):
    environment = os.environ | {"XDG_STATE_HOME": str(state), "NO_COLOR": "1"}
    if packages is not None:
        environment["PYTHONPATH"] = str(packages)
    return subprocess.run(
        [Path(sys.executable).with_name("lumctl"), *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )


def test_it_is_found_where_it_is_installed(installed, rack, tmp_path):
    listed = lumctl("plugin", "list", "--check", packages=installed, state=tmp_path)
    line = next(line for line in listed.stdout.splitlines() if line.startswith("example-mesh"))
    assert "lumctl-example" in line
    assert "read-states" in line
    shown = lumctl("-i", str(rack), "device", "list", packages=installed, state=tmp_path)
    assert "m1" in shown.stdout
    assert "Connection refused" in shown.stdout + shown.stderr


def test_where_it_is_gone_the_inventory_that_names_it_gives_one_line(rack, tmp_path):
    refused = lumctl("-i", str(rack), "fabric", "apply", "--yes", state=tmp_path)
    error, hint = refused.stderr.strip().splitlines()
    assert refused.returncode == 3
    assert error == "lumctl: m1: no driver 'example-mesh' is installed"
    assert "smartlight" in hint
    checked = lumctl("-i", str(rack), "inventory", "validate", state=tmp_path)
    assert checked.returncode == 2
    assert "driver 'example-mesh' is not known" in checked.stderr
    shown = lumctl("-i", str(rack), "device", "show", "m1", state=tmp_path)
    assert "no driver 'example-mesh' is installed" in shown.stdout
