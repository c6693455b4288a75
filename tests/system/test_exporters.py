"""Hosts that are read by exporters: a simulated rack, and the real node_exporter of this machine."""

import json
import socket
import subprocess
import time
from pathlib import Path

import pytest
from exporter_pages import SHELL_PROBES

from lumctl.context.capture import observe_capture
from lumctl.fleet.exporters import ExporterReader, exporter_probes
from lumctl.fleet.exporters.reader import PageClient
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.reader import SharedByHosts
from lumctl.fleet.readings import ProbeStatus
from lumctl.fleet.rounds import Gate, Round
from lumctl.health.memory import Memory
from lumctl.health.states import State
from lumctl.inventory.exporters import Exporter
from lumctl.inventory.load import load_inventory
from lumctl.workers import Workers

RACK = """\
lumctl: 1
racks: {r1: {}}
hosts:
  - name: pages
    readings: prometheus
    accelerators:
      - {id: "pages-gpu[0-1]", model: H100, memory_gib: 80, pci: ["0000:1b:00.0", "0000:2c:00.0"]}
  - name: both
    readings: both
    accelerators:
      - {id: "both-gpu[0-1]", model: H100, memory_gib: 80, pci: ["0000:1b:00.0", "0000:2c:00.0"]}
"""


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    path = tmp_path_factory.mktemp("rack") / "rack.yaml"
    path.write_text(RACK)
    return path


@pytest.fixture
def sim(simulate, rack):
    return simulate(rack)


def look(inventory, endpoints):
    with Fleet(inventory, endpoints) as fleet:
        snapshot = fleet.collect()
        sessions = set(fleet._sessions)
    report = Memory().judge(inventory, snapshot, (), losses={}, devices={}, now=snapshot.taken_at)
    return report, snapshot, sessions


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("gpu-lost", "gpu.lost"),
        ("row-remap-failed", "gpu.row-remap"),
        ("ecc", "gpu.ecc"),
        ("overheat", "gpu.temperature"),
    ],
)
def test_a_fault_of_the_simulator_shows_by_exporters_alone_and_beside_the_shell(sim, rack, fault, rule):
    inventory = load_inventory(rack)
    well, snapshot, sessions = look(inventory, sim.endpoints)
    assert {health.state for health in well.accelerators.values()} == {State.OK}
    assert {health.state for health in well.hosts.values()} == {State.OK}
    assert sessions == {"both"}
    assert {gpu.source for gpu in snapshot.hosts["pages"].gpus} == {"dcgm-exporter"}
    assert {gpu.source for gpu in snapshot.hosts["both"].gpus} == {"nvidia-smi and dcgm-exporter"}
    for host in ("pages", "both"):
        sim.process.inject(f"{host}-gpu0", fault)
    report, _, _ = look(inventory, sim.endpoints)
    for host in ("pages", "both"):
        found = report.accelerators[f"{host}-gpu0"]
        assert found.state is not State.OK
        assert rule in {finding.rule for finding in found.findings}
        assert report.accelerators[f"{host}-gpu1"].state is State.OK
    sim.process.clear()


def test_an_exporter_that_hangs_costs_its_own_host_only(sim, rack):
    inventory = load_inventory(rack)
    sim.process.inject("pages", "hung-smi")
    report, snapshot, _ = look(inventory, sim.endpoints)
    assert snapshot.hosts["pages"].probes["dcgm"].status is ProbeStatus.TIMED_OUT
    assert snapshot.hosts["pages"].probes["node"].status is ProbeStatus.OK
    assert report.accelerators["pages-gpu0"].state is State.UNKNOWN
    assert report.accelerators["both-gpu0"].state is State.OK
    sim.process.clear()


def test_pages_in_a_capture_are_judged(sim, rack, tmp_path):
    inventory = load_inventory(rack)
    sim.process.inject("pages-gpu1", "row-remap-failed")
    with Fleet(inventory, sim.endpoints) as fleet:
        folder = tmp_path / "capture" / "pages"
        folder.mkdir(parents=True)
        for probe, client in fleet.pages("pages"):
            (folder / f"{probe.name}.prom").write_text(client.fetch(10.0))
    sim.process.clear()
    report = observe_capture(tmp_path / "capture", inventory).report
    assert report.accelerators["pages-gpu1"].state is State.FAILED
    assert report.accelerators["pages-gpu0"].state is State.OK
    found = observe_capture(tmp_path / "capture", None).report
    assert sorted(health.state for health in found.accelerators.values()) == [State.FAILED, State.OK]
    page = (folder / "dcgm.prom").read_text()
    (folder / "dcgm.prom").write_text(page[:-3])
    cut = observe_capture(tmp_path / "capture", inventory).report
    assert {health.state for health in cut.accelerators.values()} == {State.UNKNOWN}
    assert cut.hosts["pages"].state is not State.OK
    (folder / "gpud.prom").write_text(json.dumps([{"component": "os", "states": [{"health": "Unhealthy"}]}]))
    reported = observe_capture(tmp_path / "capture", inventory).report.hosts["pages"]
    assert "host.reported" in {finding.rule for finding in reported.findings}


@pytest.fixture
def node_exporter(require_program):
    program = require_program("prometheus-node-exporter")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, f"--web.listen-address=127.0.0.1:{port}"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        # It says so when it listens.
        assert any("listening" in line.lower() for line in process.stderr), "node_exporter did not begin"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def test_the_real_node_exporter_tells_what_this_machine_tells(node_exporter):
    exporter = Exporter("node", node_exporter, "/metrics")
    probes = exporter_probes({"node": exporter.url})
    workers = Workers("test")
    means = SharedByHosts(workers, Gate(), time.time, 5.0)
    reader = ExporterReader("here", [PageClient(exporter, timeout_s=10.0)], probes, means, shell_probes=SHELL_PROBES)
    round_ = Round()
    reader.read_now(round_, None)
    round_.wait(time.monotonic() + 30.0, reader.expire)
    snapshot = reader.snapshot(None, None)
    workers.close()
    assert snapshot.probes["node"].status is ProbeStatus.OK, snapshot.probes["node"].detail
    assert {name for name, each in snapshot.probes.items() if each.status is ProbeStatus.OK} >= {"net", "clock"}
    assert set(snapshot.interfaces) >= {"lo"}
    assert snapshot.clock.least_ahead_s - 1 < 0 < snapshot.clock.most_ahead_s + 1
    with Path("/proc/stat").open() as stat:
        booted_at = next(int(line.split()[1]) for line in stat if line.startswith("btime"))
    assert snapshot.booted_at == pytest.approx(booted_at, abs=2)
    if snapshot.mounts is not None:
        mounted = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
        assert set(snapshot.mounts.by_path) <= mounted
