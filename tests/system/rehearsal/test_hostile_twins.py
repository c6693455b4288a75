"""Plug-ins whose driver and twin do not get along, in one rack with a mesh at work: each costs its own device only."""

import json
from pathlib import Path

import pytest
from third_party import install, shell

from lumctl.inventory.load import example

pytestmark = pytest.mark.timeout(300)

CALLS = {
    "refuses": "ask the owner first",
    "hangs": "commit of refused-hangs has not returned within",
    "deaf": "[ssl: wrong_version_number]; nothing was sent",
}
"""By driver, what is said of its device."""
TWINS = {
    "twin-raises": "twin 'twin-raises' of acme-lab 2.5 failed: RuntimeError: no licence",
    "twin-hangs": "twin 'twin-hangs' of acme-lab 2.5 did not start in time",
}


def test_each_costs_its_own_device(tmp_path: Path, runtime: str) -> None:
    classes = {name: "".join(part.capitalize() for part in name.split("-")) for name in CALLS}
    packages = install(
        tmp_path,
        "[lumctl.drivers]\n"
        + "".join(f"{name} = acme_lab.hostile:{of}\n" for name, of in classes.items())
        + "".join(f"{name} = acme_lab.driver:AcmeMesh\n" for name in (*TWINS, "prints"))
        + "[lumctl.twins]\n"
        + "".join(f"{name} = acme_lab.twin:acme\n" for name in CALLS)
        + "twin-raises = acme_lab.twin:broken\ntwin-hangs = acme_lab.twin:hanging\nprints = acme_lab.twin:printing\n",
    )
    path = tmp_path / "rack.yaml"
    devices = "".join(
        f"  - {{id: refused-{name}, kind: mesh, driver: {name}, address: '{name}.example:1', "
        "geometry: {columns: 2, rows: 1}, timeout_s: 0.5}\n"
        for name in (*CALLS, *TWINS)
    )
    text = example("prototype").read_text().replace("driver: smartlight", "driver: prints")
    assert "# Published binding" in text
    path.write_text(text.replace("# Published binding", f"{devices}\n# Published binding", 1))
    with shell(path, packages, runtime) as lumctl:
        up = lumctl("sim", "up", "--detach", code=3)
        for name, said in CALLS.items():
            begins = f"refused-{name} is not programmed: "
            line = next((row for row in up.stderr.splitlines() if row.startswith(begins)), up.stderr)
            assert said in line
            assert f"driver '{name}' of acme-lab 2.5" in line
        for name, said in TWINS.items():
            assert f"refused-{name} does not answer: {said}" in up.stderr
        assert (
            f"the simulator started without refused-twin-raises, refused-twin-hangs, refused-{next(iter(CALLS))}"
            in (up.stderr)
        )
        status = json.loads(lumctl("status", "-o", "json", code=3).stdout)
        assert {each["state"] for each in (*status["circuits"], *status["accelerators"])} == {"ok"}
        assert len(status["circuits"]) == 6
        states = {each["id"]: each["state"] for each in status["devices"]}
        assert states["mesh"] == "ok"
        assert {states[f"refused-{name}"] for name in ("deaf", *TWINS)} == {"failed"}, "nothing answers there"
        lumctl("sim", "fault", "s1-gpu0", "gpu-lost")
        plan = lumctl("swap", "plan", "finetune", "--failed", "s1-gpu0", "-o", "name").stdout.strip()
        lumctl("swap", "apply", plan, "--yes")


@pytest.mark.parametrize(
    ("driver", "code", "said"),
    [
        ("raises", 3, "commit of mesh raised KeyError: 'receipt'"),
        ("lies", 3, "the device was read back and reports none of the change"),
        ("wrong-answer", 0, ""),
    ],
)
def test_what_the_device_shows_afterwards_decides(
    tmp_path: Path, runtime: str, driver: str, code: int, said: str
) -> None:
    """A driver that made the change and then answered nonsense has made it: the mesh is read, and carries the job."""
    with shell(*on_the_prototype(tmp_path, driver), runtime) as lumctl:
        up = lumctl("sim", "up", "--detach", code=code)
        assert said in up.stderr
        assert ("mesh is not programmed: driver" in up.stderr) is (code == 3)
        assert json.loads(lumctl("sim", "status", "-o", "json").stdout)["running"]
        status = json.loads(lumctl("status", "-o", "json", code=4 if code else 0).stdout)
        assert ({each["state"] for each in status["circuits"]} == {"ok"}) is (code == 0)


def test_in_the_foreground_it_serves_and_the_exit_code_says_so_at_the_end(tmp_path: Path, runtime: str) -> None:
    with shell(*on_the_prototype(tmp_path, "deaf"), runtime) as lumctl, lumctl.begun("sim", "up") as up:
        for line in up.stderr:
            if "runs (pid" in line:
                break
        lumctl("status", code=4)
        lumctl("sim", "down")
        assert up.wait(30) == 3
        assert "the simulator started without mesh" in up.stderr.read()


def on_the_prototype(folder: Path, driver: str) -> tuple[Path, Path]:
    """An inventory whose only mesh has this driver, and the folder of its package."""
    of = "".join(part.capitalize() for part in driver.split("-"))
    points = f"[lumctl.drivers]\n{driver} = acme_lab.hostile:{of}\n[lumctl.twins]\n{driver} = acme_lab.twin:acme\n"
    path = folder / "rack.yaml"
    path.write_text(example("prototype").read_text().replace("driver: smartlight", f"driver: {driver}"))
    return path, install(folder, points)
