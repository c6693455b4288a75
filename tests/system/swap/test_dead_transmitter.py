"""A dead transmitter, from the fault to the repaired job, by the commands that an operator types."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumctl.inventory.load import load_inventory
from lumctl.inventory.wiring import circuits_of
from lumctl.sim.client import ask
from lumctl.sim.runtime import CONTROL_SOCKET

RACK = """
lumctl: 1
racks: {r1: {}}
defaults:
  transponder: {verify: [lldp]}
hosts:
  - name: n[1-4]
    accelerators: [{id: "{host}-gpu0", model: NVIDIA H100 80GB HBM3, memory_gib: 80, pci: "0000:1b:00.0"}]
  - name: n5
    accelerators:
      - {id: "{host}-gpu0", model: NVIDIA H100 80GB HBM3, memory_gib: 80, pci: "0000:1b:00.0", role: spare}
devices:
  - {id: m1, kind: mesh, driver: smartlight, address: "m1.example:65432", geometry: {columns: 6, rows: 6}}
transponders:
  - {id: "n[1-5]-gpu0-a", accelerator: "n[1-5]-gpu0", interface: eth2, device: m1, port: [4, 10, 16, 30, 38]}
  - {id: "n[1-5]-gpu0-b", accelerator: "n[1-5]-gpu0", interface: eth3, device: m1, port: [5, 11, 17, 31, 39]}
jobs:
  - {name: train, ranks: "n[1-4]-gpu0", links: [{kind: ring}], needs_no_pause: true}
policies:
  - {name: dead-lane, how: plan, rules: ["link.*", "gpu.*"], kinds: [link, accelerator], stands_s: 0}
"""


class Shell:
    """Types commands of lumctl against one simulator."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lumctl.yaml"
        self.path.write_text(RACK)
        places = {name: str(folder / name.lower()) for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")}
        for place in places.values():
            Path(place).mkdir(mode=0o700)
        aimed = {"LUMCTL_INVENTORY": str(self.path), "LUMCTL_TARGET": "sim"}
        self.env = {**os.environ, **places, **aimed, "NO_COLOR": "1", "COLUMNS": "400"}

    def __call__(self, line: str, *, ends: int = 0) -> str:
        """What a command prints to both streams; ``ends`` is its exit code."""
        command, *words = line.split()
        done = subprocess.run(
            [sys.executable, "-m", command, *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == ends, (line, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def heard(self) -> dict[str, str]:
        """Whose light really brings up each receiver."""
        (control,) = Path(self.env["XDG_RUNTIME_DIR"]).rglob(CONTROL_SOCKET)
        return {receiver: sender for sender, receiver in ask(control, "heard")["heard"]}


@pytest.fixture(name="shell")
def _shell() -> Iterator[Shell]:
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:  # not pytest's own: the path of a socket is short
        shell = Shell(Path(folder))
        shell("lumctl sim up --detach")
        try:
            yield shell
        finally:
            shell("lumctl sim down")


def test_a_dead_transmitter_is_named_explained_and_replaced_and_the_neighbour_is_left_alone(shell):
    shell("lumctl sim fault n2-gpu0-a dark")
    assert "n2-gpu0-a failed" in shell("lumctl check --fresh", ends=2)
    told = shell("lumctl health explain n2-gpu0-a")
    assert "link.tx-power (dark)" in told
    assert "      lumctl swap plan --failed n2-gpu0\n" in told
    told = shell("lumctl policy explain n2-gpu0")
    assert "by policy dead-lane" in told
    assert "n2-gpu0 in train" in told
    told = shell("lumctl swap plan --dry-run")
    assert "replace n2-gpu0 by n5-gpu0" in told
    assert "n2-gpu0-a is failed: sends no light, but a circuit needs it" in told
    (command,) = re.findall(r"lumctl swap plan --failed \S+", shell("lumctl status", ends=4))
    assert command == "lumctl swap plan --failed n2-gpu0"
    refused = shell("lumctl swap plan --failed n1-gpu0", ends=5)
    assert "n1-gpu0 is not the faulty component: the cause is n2-gpu0-a" in refused
    assert "lumctl swap plan --failed n2-gpu0" in refused
    plan = json.loads(shell(f"{command} -o json").partition("\npolicy")[0].partition("\napply it")[0])
    shell(f"lumctl swap apply {plan['id']} --yes")
    placed = ("n1-gpu0", "n5-gpu0", "n3-gpu0", "n4-gpu0")
    inventory = load_inventory(shell.path)
    wanted = {r: sender for c in circuits_of(inventory, {"train": placed}) for r, sender in c.receivers}
    assert wanted.items() <= shell.heard().items()
