"""A rack full of drivers that raise, hang, print and lie beside a rack at work: it costs their own devices only."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import wrong_drivers
from said import PATIENCE_S, Said
from terminals import terminal

from lumctl.inventory.load import example

HOSTILE = (
    "divides-by-zero",
    "recurses-for-ever",
    "exits",
    "interrupts",
    "ends-the-process",
    "hangs",
    "fails-at-close",
    "fails-at-opening",
    "hangs-at-opening",
    "clears-the-screen",
    "gives-none",
    "error-without-text",
    "forgets-capabilities",
    "prints",
    "fails-at-import",
    "exits-at-import",
    "prints-at-import",
)
DONE, NOT_WELL = frozenset({0}), frozenset({3, 4})
NAMED = frozenset(HOSTILE) - {"clears-the-screen", "prints", "prints-at-import", "fails-at-close"}
"""Those whose device cannot be read because of them."""


class Lab:
    """Commands by calling it, on a simulator."""

    def __init__(self, folder: Path) -> None:
        wrong_drivers.install(folder / "lib")
        (folder / "run").mkdir(mode=0o700)
        text = example("ring4").read_text()
        devices = "".join(
            f"  - {{rack: lab, id: x-{name}, kind: mesh, driver: {name}, address: '{name}.example:1', "
            "geometry: {columns: 2, rows: 2}, timeout_s: 0.5}\n"
            for name in HOSTILE
        )
        for old, new in (
            ("  ring4:\n", "  lab: {}\n  ring4:\n"),
            ("  - name: h", "  - rack: ring4\n    name: h"),
            ("devices:\n  - id: mesh\n", f"devices:\n{devices}  - rack: ring4\n    id: mesh\n"),
            ("jobs:\n  - name: train\n", "jobs:\n  - name: train\n    needs_no_pause: true\n"),
        ):
            assert old in text, old
            text = text.replace(old, new)
        self.folder = folder
        inventory = folder / "rack.yaml"
        inventory.write_text(text)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}},
            "PYTHONPATH": f"{folder / 'lib'}",
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LUMCTL_INVENTORY": str(inventory),
            "LUMCTL_TARGET": "sim",
        }

    def __call__(self, *words: str, ends: frozenset[int] = DONE, **variables: str) -> str:
        """What a command prints to stdout; ``ends`` are the exit codes that it may have."""
        done = subprocess.run(
            [sys.executable, "-m", "lumctl", *words],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode in ends, (words, done.stdout, done.stderr)
        assert "\x1b" not in done.stdout
        return done.stdout

    def data(self, *words: str, ends: frozenset[int] = DONE, **variables: str) -> Any:
        return json.loads(self(*words, "-o", "json", ends=ends, **variables))

    @contextmanager
    def running(self, *words: str) -> Iterator[Said]:
        """A command that continues until the block ends, and what it says to stderr."""
        process = subprocess.Popen(
            [sys.executable, "-m", "lumctl", *words], env=self.environment, stderr=subprocess.PIPE, text=True
        )
        said = Said(process.stderr)
        try:
            yield said
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
            said.end()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:  # the path of a socket must be short
        made = Lab(Path(folder))
        made("sim", "up", "--detach", ends=frozenset({3}))
        yield made
        made("sim", "down")


def judged(status: dict[str, Any]) -> dict[str, str]:
    """The state of every device, and of the rest of the rack at work."""
    return {each["id"]: each["state"] for kind in ("devices", "circuits", "accelerators") for each in status[kind]}


def require_theirs_alone(status: dict[str, Any]) -> None:
    states = judged(status)
    assert {name for name in NAMED if states[f"x-{name}"] == "unknown"} == NAMED
    mine = {name: state for name, state in states.items() if not name.startswith("x-")}
    assert len(mine) > 10
    assert set(mine.values()) == {"ok"}
    told = json.dumps(status)
    for name in NAMED:
        assert f"driver '{name}' of wrong-drivers 0.7" in told


def test_status_shows_all_else_and_names_them(lab: Lab) -> None:
    require_theirs_alone(lab.data("status", ends=NOT_WELL))


def test_what_they_print_breaks_no_output(lab: Lab) -> None:
    asked = lab.data("device", "list", ends=NOT_WELL)
    assert {row["id"] for row in asked["devices"]} >= {f"x-{name}" for name in HOSTILE}
    assert f"{len(NAMED)} of {len(HOSTILE) + 1} devices unknown" in lab("check", ends=frozenset({1, 2, 3}))
    assert "mesh" in lab("device", "show", "mesh")
    assert "driver 'hangs' of wrong-drivers 0.7" in lab("device", "show", "x-hangs", ends=NOT_WELL)


def test_the_dashboard_shows_all_else_and_names_them(lab: Lab) -> None:
    command = [sys.executable, "-m", "lumctl", "top", "--interval", "0.5"]
    with terminal(command, lab.environment, size=(130, 50)) as top:
        top.see("live", "accelerators 6 ok", "x-")
        top.press("t", "q quit")
        top.see("live", "x-hangs ", "6 ok", "4 ok")
        top.see_lines(len(NAMED), "unknown", " x-")
        top.press("4", "4 Findings", anywhere=True)
        top.see(*(f"driver '{name}' of wrong-drivers 0.7" for name in NAMED))
        top.press("2", "2 Accelerators", anywhere=True)
        top.see_lines(6, "ok", "-gpu0")
        top.press("3", "3 Circuits", anywhere=True)
        top.see_lines(4, "ok", "as intended")
        top.press("q", "q quit")
        assert top.code() == 0


def test_through_gateways_it_is_the_same(lab: Lab) -> None:
    sockets = lab.folder / "gateways"
    sockets.mkdir(mode=0o700)
    with (
        lab.running("gateway", "run", "lab", "--listen", str(sockets / "lab.sock")) as first,
        lab.running("gateway", "run", "ring4", "--listen", str(sockets / "ring4.sock")) as second,
    ):
        first.hear("serving rack lab")
        second.hear("serving rack ring4")
        require_theirs_alone(lab.data("status", ends=NOT_WELL, LUMCTL_GATEWAY=str(sockets)))


def test_a_dead_gpu_is_reported_and_replaced_beside_them(lab: Lab) -> None:
    with lab.running("watch", "--interval", "0.2", "--listen", "none") as said:
        said.hear("observing ")
        lab("sim", "fault", "h2-gpu0", "gpu-lost")
        said.hear("h2-gpu0", "failed")
    plan = lab.data("swap", "plan", "train", "--failed", "h2-gpu0")
    lab("swap", "apply", plan["id"], "--yes")
    states = judged(lab.data("status", ends=NOT_WELL))
    assert [name for name, state in states.items() if state != "ok" and not name.startswith("x-")] == ["h2-gpu0"]
