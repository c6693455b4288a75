"""A mesh of an inventory with the jobs' circuits that it carries, as ``lumctl fabric`` shows it and routes over it."""

import pytest

from lumctl.cli.main import run
from lumctl.errors import ExitCode
from lumctl.store import Record, store_at

RACK = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-2]
    accelerators:
      - {id: "{host}-gpu0", model: X100, memory_gib: 80, pci: 0000:17:00.0}
devices:
  - {id: "m[0-1]", kind: mesh, driver: smartlight, address: "{id}.example:1", geometry: {columns: 1, rows: 1}}
fibres:
  - {name: there, ends: [m0/port/1, m1/port/0]}
  - {name: back, ends: [m1/port/3, m0/port/5]}
transponders:
  - {id: "h[1-2]-gpu0-a", accelerator: "h[1-2]-gpu0", interface: eth2, device: m0, port: [4, 2]}
jobs:
  - {name: job, ranks: "h[1-2]-gpu0", links: [{kind: pairs, pairs: [[0, 1]]}]}
"""
"""One circuit, which leaves m0 at port 5, turns round in m1, and passes m0 again from port 1."""
STATES = dict(enumerate("xx===="))


@pytest.fixture(autouse=True)
def _rack(tmp_path, monkeypatch):
    inventory = tmp_path / "rack.yaml"
    inventory.write_text(RACK)
    monkeypatch.setenv("LUMCTL_INVENTORY", str(inventory))
    monkeypatch.setenv("LUMCTL_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    store = store_at(str(tmp_path / "state" / "r1"), rack="r1")
    lease = store.leases.acquire("r1", "me", term_s=30.0, now=1.0)
    store.runs.conclude(lease, "fabric-0001", Record(1.0, "outcome", "1", {}), states={"m0": STATES, "m1": STATES})
    store.close()


def test_a_circuit_that_passes_a_mesh_twice_is_drawn_twice(capsys):
    assert run(["fabric", "show", "--device", "m0", "--draw"]) == ExitCode.DONE
    legend = [line.split()[1:3] for line in capsys.readouterr().out.splitlines() if " job/0-1 " in line]
    assert legend == [["job/0-1", "4:5"], ["job/0-1", "1:2"]]


@pytest.mark.parametrize("port", [5, 1])
def test_no_circuit_is_routed_over_either_pass_of_another(capsys, port):
    assert run(["fabric", "route", "--device", "m0", f"0:{port}"]) == ExitCode.USAGE
    assert f"port {port} is used twice" in capsys.readouterr().err
