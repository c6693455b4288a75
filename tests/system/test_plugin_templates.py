"""Templates for plug-ins: a bare copy of one passes the contract that it claims to keep."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

from lumctl.cli import main
from lumctl.cli.plugin import TEMPLATES, template


def python(*words, folder=None, **variables):
    """Run Python as a user does, without the plug-ins of this test run."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env=clean | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | variables,
    )


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_bare_copy_passes_its_own_tests(kind, tmp_path):
    copy = tmp_path / "copy"
    assert main.run(["plugin", "template", kind, str(copy)]) == 0
    done = python("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", folder=copy)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["mesh", "switch"])
def test_the_driver_is_checked_on_the_twin_that_its_package_offers(kind, tmp_path):
    copy = tmp_path / "copy"
    assert main.run(["plugin", "template", kind, str(copy)]) == 0
    project = tomllib.loads((copy / "pyproject.toml").read_text())["project"]
    about = copy / f"lumctl_example_{kind}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    points = project["entry-points"]
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points[group].items()) for group in points
    )
    (about / "entry_points.txt").write_text(text)
    done = python("-m", "lumctl", "plugin", "check", f"example-{kind}", "-o", "json", PYTHONPATH=str(copy))
    assert done.returncode == 0, done.stdout + done.stderr
    (driver,) = json.loads(done.stdout)["drivers"]
    assert driver["against"].startswith(f"twin: lumctl_example_{kind}.twin:twin")


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_is_for_the_api_of_this_program_and_wires_the_contract(kind):
    source = "".join(path.read_text() for path in sorted(template(kind).glob("lumctl_example_*/*.py")))
    # A sharing policy is a function over plain values, without a version.
    assert kind == "sharing" or re.search(r"^    api_version: ClassVar\[int\] = 1$", source, re.MULTILINE)
    assert f"({kind.capitalize()}Contract):" in (template(kind) / "tests" / "test_contract.py").read_text()


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").write_text("mine")
    assert main.run(["plugin", "template", "mesh", str(tmp_path)]) == 5
    assert "is not empty; nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert main.run(["plugin", "template", "mehs", str(tmp_path / "new")]) == 2
    assert "did you mean mesh?" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_files_are_listed(tmp_path, capsys):
    assert main.run(["plugin", "template", "job", str(tmp_path / "new"), "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["kind"]) == ("lumctl/plugin-template/v1", "job")
    assert str(tmp_path / "new" / "pyproject.toml") in told["files"]
    assert all((tmp_path / file).is_file() for file in told["files"])
