"""Right inventories: what they stand for, and where they are looked for."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lumctl.errors import UsageError
from lumctl.inventory.job_run import JobHook
from lumctl.inventory.load import EXAMPLES, example, find_inventory, load_inventory
from lumctl.inventory.model import Evidence, Geometry, Lane, RingLinks, Role, Thresholds
from lumctl.inventory.probe_times import PROBE_TIMES, ProbeTimes
from lumctl.inventory.problems import InventoryError
from lumctl.inventory.wiring import circuits_of, initial_assignment

Write = Callable[[str | bytes], Path]


def test_prototype_is_the_published_test_bed() -> None:
    inventory = load_inventory(example("prototype"))
    assert [f"{a.id} {a.memory_gib:g} {a.role}" for a in inventory.accelerators.values()] == [
        "s0-gpu0 48 active",
        "s1-gpu0 48 active",
        "s2-gpu0 48 active",
        "s3-gpu0 48 spare",
    ]
    lanes = {f"s{n}": [t.lane for t in inventory.transponders_of(f"s{n}-gpu0")] for n in range(4)}
    assert lanes == {
        "s0": [Lane("mesh", 12, 18), Lane("mesh", 20, 36)],
        "s1": [Lane("mesh", 5, 9), Lane("mesh", 37, 6)],
        "s2": [Lane("mesh", 2, 17), Lane("mesh", 1, 0)],
        "s3": [Lane("mesh", 7, 13), Lane("mesh", 35, 34)],
    }
    mesh = inventory.devices["mesh"]
    assert (mesh.geometry, mesh.port_count, mesh.driver) == (Geometry(7, 3), 44, "smartlight")
    assert mesh.address.endswith(":65432")
    assert inventory.jobs["finetune"].links == (RingLinks((0, 1, 2)),)
    assert len(circuits_of(inventory, initial_assignment(inventory))) == 6


def test_rack64_has_four_rails_and_two_jobs() -> None:
    inventory = load_inventory(example("rack64"))
    assert (len(inventory.hosts), len(inventory.accelerators), len(inventory.transponders)) == (16, 64, 128)
    assert [a.id for a in inventory.accelerators.values() if a.role is Role.SPARE] == [f"h16-gpu{n}" for n in range(4)]
    for transponder in inventory.transponders.values():
        assert transponder.lane.device == f"rail{inventory.accelerators[transponder.accelerator].index}"
        assert transponder.lane.duplex
    for rail in inventory.devices.values():
        used = [t.lane.tx for t in inventory.transponders.values() if t.lane.device == rail.id]
        assert (len(used), len(set(used)), rail.port_count) == (32, 32, 76)
    for job, hosts in (("train-a", 8), ("train-b", 7)):
        rings = [links for links in inventory.jobs[job].links if isinstance(links, RingLinks)]
        members = [{inventory.jobs[job].ranks[rank] for rank in ring.ranks} for ring in rings]
        assert [len(ring) for ring in members] == [hosts] * 4
        assert [{name[-1] for name in ring} for ring in members] == [{"0"}, {"1"}, {"2"}, {"3"}]
    assert len(circuits_of(inventory, initial_assignment(inventory))) == 4 * (8 + 7)


def test_rack64_loads_fast() -> None:
    load_inventory(example("rack64"))
    begun = time.perf_counter()
    load_inventory(example("rack64"))
    assert time.perf_counter() - begun < 0.25


def test_defaults_are_filled_in(small: str, write: Write) -> None:
    inventory = load_inventory(write(small))
    transponder = inventory.transponders["h1-gpu0-a"]
    assert (transponder.driver, transponder.verify) == ("hostport", (Evidence.LLDP,))
    assert (transponder.tx_power_dbm, transponder.rx_sensitivity_dbm) == (2.0, -15.8)
    mesh = inventory.devices["mesh"]
    assert (mesh.loss_per_puc_db, mesh.loss_per_port_db, mesh.settle_ms) == (0.25, 1.0, 5.0)
    assert inventory.hosts["h2"].address == "h2"
    assert inventory.accelerators["h3-gpu0"].pci == "0000:17:00.0"
    assert inventory.thresholds == Thresholds()
    assert inventory.probes == PROBE_TIMES


def test_settings_of_an_entry_go_before_the_defaults(small: str, write: Write) -> None:
    head = """\
