"""`lumctl inventory trust` against SSH servers that nobody knows yet."""

import json
import stat

import pytest

from lumctl.cli.main import run
from lumctl.devices.endpoints import rack_endpoints
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import load_inventory
from lumctl.sim.client import ask
from lumctl.sim.launch import launch

HOST = """
  - name: {name}
    address: 127.0.0.1
    ssh: {{port: {port}, user: lumctl, key_file: {key}}}
    accelerators: [{{id: "{{host}}-gpu0", model: X, memory_gib: 1}}]"""


def written(path, hosts):
    path.write_text("lumctl: 1\nracks:\n  r: {}\nhosts:" + "".join(HOST.format(**host) for host in hosts) + "\n")
    return path


@pytest.fixture(scope="module")
def rack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trust")
    hosts = [{"name": name, "port": 22, "key": "none"} for name in ("h1", "h2")]
    with launch(load_inventory(written(folder / "sim.yaml", hosts)), folder=folder / "s", tied=True) as running:
        yield running


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without any known host, who aims at the rack."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LUMCTL_TARGET", raising=False)
    return tmp_path


@pytest.fixture
def inventory(rack, home):
    at = rack.endpoints().hosts.values()
    hosts = [{"name": end.host, "port": end.ssh.port, "key": rack.folder / "client_key"} for end in at]
    return written(home / "rack.yaml", hosts)


@pytest.fixture
def known(home):
    return home / ".ssh" / "known_hosts"


@pytest.fixture
def trust(inventory, capsys):
    """Run the command; gives its exit code, the result for each host, and what it narrated."""

    def run_it(*words):
        code = run(["inventory", "trust", "-i", str(inventory), "-o", "json", *words])
        printed = capsys.readouterr()
        rows = json.loads(printed.out)["hosts"] if printed.out else []
        return code, {row["host"]: row["result"] for row in rows}, printed.err

    return run_it


def test_keys_are_enrolled_once(trust, known, inventory, rack):
    code, results, narration = trust("--yes")
    assert (code, results) == (0, {"h1": "enrolled", "h2": "enrolled"})
    assert narration.count("ssh-ed25519 SHA256:") == 2
    assert stat.S_IMODE(known.stat().st_mode) == 0o600
    assert stat.S_IMODE(known.parent.stat().st_mode) == 0o700
    # What was written is what the simulator says its keys are, and the fleet goes by it.
    assert set(known.read_text().splitlines()) == set((rack.folder / "known_hosts").read_text().splitlines())
    read = load_inventory(inventory)
    with Fleet(read, rack_endpoints(read)) as fleet:
        assert all(host.reachable for host in fleet.collect(probes=["net"]).hosts.values())
    before = known.read_bytes()
    assert trust()[:2] == (0, {"h1": "known", "h2": "known"})
    assert known.read_bytes() == before


def test_one_host_by_name_beside_what_is_there(trust, known):
    known.parent.mkdir()
    known.write_text("other ssh-ed25519 AAAA")
    known.chmod(0o644)
    assert trust("h2", "--yes")[:2] == (0, {"h2": "enrolled"})
    first, second = known.read_text().splitlines()
    assert first == "other ssh-ed25519 AAAA"
    assert second.startswith("[127.0.0.1]:")
    assert stat.S_IMODE(known.stat().st_mode) == 0o600


def test_without_a_terminal_it_wants_a_yes(trust, known):
    code, results, narration = trust()
    assert (code, results) == (2, {})
    assert "--yes" in narration
    assert not known.exists()


def test_a_changed_key_is_refused_and_nothing_is_written(trust, known):
    trust("--yes")
    lines = known.read_text().splitlines()
    known.write_text(f"# mine\n{lines[0].split()[0]} {lines[1].split(maxsplit=1)[1]}\n")
    before = known.read_text()
    code, _, narration = trust("--yes")
    assert code == 5
    assert "has CHANGED" in narration
    assert f"{known}:2" in narration
    assert known.read_text() == before


def test_a_host_that_does_not_answer_is_left_for_later(trust, known, rack):
    control = rack.folder / "control.sock"
    ask(control, "fault", component="h1", kind="unreachable")
    try:
        code, results, narration = trust("--yes")
    finally:
        ask(control, "clear", component=None)
    assert (code, results) == (3, {"h1": "unreachable", "h2": "enrolled"})
    assert "h1: 127.0.0.1 port " in narration
    assert "the other hosts are enrolled" in narration
    assert len(known.read_text().splitlines()) == 1


def test_where_no_host_answers_none_is_called_enrolled(trust, known, rack):
    control = rack.folder / "control.sock"
    for host in ("h1", "h2"):
        ask(control, "fault", component=host, kind="unreachable")
    try:
        code, results, narration = trust("--yes")
    finally:
        ask(control, "clear", component=None)
    assert (code, results) == (3, {"h1": "unreachable", "h2": "unreachable"})
    assert "enrolled" not in narration
    assert "hint: no host answered; see their addresses: lumctl -i " in narration
    assert not known.exists()


def test_a_host_that_is_not_in_the_inventory(trust):
    code, _, narration = trust("h11")
    assert code == 2
    assert "did you mean h1?" in narration
