"""A simulated rack with faults is captured, and the capture is judged like the rack itself."""

import json
import stat

import pytest

from lumctl.cli.main import run
from lumctl.fleet.readings import ProbeStatus
from lumctl.inventory.load import example

FAULTS = (
    ("s0-gpu0", "gpu-lost"),
    ("s0-gpu0-b", "dark"),
    ("s1", "hung-smi"),
    ("s2-gpu0", "row-remap-failed"),
    ("s3", "unreachable"),
)


@pytest.fixture(scope="module")
def lumctl(prototype_sim, tmp_path_factory):
    """Run a command on the simulated rack: its exit code and, as data, what it printed."""
    place = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        patch.setattr("lumctl.context.context.sim_endpoints", lambda _: prototype_sim.endpoints)

        def command(*words):
            return run(["-i", str(example("prototype")), "--target", "sim", *words])

        assert command("fabric", "apply", "--yes", "--as-written") == 0
        yield command


@pytest.fixture
def as_data(lumctl, capsys):
    def ask(*words):
        code = lumctl(*words, "-o", "json")
        return code, json.loads(capsys.readouterr().out)

    return ask


@pytest.fixture
def faulty(prototype_sim):
    for component, kind in FAULTS:
        prototype_sim.process.inject(component, kind)
    yield
    prototype_sim.process.clear()


def by_id(document, kind):
    return {c["id"]: (c["state"], [f["rule"] for f in c["findings"]]) for c in document[kind]}


@pytest.mark.usefixtures("faulty")
def test_a_capture_says_what_the_rack_says(as_data, lumctl, capsys, tmp_path):
    folder = tmp_path / "capture"
    code, told = as_data("fleet", "capture", "--out", str(folder))
    assert code == 3, "a host could not be reached"
    outcomes = {host["host"]: {p["probe"]: p["status"] for p in host["probes"]} for host in told["hosts"]}
    assert outcomes["s3"] == {}
    assert outcomes["s1"]["gpu"] == outcomes["s1"]["nvlink"] == ProbeStatus.TIMED_OUT
    assert outcomes["s1"]["kernel"] == outcomes["s0"]["gpu"] == ProbeStatus.OK
    assert stat.S_IMODE((folder / "s0" / "kernel.log").stat().st_mode) == 0o600

    _, live = as_data("status")
    code, offline = as_data("check", "--from-capture", str(folder))
    assert code == 2
    judged = {
        kind: [c for c in offline["components"] if f"{c['kind']}s" == kind]
        for kind in live
        if isinstance(live[kind], list)
    }
    for kind in ("hosts", "accelerators", "links", "circuits"):
        assert by_id(judged, kind) == by_id(live, kind)
    assert {state for state, _ in by_id(live, "hosts").values()} == {"ok", "degraded", "failed"}

    assert lumctl("fleet", "capture", "--out", str(folder)) == 5
    assert "is not empty" in capsys.readouterr().err


def test_a_capture_of_one_host_judged_without_the_inventory(lumctl, capsys, tmp_path, monkeypatch):
    folder = tmp_path / "capture"
    assert lumctl("fleet", "capture", "s1", "--out", str(folder), "-o", "name") == 0
    assert capsys.readouterr().out == f"{folder}\n"
    assert {path.name for path in folder.iterdir()} == {"s1", "capture.json"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    assert run(["check", "--from-capture", str(folder), "-o", "json"]) == 0
    states = {c["id"]: c["state"] for c in json.loads(capsys.readouterr().out)["components"]}
    assert states.pop("s1") == states.pop("s1-gpu0") == "ok"
    assert set(states.values()) == {"ok"}
    assert all(id_.startswith("s1-enp") for id_ in states)


def test_an_unknown_host_is_refused_before_anything_is_made(lumctl, capsys, tmp_path):
    assert lumctl("fleet", "capture", "s9", "--out", str(tmp_path / "capture")) == 2
    assert "no host 's9' in the inventory" in capsys.readouterr().err
    assert not (tmp_path / "capture").exists()