defaults:
  ssh: {user: ops, port: 2222, key_file: keys/id, config_file: ~/ssh_config}
  transponder: {verify: [blink, lldp], tx_power_dbm: 1.5}
thresholds: {gpu_temperature_c: 70}
"""
    text = small.replace("hosts:\n", f"{head}hosts:\n")
    text = text.replace(
        "  - name: h[1-3]\n", '  - name: h[1-3]\n    address: "{name}.lab"\n    ssh: {port: 22, sudo: true}\n'
    )
    text = text.replace("    port: [1, 3, 5]\n", "    port: [1, 3, 5]\n    verify: [blink]\n    driver: other\n")
    path = write(text)
    inventory = load_inventory(path)
    host = inventory.hosts["h2"]
    assert host.address == "h2.lab"
    assert (host.ssh.user, host.ssh.port, host.ssh.sudo) == ("ops", 22, True)
    assert host.ssh.key_file == path.parent / "keys/id"
    assert host.ssh.config_file == Path.home() / "ssh_config"
    a, b = inventory.transponders_of("h1-gpu0")
    assert (a.verify, a.driver, a.tx_power_dbm) == ((Evidence.BLINK, Evidence.LLDP), "hostport", 1.5)
    assert (b.verify, b.driver, b.tx_power_dbm) == ((Evidence.BLINK,), "other", 1.5)
    assert inventory.thresholds == Thresholds(gpu_temperature_c=70)


def test_probes_run_when_the_inventory_says(small: str, write: Write) -> None:
    head = "probes: {gpu: {every_s: 20}, nvlink: {every_s: 300, deadline_s: 8}, net: {deadline_s: 1}, lldp: {}}\n"
    inventory = load_inventory(write(small.replace("hosts:\n", f"{head}hosts:\n")))
    changed = {"gpu": ProbeTimes(20, 5), "nvlink": ProbeTimes(300, 8), "net": ProbeTimes(0, 1)}
    assert inventory.probes == {**PROBE_TIMES, **changed}


def test_several_racks_and_kinds_of_devices(write: Write) -> None:
    text = """\
lumctl: 1
racks: {r1: {location: left, store: state}, r2: {store: "postgresql://db/x"}}
hosts:
  - name: r[1-2]-h[01-02]
    rack: [r1, r1, r2, r2]
    address: 10.0.0.[1-4]
    accelerators:
      - {id: "{host}-gpu[0-1]", model: X, memory_gib: 1, index: [3, 4], pci: ["00000000:9B:00.0", "0000:9c:00.0"]}
      - {id: "{host}-gpu2", model: Y, memory_gib: 1, role: disabled}
devices:
  - {id: "sw[1-2]", rack: "r[1-2]", kind: switch, driver: polatis, address: "{id}:3082", port_count: 16}
"""
    path = write(text)
    inventory = load_inventory(path)
    assert inventory.hosts["r2-h01"].rack == "r2"
    assert inventory.hosts["r2-h01"].address == "10.0.0.3"
    first, second, third = inventory.accelerators_of("r1-h02")
    assert (first.index, first.pci, second.index, third.index) == (3, "0000:9b:00.0", 4, 2)
    assert (inventory.devices["sw2"].rack, inventory.devices["sw2"].address) == ("r2", "sw2:3082")
    assert inventory.racks["r1"].store == str(path.parent / "state")
    assert inventory.racks["r2"].store == "postgresql://db/x"


def test_the_inventory_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    with pytest.raises(UsageError, match=r"lumctl.yaml.*config/lumctl/inventory.yaml") as caught:
        find_inventory(None)
    assert "prototype.yaml" in (caught.value.hint or "")

    settings = tmp_path / "config/lumctl/inventory.yaml"
    settings.parent.mkdir(parents=True)
    settings.touch()
    assert find_inventory(None) == settings
    (tmp_path / "lumctl.yaml").touch()
    assert find_inventory(None) == Path("lumctl.yaml")
    monkeypatch.setenv("LUMCTL_INVENTORY", "from-environment.yaml")
    assert find_inventory(None) == Path("from-environment.yaml")
    assert find_inventory("named.yaml") == Path("named.yaml")


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; no usual place has an inventory."""
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def hint_without_inventory() -> str:
    with pytest.raises(UsageError, match="no inventory found") as caught:
        find_inventory(None)
    return caught.value.hint or ""


