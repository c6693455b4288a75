"""One switch on a desk, as its vendor has it: no job, no host that answers."""

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode

SWITCH = """\
lumctl: 1
racks:
  bench:
hosts:
  - name: desk
    accelerators:
      - {id: a0, model: none, memory_gib: 1}
      - {id: a1, model: none, memory_gib: 1}
devices:
  - {id: s1, kind: switch, driver: sim-switch, address: "s1.example:1", port_count: 32, input_count: 16}
"""
LANES = """\
transponders:
  - {id: a, accelerator: a0, interface: none0, device: s1, tx: 3, rx: 20}
  - {id: b, accelerator: a1, interface: none1, device: s1, tx: 4, rx: 21}
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """The simulator of the inventory; the text of the inventory is the test's to change."""
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LUMCTL_TARGET", "sim")
    inventory = tmp_path / "lumctl.yaml"
    inventory.write_text(SWITCH)
    monkeypatch.setenv("LUMCTL_INVENTORY", str(inventory))
    yield inventory
    run(["sim", "down"])


def test_the_hint_leads_to_a_switch_whose_ports_can_be_joined(bench, capsys):
    assert run(["sim", "up", "--detach"]) == 0
    joins = ["device", "set", "s1/port/3", "joined=20", "--yes"]
    assert run(joins) == ExitCode.REFUSED
    told = capsys.readouterr().err
    assert "no lane of" in told
    assert "add transponders at its ports to the inventory, then: lumctl fabric apply" in told
    assert run(["sim", "down"]) == 0
    bench.write_text(SWITCH + LANES)
    assert run(["sim", "up", "--detach", "--dark"]) == 0
    assert run(joins) == ExitCode.REFUSED
    assert "program the jobs' circuits first: lumctl fabric apply" in capsys.readouterr().err
    assert run(["fabric", "apply", "--yes"]) == 0
    assert run(joins) == 0
    assert run(["device", "show", "s1"]) == 0
    assert run(["device", "set", "s1/port/3", "joined=none", "--yes"]) == 0
