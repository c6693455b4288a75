"""Starting and ending: what is left behind is nothing, whatever happens."""

import errno
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked_commands import run_lumctl

from lumctl.devices.endpoints import sim_runtime_folder
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.sim import client
from lumctl.sim.launch import launch
from lumctl.sim.runtime import running_pid

LUMCTL = [sys.executable, "-m", "lumctl"]


@pytest.fixture(autouse=True)
def private(tmp_path_factory, monkeypatch) -> Path:
    """A runtime folder of this test's own, so that nobody else's simulator is met."""
    folder = tmp_path_factory.mktemp("r")
    folder.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("LUMCTL_STATE", str(folder / "state"))
    return folder


@pytest.fixture
def inventory():
    return load_inventory(example("prototype"))


def gone(process_id: int, within_s: float = 10) -> bool:
    """Wait for the end of a process that is not our child."""
    try:
        handle = os.pidfd_open(process_id)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)


def lumctl(*words: str) -> subprocess.CompletedProcess[str]:
    return run_lumctl(*words, env=os.environ)


def test_it_leaves_nothing_behind(inventory):
    with launch(inventory, tied=True) as sim:
        folder = sim.folder
        assert folder.stat().st_mode & 0o777 == 0o700
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes == dict.fromkeys(modes, 0o600)
        assert {"sim.json", "client_key", "known_hosts", "control.sock"} <= set(modes)
    assert not folder.exists()
    with pytest.raises(UnreachableError):
        sim.endpoints()


def test_one_that_cannot_be_started_leaves_no_file_open(inventory, monkeypatch):
    def fails(*_words, **_how):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", fails)
    before = {*Path("/proc/self/fd").iterdir()}
    with pytest.raises(BlockingIOError):
        launch(inventory, tied=True)
    assert {*Path("/proc/self/fd").iterdir()} <= before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_it_cleanly(inventory, number):
    with launch(inventory) as sim:
        sim.process.send_signal(number)
        assert sim.process.wait(10) == 0
        assert not sim.folder.exists()


def test_a_second_one_of_the_same_inventory_is_refused(inventory):
    with launch(inventory, tied=True) as sim:
        with pytest.raises(RefusedError, match=f"already runs .*pid {sim.process.pid}") as refused:
            launch(inventory, tied=True)
        assert "sim down" in refused.value.hint
        assert running_pid(sim.folder) == sim.process.pid
        assert client.ask(sim.folder / "control.sock", "status")["faults"] == []


def test_what_a_killed_one_left_is_cleaned_at_the_next_start(inventory):
    first = launch(inventory, tied=True)
    first.process.kill()
    first.process.wait()
    assert (first.folder / "sim.json").exists()
    with pytest.raises(UnreachableError, match="has ended"):
        first.endpoints()
    assert running_pid(first.folder) is None
    with launch(inventory, tied=True) as second:
        assert client.ask(second.folder / "control.sock", "status")["runtime"]["pid"] == second.process.pid
    assert not first.folder.exists()
    first.stop()


def test_a_tied_one_dies_with_its_parent():
    script = (
        "import sys; from pathlib import Path; from lumctl.inventory.load import load_inventory;"
        "from lumctl.sim.launch import launch;"
        "sim = launch(load_inventory(Path(sys.argv[1])), tied=True); print(sim.process.pid, flush=True); input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(example("prototype"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    assert gone(child)
    assert not sim_runtime_folder(example("prototype")).exists()


def test_a_folder_that_others_may_enter_is_refused(inventory, private):
    folder = private / "open"
    folder.mkdir(mode=0o755)
    with pytest.raises(RefusedError, match="not a private folder"):
        launch(inventory, folder=folder)
    assert folder.exists()


def test_files_of_others_in_the_folder_are_left_alone(inventory, private):
    folder = private / "mine"
    folder.mkdir(mode=0o700)
    (folder / "notes.txt").write_text("mine")
    with launch(inventory, folder=folder, tied=True):
        pass
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_path_too_long_for_a_socket_is_said(inventory, private):
    with pytest.raises(UsageError, match="too long a path"):
        launch(inventory, folder=private / ("x" * 120))
    assert list(private.iterdir()) == []


def test_an_inventory_changed_meanwhile_is_refused(tmp_path):
    copy = tmp_path / "rack.yaml"
    copy.write_text(example("prototype").read_text())
    inventory = load_inventory(copy)
    copy.write_text(copy.read_text() + "\n# later\n")
    with pytest.raises(RefusedError, match="was changed"):
        launch(inventory)


def test_ending_while_connections_are_open_does_not_wait_for_them(simulate):
    sim = simulate("prototype")
    at = sim.endpoints.hosts["s0"]
    with socket.create_connection((at.address, at.ssh.port), timeout=10) as connection:
        assert connection.recv(4) == b"SSH-"
        started = time.monotonic()
        sim.process.stop()
        assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b"[1]\n", b'{"do": "fly"}\n', b'{"do": "fault"}\n', b"\xff\n", b"x" * 70_000 + b"\n"]
)
def test_the_control_socket_takes_any_nonsense(prototype_sim, line):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(prototype_sim.control))
        try:
            connection.sendall(line)
            said = connection.makefile("rb").read()
        except (BrokenPipeError, ConnectionResetError):
            said = b""
    assert not said or "error" in json.loads(said)
    assert client.ask(prototype_sim.control, "status")["runtime"]["pid"]