def test_an_inventory_of_the_folder_under_another_name_is_named_with_its_option(nowhere: Path) -> None:
    text = example("prototype").read_text()
    (nowhere / "own rack.yml").write_text(text)
    (nowhere / "runbook.yaml").write_text("schema: lumctl/runbook/v1\nlumctl: 1.0\nsteps: []\n")
    (nowhere / "mesh.yaml").write_text("mesh: 1\npucs: 3\njunctions: []\n")
    (nowhere / "notes.txt").write_text(text)
    (nowhere / "deeper").mkdir()
    (nowhere / "deeper" / "other.yaml").write_text(text)
    (nowhere / "folder.yaml").mkdir()
    os.mkfifo(nowhere / "pipe.yaml")
    (nowhere / "gone.yaml").symlink_to("nothing")
    assert hint_without_inventory() == (
        "'own rack.yml' of this folder looks like one: add -i 'own rack.yml', "
        f"or for all commands: export LUMCTL_INVENTORY='{nowhere / 'own rack.yml'}'"
    )
    assert load_inventory(find_inventory("own rack.yml")).racks


def test_a_like_name_of_the_same_folder_is_proposed_for_a_file_that_does_not_exist(nowhere: Path) -> None:
    (nowhere / "basement.yaml").write_text(example("prototype").read_text())
    (nowhere / "basement.txt").touch()
    missing = "cannot be read: No such file or directory"
    for folder in (Path(), nowhere):
        with pytest.raises(UsageError) as caught:
            load_inventory(folder / "basement.yml")
        near = folder / "basement.yaml"
        assert caught.value.message == f"{folder / 'basement.yml'}: {missing}; did you mean {near}?"
    for other in ("attic-of-the-house.yml", "elsewhere/basement.yml"):
        with pytest.raises(UsageError) as caught:
            load_inventory(Path(other))
        assert caught.value.message == f"{other}: {missing}"


@pytest.mark.usefixtures("nowhere")
def test_the_variable_that_names_an_unreadable_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMCTL_INVENTORY", "./gone.yaml")
    with pytest.raises(UsageError) as caught:
        load_inventory(find_inventory(None))
    assert caught.value.message == (
        "gone.yaml: cannot be read: No such file or directory; $LUMCTL_INVENTORY names this file"
    )
    with pytest.raises(UsageError) as caught:
        load_inventory(find_inventory("other.yaml"))
    assert "LUMCTL" not in caught.value.message


def test_several_inventories_of_the_folder_are_named(nowhere: Path) -> None:
    for name in ("b", "-a"):
        (nowhere / f"{name}.yaml").write_bytes(example("prototype").read_bytes().replace(b"\n", b"\r\n"))
    assert hint_without_inventory().startswith("./-a.yaml or b.yaml of this folder look like one: add -i ./-a.yaml")


def test_an_inventory_with_errors_is_named_last(nowhere: Path) -> None:
    text = example("prototype").read_text()
    (nowhere / "a.yaml").write_text(f"{text}\nspar: 1\n")
    (nowhere / "b.yaml").write_text(text)
    assert hint_without_inventory().startswith("b.yaml or a.yaml of this folder look like one: add -i b.yaml")


@pytest.mark.parametrize("name", ["own.yaml", "own\x1b[1m.yaml"])
def test_a_file_that_another_user_may_write_or_nobody_can_type_is_not_proposed(nowhere: Path, name: str) -> None:
    (nowhere / name).write_text(example("prototype").read_text())
    (nowhere / name).chmod(0o666 if name == "own.yaml" else 0o600)
    assert hint_without_inventory().startswith("write one: lumctl inventory init")


