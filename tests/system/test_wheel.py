"""The built wheel, installed apart from the checkout: editable installs see files that a wheel may lack."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from lumctl import __version__

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.name for path in (ROOT / "plugins").glob("lumctl_*"))
ADDED = ("lumctl/examples/", "lumctl/templates/")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built without a network."""
    folder = tmp_path_factory.mktemp("dist")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, check=True, capture_output=True, text=True)
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A virtual environment that holds the wheel; its dependencies are borrowed from this one, the checkout is not."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    context = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    # A .pth line adds a folder without reading the .pth files in it, so the editable install stays out.
    (context / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(installed, *arguments, **more):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LUMCTL_"))}
    done = subprocess.run(
        [installed / "bin" / "lumctl", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=installed,
        env=environment | more,
    )
    return done.stdout


def test_it_holds_everything_that_a_user_needs(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    data = f"lumctl-{__version__}.data/data/share/man"
    examples = {f"lumctl/examples/{path.name}" for path in (ROOT / "inventories").iterdir()}
    pages = {f"{data}/man{path.suffix[1:]}/{path.name}" for path in (ROOT / "man").iterdir()}
    assert examples | pages <= names
    for package in ("lumctl", *PLUGINS):
        assert f"{package}/__init__.py" in names


def test_it_holds_every_file_of_the_packages_and_nothing_else(wheel):
    packages = [(ROOT, "lumctl"), *((ROOT / "plugins", plugin) for plugin in PLUGINS)]
    here = {
        path.relative_to(base).as_posix()
        for base, package in packages
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(("lumctl-", *ADDED))}
    assert names == here


def test_it_runs_away_from_the_checkout(installed):
    assert run(installed, "--version") == f"lumctl {__version__}\n"
    where = "import lumctl, lumctl_smartlight; print(lumctl.__file__, lumctl_smartlight.__file__)"
    python = [installed / "bin" / "python", "-P", "-c", where]
    found = subprocess.run(python, check=True, capture_output=True, text=True, cwd=installed).stdout.split()
    assert all(Path(path).is_relative_to(installed) for path in found)


def test_the_demo_runs_away_from_the_checkout(installed, tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    told = json.loads(
        run(installed, "demo", "-q", "-o", "json", XDG_STATE_HOME=tmp_path, XDG_RUNTIME_DIR=tmp_path / "run")
    )
    assert told["replay_identical"]
    assert [phase["name"] for phase in told["stages"]] == ["up", "program", "read", "fault", "plan", "swap", "replay"]
    assert Path(told["runbook"]).is_relative_to(tmp_path)


def test_its_drivers_are_found_and_load(installed):
    shown = run(installed, "plugin", "list", "--check")
    assert "failed" not in shown
    assert "smartlight" in shown


def test_its_pages_lie_where_man_looks(installed):
    assert (installed / "share" / "man" / "man1" / "lumctl.1").is_file()
    assert (installed / "share" / "man" / "man5" / "lumctl-inventory.5").is_file()


@pytest.mark.parametrize("example", ["prototype", "rack64", "switched"])
def test_its_examples_are_valid(installed, example):
    context = Path(sysconfig.get_path("purelib", vars={"base": str(installed)}))
    run(installed, "inventory", "validate", "-i", str(context / "lumctl" / "examples" / f"{example}.yaml"))