def test_the_control_socket_does_nothing_on_an_incomplete_request(prototype_sim):
    line = json.dumps({"do": "fault", "component": "s0-gpu0", "kind": "overheat", "value": 99}).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(prototype_sim.control))
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert client.ask(prototype_sim.control, "status")["faults"] == []


def test_the_words_of_the_command_line():
    inventory = ["-i", str(example("prototype"))]
    assert lumctl("sim", "status", *inventory).stdout.startswith("no simulator of ")
    assert lumctl("sim", "fault", "s0", "hung-smi", *inventory).returncode == 3
    assert lumctl("sim", "down", *inventory).returncode == 0

    up = lumctl("sim", "up", "--detach", "--dark", *inventory)
    assert (up.returncode, up.stdout) == (0, ""), up.stderr
    again = lumctl("sim", "up", "--detach", "--dark", *inventory)
    assert (again.returncode, again.stdout) == (5, "")
    assert "already runs" in again.stderr

    lumctl("sim", "fault", "s0-gpu0", "overheat", "--value", "99", *inventory)
    wrong = lumctl("sim", "fault", "s0", "gpu-lost", *inventory)
    assert wrong.returncode == 2
    assert "s0-gpu0" in wrong.stderr
    found = json.loads(lumctl("sim", "status", "-o", "json", *inventory).stdout)
    assert (found["schema"], found["running"]) == ("lumctl/sim/v1", True)
    assert [host["id"] for host in found["hosts"]] == ["s0", "s1", "s2", "s3"]
    assert [(f["component"], f["kind"], f["value"]) for f in found["faults"]] == [("s0-gpu0", "overheat", 99)]
    assert "overheat (99)" in lumctl("sim", "status", *inventory).stdout
    assert "overheat is cleared" in lumctl("sim", "clear", *inventory).stderr

    down = lumctl("sim", "down", *inventory)
    assert down.returncode == 0
    assert gone(found["pid"], within_s=0), "it has ended when the command says so"
    assert not sim_runtime_folder(example("prototype")).exists()


def test_in_the_foreground_it_ends_with_ctrl_c():
    words = [*LUMCTL, "sim", "up", "--dark", "-o", "json", "-i", str(example("prototype"))]
    # A shell that starts us in the background has SIGINT ignored, and children inherit that.
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - no threads here
    ) as process:
        try:
            assert "runs (pid" in process.stderr.readline()
            while not process.stdout.readline().startswith("}"):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    assert (out, len(err.splitlines())) == ("", 1)
    assert not sim_runtime_folder(example("prototype")).exists()


def test_no_simulator_is_one_line(private):
    with pytest.raises(DeviceUnreachableError, match="no simulator answers"):
        client.ask(private / "nothing.sock", "status")


def test_who_asks_for_sim_faults_gets_the_commands_that_list_and_clear_them(inventory):
    file = str(inventory.path)
    with launch(inventory, tied=True) as sim:
        sim.inject("s1-gpu0", "gpu-lost")
        sim.inject("s1", "slow-host", 1.0)
        for words in (("-i", file, "sim", "faults"), ("sim", "faults", f"--inventory={file}")):
            refused = lumctl(*words)
            assert refused.returncode == 2
            listed, cleared = re.findall(r"lumctl (-i \S+ sim [^;\n]+)", refused.stderr)
        shown = lumctl(*listed.split())
        assert shown.returncode == 0
        assert "gpu-lost" in shown.stdout
        done = lumctl(*cleared.split())
        assert done.stderr.count("is cleared") == 2
        assert client.ask(sim.folder / "control.sock", "status")["faults"] == []


def test_all_faults_are_not_cleared_where_a_component_is_named(inventory):
    file = str(inventory.path)
    with launch(inventory, tied=True) as sim:
        sim.inject("s1-gpu0", "gpu-lost")
        refused = lumctl("sim", "clear", "--all", "s1-gpu0", "-i", file)
        assert refused.returncode == 2
        assert f"lumctl -i {file} sim clear s1-gpu0 or lumctl -i {file} sim clear --all" in refused.stderr
        assert len(client.ask(sim.folder / "control.sock", "status")["faults"]) == 1