@pytest.mark.parametrize("exposed", ["file", "folder", "linked"])
def test_a_file_that_another_user_may_write_is_used_only_if_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exposed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    file, elsewhere = tmp_path / "lumctl.yaml", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real.yaml").touch()
    file.symlink_to(elsewhere / "real.yaml")
    assert find_inventory(None) == Path("lumctl.yaml")
    whose = {"file": file, "folder": elsewhere, "linked": elsewhere / "real.yaml"}[exposed]
    whose.chmod(0o777)
    with pytest.raises(UsageError, match=f"every user may write {whose.resolve()}") as caught:
        find_inventory(None)
    assert f"lumctl -i {file}" in (caught.value.hint or "")
    assert find_inventory(str(file)) == file
    whose.chmod(0o1777)  # a sticky folder, such as /tmp: others cannot replace this user's file
    if exposed == "folder":
        assert find_inventory(None) == Path("lumctl.yaml")


def test_operators_may_share_a_file_by_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    (tmp_path / "lumctl.yaml").touch()
    for path, mode in ((tmp_path, 0o2775), (tmp_path / "lumctl.yaml", 0o664)):
        path.chmod(mode)
    assert find_inventory(None) == Path("lumctl.yaml")


def test_another_users_file_is_used_only_if_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)
    (tmp_path / "lumctl.yaml").touch()
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path / "lumctl.yaml", 54322, 54322)
    with pytest.raises(UsageError, match=r"lumctl\.yaml is owned by"):
        find_inventory(None)


def test_a_rack_is_named_so_that_files_can_be_called_by_it(write: Write) -> None:
    path = write("lumctl: 1\nracks:\n  ../../r1: {}\nhosts: [{name: h}]\n")
    with pytest.raises(InventoryError, match=r":3:3: '../../r1' cannot be a name"):
        load_inventory(path)


INVENTORIES = Path(__file__).parents[3] / "inventories"


def test_examples_are_found_by_name() -> None:
    files = {path.name for path in INVENTORIES.glob("*.yaml")}
    assert {example(name).name for name in EXAMPLES} == files >= {"prototype.yaml", "two-meshes.yaml"}
    with pytest.raises(UsageError) as caught:
        example("prototyp")
    assert caught.value.hint == "did you mean prototype?"


def test_a_job_s_hook_names_programs_beside_the_inventory_or_in_the_path(small: str, write: Write) -> None:
    hook = "\n    hook:\n      pause: [hooks/pause, --soft]\n      resume: [scontrol, resume]\n      timeout_s: 90"
    path = write(small.replace("ranks: h[1-2]-gpu0", "ranks: h[1-2]-gpu0" + hook))
    folder = path.parent.absolute()
    assert load_inventory(path).jobs["job"].hook == JobHook(
        (f"{folder}/hooks/pause", "--soft"), ("scontrol", "resume"), status=None, timeout_s=90.0, on_sim=False
    )
    assert load_inventory(write(small)).jobs["job"].hook is None


@pytest.mark.parametrize(
    ("written", "expected"), [("on", "on"), ("off", "off"), ("'on'", "on"), ("ask", "ask"), ("true", "on")]
)
def test_words_that_yaml_may_take_for_truth_values_are_the_words_of_a_schedule(tmp_path, written, expected):
    text = example("ring4").read_text()
    path = tmp_path / "rack.yaml"
    path.write_text(text.replace("    run:\n", f"    run:\n      straggler_schedule: {written}\n"))
    assert load_inventory(path).jobs["train"].run_settings().straggler_schedule == expected


def test_another_word_for_a_schedule_is_one_line(tmp_path):
    path = tmp_path / "rack.yaml"
    path.write_text(example("ring4").read_text().replace("    run:\n", "    run:\n      straggler_schedule: 1\n"))
    with pytest.raises(InventoryError) as raised:
        load_inventory(path)
    (problem,) = raised.value.problems
    assert "found 1, expected" in str(problem)
