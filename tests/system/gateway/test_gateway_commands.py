"""``lumctl gateway`` as a shell runs it: commands go through it, or nothing is written."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from forked_commands import run_lumctl

from lumctl.inventory.load import example


class Shell:
    """Runs lumctl on the simulator of the prototype, in private folders."""

    def __init__(self, folder):
        inventory = folder / "prototype.yaml"
        inventory.write_text(example("prototype").read_text() + "\nthresholds: {light_deadline_s: 2.0}\n")
        (folder / "run").mkdir(mode=0o700)
        self.socket = folder / "run" / "gw" / "r.sock"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "LUMCTL_INVENTORY": str(inventory),
            "LUMCTL_TARGET": "sim",
            "LANG": "C.UTF-8",
        }

    def __call__(self, *words, **more):
        return run_lumctl(*words, env={**self.environment, **more})

    def through(self, *words):
        return self(*words, LUMCTL_GATEWAY=str(self.socket))

    @contextmanager
    def gateway(self):
        """A gateway that serves, and is told to end."""
        command = [sys.executable, "-m", "lumctl", "gateway", "run", "--listen", str(self.socket)]
        with subprocess.Popen(command, env=self.environment, stderr=subprocess.PIPE, text=True) as running:
            try:
                assert "serving rack prototype on target sim" in running.stderr.readline()
                named = f"commands on target sim use it only with LUMCTL_GATEWAY={self.socket}\n"
                assert running.stderr.readline().endswith(named)
                yield running
            finally:
                running.send_signal(signal.SIGTERM)
                self.said = running.stderr.read()
        assert running.returncode == 0

    def status(self, code=0):
        done = self.through("gateway", "status", "-o", "json")
        assert done.returncode == code, done.stderr
        (found,) = json.loads(done.stdout)["gateways"]
        return found


@pytest.fixture
def shell(tmp_path_factory):
    return Shell(tmp_path_factory.mktemp("g"))


@pytest.fixture
def simulated(shell):
    up = shell("sim", "up", "--detach")
    assert up.returncode == 0, up.stderr
    yield shell
    shell("sim", "down")


def test_commands_go_through_the_gateway_or_write_nothing(simulated):
    shell = simulated
    unnamed = json.loads(shell("gateway", "status", "-o", "json").stdout)
    assert unnamed["gateways"][0]["state"] == "disabled"
    with shell.gateway() as running:
        assert shell.through("plugin", "doctor", "smartlight").returncode == 0
        applied = shell.through("fabric", "apply", "--rewrite", "--yes")
        assert applied.returncode == 0, applied.stderr
        assert shell.through("device", "set", "s3-gpu0-a", "transmit=off", "--yes").returncode == 0
        status = shell.status()
        assert (status["state"], status["refused"], status["highest"]) == ("ok", 0, 3)
        assert status["writes"] >= 2
        second = shell("gateway", "run")
        assert second.returncode == 5
        assert f"a gateway already serves rack prototype (pid {running.pid})" in second.stderr
    assert shell.said.splitlines()[-1].endswith("ended")
    assert not shell.socket.exists()
    refused = shell.through("device", "set", "s3-gpu0-a", "transmit=on", "--yes")
    assert refused.returncode == 3
    assert "does not answer" in refused.stderr
    assert "lumctl gateway run prototype" in refused.stderr
    assert shell.status(code=3)["state"] == "failed"
    judged = json.loads(shell.through("check", "-o", "json").stdout)
    (mesh,) = (found for found in judged["components"] if found["kind"] == "device")
    (finding,) = mesh["findings"]
    assert (mesh["state"], finding["rule"]) == ("unknown", "device.unread")
    assert str(shell.socket) in finding["evidence"]
    assert "lumctl gateway status" in finding["advice"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "nowhere"), "no rack 'nowhere' in the inventory"),
        (("run", "--group", "no-such-group"), "this machine has no group 'no-such-group'"),
        (("run", "-o", "json"), "the gateway prints no data"),
    ],
)
def test_what_is_wrong_is_told(shell, words, says):
    done = shell("gateway", *words)
    assert done.returncode == 2
    assert says in done.stderr
