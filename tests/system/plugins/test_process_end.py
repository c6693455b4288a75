"""Whatever a driver does or leaves behind, each command ends: by itself, by Ctrl-C, and with its exit code.

Commands run as processes of their own, on a rack whose one host does not answer and whose devices are in memory.
"""

import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import wrong_drivers
from said import PATIENCE_S, Said
from terminals import terminal

UNREACHABLE, UNHEALTHY, INTERRUPTED = 3, 4, 130
LINGERING = sorted(wrong_drivers.LINGERING)
CRASHING = sorted(wrong_drivers.CRASHING)
HANGS = ("hangs-at-import", "hangs-at-opening", "hangs", "hangs-at-capabilities", "mesh-hangs-at-close")
WRITING = ("hangs-at-stage", "hangs-at-commit")
COMMANDS = ("status", "check", "device list", "device show DEVICE", "plugin doctor DRIVER")
PAIRS = [(driver, command) for driver in HANGS for command in COMMANDS]
SAMPLE = random.Random(6).sample(PAIRS, 6)  # noqa: S311 - chosen alike each time


class Bench:
    """A rack of meshes in memory, a mesh of every driver that is named."""

    def __init__(self, folder: Path) -> None:
        wrong_drivers.install(folder / "lib")
        (folder / "run").mkdir(mode=0o700)
        self.folder = folder
        self.marks = folder / "marks"
        os.mkfifo(self.marks)
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(folder / "lib"),
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LUMCTL_INVENTORY": str(folder / "rack.yaml"),
            "LANG": "C.UTF-8",
        }

    def install(self, *drivers: str) -> None:
        """Let the rack have a mesh ``x-DRIVER`` for each of these."""
        meshes = "".join(
            f"  - {{id: x-{name}, kind: mesh, driver: {name}, address: '{name}.memory:1', "
            "geometry: {shape: square, columns: 2, rows: 2}, timeout_s: 0.5}\n"
            for name in drivers
        )
        (self.folder / "rack.yaml").write_text(
            "lumctl: 1\nracks: {lab: {}}\nhosts:\n  - {name: h1, address: 127.0.0.1, ssh: {port: 9}}\n"
            f"devices:\n{meshes}"
        )

    @contextmanager
    def running(self, *words: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
        """A command with pipes for its output; what it leaves behind is killed in the end."""
        with subprocess.Popen(
            [sys.executable, "-m", "lumctl", *words],
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def __call__(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """The exit code and the output of a command, once nobody holds that open any more."""
        with self.running(*words, **variables) as process:
            out, err = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in err
        return process.returncode, out, err

    @contextmanager
    def marked(self) -> Iterator[int]:
        """What drivers write to when they have come so far; poll it."""
        descriptor = os.open(self.marks, os.O_RDONLY | os.O_NONBLOCK)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def await_mark(self, marked: int) -> None:
        """Wait until a driver has come so far."""
        waiting = select.poll()
        waiting.register(marked, select.POLLIN)
        assert waiting.poll(PATIENCE_S * 1000), "no driver was called"


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:  # the path of a socket must be short
        yield Bench(Path(folder))


@pytest.mark.parametrize("driver", LINGERING)
def test_nothing_that_a_driver_leaves_behind_holds_up_the_end(bench: Bench, driver: str) -> None:
    bench.install(driver)
    code, out, _ = bench("device", "list", "-o", "json")
    (device,) = json.loads(out)["devices"]
    assert (code, device["state"], device["says"]) == (0, "ok", "made-up mesh of 12 PUCs")


@pytest.mark.parametrize(
    ("words", "ends"),
    [("status -o json", UNHEALTHY), ("check -o json", 2), (f"device show x-{LINGERING[0]} -o json", 0)],
)
def test_all_that_they_leave_together_changes_no_output_and_no_exit_code(bench: Bench, words: str, ends: int) -> None:
    bench.install("right-mesh", *LINGERING)
    code, out, _ = bench(*words.split())
    assert code == ends
    assert json.loads(out)


@pytest.mark.parametrize("words", ["watch --interval 0.2 --listen none", "gateway run lab --listen {}/lab.sock"])
def test_daemons_end_by_sigterm(bench: Bench, words: str) -> None:
    bench.install(*LINGERING)
    command = words.format(bench.folder / "run").split()
    with bench.marked() as marked, bench.running(*command, WRONG_DRIVERS_MARK=str(bench.marks)) as process:
        said = Said(process.stderr)
        if command[0] == "gateway":
            said.hear("serving rack lab")
            code, out, _ = bench("device", "list", "-o", "json", LUMCTL_GATEWAY=command[-1])
            assert (code, {device["state"] for device in json.loads(out)["devices"]}) == (0, {"ok"})
        bench.await_mark(marked)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        said.hear("ended")
        said.end()


@pytest.mark.parametrize("driver", CRASHING)
def test_a_driver_that_ends_the_process_of_the_gateway_ends_no_command(bench: Bench, driver: str) -> None:
    bench.install(driver, "right-mesh")
    socket = str(bench.folder / "run" / f"{driver}.sock")
    with bench.running("gateway", "run", "lab", "--listen", socket) as gateway:
        Said(gateway.stderr).hear("serving rack lab")
        code, _, _ = bench("status", LUMCTL_GATEWAY=socket)
        assert code in {UNREACHABLE, UNHEALTHY}  # the gateway may end before it has answered for the other mesh
        gateway.wait(PATIENCE_S)
    code, out, _ = bench("device", "list", "-o", "json", LUMCTL_GATEWAY=socket)
    assert code == UNREACHABLE
    for device in json.loads(out)["devices"]:
        assert device["state"] != "ok"
        assert f"the gateway of rack lab at {socket} does not answer" in str(device)


def test_the_dashboard_ends_by_a_key(bench: Bench) -> None:
    bench.install(*LINGERING)
    with terminal([sys.executable, "-m", "lumctl", "top", "--interval", "0.5"], bench.environment) as top:
        top.press("t", "q quit")
        top.see_lines(len(LINGERING), "degraded", " x-")  # their temperature is too high
        top.press("q", "q quit")
        assert top.code() == 0


@pytest.mark.parametrize(("driver", "command"), PAIRS if os.environ.get("LUMCTL_CAMPAIGN") else SAMPLE)
def test_ctrl_c_ends_a_command_whose_driver_hangs(bench: Bench, driver: str, command: str) -> None:
    bench.install(driver, "right-mesh")
    words = command.replace("DEVICE", f"x-{driver}").replace("DRIVER", driver).split()
    with bench.marked() as marked, bench.running(*words, WRONG_DRIVERS_MARK=str(bench.marks)) as process:
        bench.await_mark(marked)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == INTERRUPTED, err
    assert err.splitlines()[-1] == "lumctl: interrupted"
    assert "Traceback" not in err
