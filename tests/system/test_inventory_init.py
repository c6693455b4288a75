"""``lumctl inventory init`` as a shell runs it, and the rack that it writes: brought up, programmed, swapped."""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from forked_commands import run_lumctl
from terminals import terminal

from lumctl.inventory.load import load_inventory

RACK = ("--hosts", "n[1-5]", "--gpus", "2", "--mesh", "7x3")


@pytest.fixture
def environment(tmp_path):
    # Sockets live there: pytest's own folders have names too long for them.
    with TemporaryDirectory(prefix="lumctl-") as short:
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_RUNTIME_DIR": short,
            "LANG": "C.UTF-8",
        }


@pytest.fixture
def lumctl(environment, tmp_path):
    def run(*words):
        return run_lumctl(*words, env=environment, cwd=tmp_path, timeout=120)

    yield run
    if (tmp_path / "lumctl.yaml").exists():
        run("sim", "down")


def done(answer):
    assert answer.returncode == 0, answer.stderr
    return answer


@pytest.mark.timeout(300)
def test_the_written_rack_comes_up_and_a_gpu_of_it_is_swapped(lumctl, tmp_path):
    written = done(lumctl("inventory", "init", *RACK, "-o", "json"))
    told = json.loads(written.stdout)
    assert told["irreplaceable"] == []
    assert told["spares"] == ["n5-gpu0", "n5-gpu1"]
    assert (tmp_path / "lumctl.yaml").stat().st_mode & 0o777 == 0o644
    # The commands that it prints, as they are printed.
    assert [command.split()[1] for command in told["next"]] == ["sim", "status", "sim", "swap"]
    for command in told["next"]:
        done(lumctl(*command.split()[1:]))
    done(lumctl("fabric", "apply", "--yes", "--target", "sim"))
    planned = json.loads(
        done(lumctl("swap", "plan", "train", "--failed", "n1-gpu0", "--target", "sim", "-o", "json")).stdout
    )
    applied = json.loads(done(lumctl("swap", "apply", planned["id"], "--yes", "--target", "sim", "-o", "json")).stdout)
    assert applied["outcome"] == "done"
    assert applied["verified"]
    ranks = json.loads(done(lumctl("job", "show", "train", "--target", "sim", "-o", "json")).stdout)["ranks"]
    assert ranks[0]["accelerator"] == "n5-gpu0"


@pytest.mark.timeout(300)
def test_hosts_tell_their_gpus_and_interfaces(lumctl, tmp_path):
    done(lumctl("inventory", "init", *RACK, "--meshes", "1", "--interfaces", "ens[1-4]", "--model", "GPU: X"))
    done(lumctl("sim", "up", "--detach"))
    words = ("--hosts", "n[1-5]", "--mesh", "7x3", "--read-hosts", "--force", "--target", "sim")
    done(lumctl("inventory", "init", *words))
    found = load_inventory(tmp_path / "lumctl.yaml")
    gpu = found.accelerators["n3-gpu1"]
    assert (gpu.model, gpu.memory_gib) == ("NVIDIA GPU: X", 80)
    assert gpu.uuid.startswith("GPU-")
    assert [lane.interface for lane in found.transponders_of("n3-gpu1")] == ["ens3", "ens4"]
    text = (tmp_path / "lumctl.yaml").read_text()
    assert "ens1 (up, 100 Gb/s, hears n2 ens4" in text
    assert "eno1 (up, 1 Gb/s)" in text


def test_a_host_that_cannot_be_read_is_named_with_a_way_on(lumctl, tmp_path):
    refused = lumctl(
        "inventory", "init", "--hosts", "n[1-2]", "--mesh", "7x3", "--read-hosts", "--address", "{name}.invalid"
    )
    assert refused.returncode == 3
    assert "n1" in refused.stderr
    assert "--gpus" in refused.stderr
    assert not (tmp_path / "lumctl.yaml").exists()


def test_what_is_missing_is_named_where_there_is_no_terminal(lumctl, tmp_path):
    refused = lumctl("inventory", "init", "--gpus", "4")
    assert refused.returncode == 2
    assert "--hosts, --mesh are missing" in refused.stderr
    assert not (tmp_path / "lumctl.yaml").exists()


def test_a_file_is_not_replaced_unless_forced(lumctl, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("mine\n")
    refused = lumctl("inventory", "init", "own.yaml", *RACK)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert own.read_text() == "mine\n"
    done(lumctl("inventory", "init", "own.yaml", *RACK, "--force"))
    assert len(load_inventory(own).hosts) == 5


def test_the_inventory_goes_to_stdout(lumctl, tmp_path):
    printed = done(lumctl("inventory", "init", "-", *RACK))
    assert yaml.safe_load(printed.stdout)["hosts"][0]["name"] == "n[1-4]"
    assert list(tmp_path.glob("*.yaml")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hosts", "n[1-", "--gpus", "2", "--mesh", "7x3"), "--hosts"),
        (("--hosts", "n 1,n2,n3", "--gpus", "1", "--mesh", "7x3"), "n 1"),
        (("--hosts", "n[1-3]", "--gpus", "many", "--mesh", "7x3"), "'many'"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7y3"), "7y3"),
        (("--hosts", "n[1-3]", "--gpus", "2", "--mesh", "7x3", "--meshes", "3"), "--meshes"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--spares", "n9"), "n9"),
        (("--hosts", "n[1-2]", "--gpus", "1", "--mesh", "7x3"), "a ring needs two"),
        (("--hosts", "n[1-90]", "--gpus", "1", "--mesh", "7x3"), "180 ports"),
        (("--hosts", "n[1-3]", "--gpus", "2", "--mesh", "7x3", "--interfaces", "eth2"), "--interfaces"),
        (("--hosts", "n[1-3]", "--gpus", "2", "--mesh", "7x3", "--mesh-address", "a:1"), "{id}"),
        (("--hosts", "n[1-3]", "--gpus", "2", "--mesh", "7x3", "--address", "a b"), "a b"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--address", "org"), "did you mean {name}.org?"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--user", "a b"), "'a b' is not a valid user name"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--job", "my job"), "'my job' is not a name"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--job", "n1"), "the same name as a host\n"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "/none"), "/none: cannot be read: No such file"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--driver", "smartlite"), "did you mean smartlight?"),
        (("--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3", "--driver", "redfish"), "of kind power, not mesh"),
        (("--hosts", "n1-6", "--gpus", "1", "--mesh", "7x3"), "did you mean --hosts 'n[1-6]'?"),
        (("--hosts", "n[1-40]", "--gpus", "1", "--mesh", "9x9"), "hint: --mesh 10x10 or fewer hosts (38 at most)\n"),
        (("--hosts", "n1", "n2", "--gpus", "1", "--mesh", "7x3"), "hint: use n1,n2 without spaces"),
        (("--hosts", "n1", "n2", "n3", "--gpus", "1", "--mesh", "7x3"), "hint: use n1,n2,n3 without spaces"),
        (("a", "b", "--hosts", "n[1-3]", "--gpus", "1", "--mesh", "7x3"), "found 2 files: a b"),
        (("--hosts", "true,no,h\x1b[1m", "--gpus", "1", "--mesh", "7x3"), "\\x1b"),
    ],
)
def test_a_wrong_answer_is_one_line(lumctl, tmp_path, words, said):
    refused = lumctl("inventory", "init", *words)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) <= 2
    assert "Traceback" not in refused.stderr
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_a_mesh_without_a_spare_is_named_with_what_helps(lumctl):
    words = ("--hosts", "n[1-6]", "--gpus", "2", "--mesh", "9x9", "--meshes", "2", "--spares", "n6-gpu1", "-o", "json")
    written = done(lumctl("inventory", "init", *words))
    assert "no spare at mesh rail0: add n6-gpu0 to --spares, or --meshes 1\n" in written.stderr
    assert "no routes were found" not in written.stderr
    assert json.loads(written.stdout)["irreplaceable"] == [f"n{host}-gpu0" for host in range(1, 7)]


def test_it_asks_on_a_terminal(environment, tmp_path):
    file = tmp_path / "asked.yaml"
    with terminal([sys.executable, "-m", "lumctl", "inventory", "init", str(file)], environment, (220, 40)) as shown:
        for question, answer in [
            ("Hosts", "n[1-4"),
            ("such as h[01-16]", "n[1-4]"),
            ("GPUs of each host", "1"),
            ("Shape of the meshes", "7x3"),
            ("Spares", "n9"),
            ("'n9' is neither a host", ""),
            ("Name of the job", "my job"),
            ("'my job' is not a name", "tune"),
            ("Addresses of the hosts", ""),
            ("SSH user", "admin"),
        ]:
            shown.see(question)
            shown.press(f"{answer}\r", question, anywhere=True)
        shown.see("these answers as options: --hosts 'n[1-4]' --gpus 1", "--job tune --user admin", "sim up --detach")
        assert shown.code() == 0
    found = load_inventory(Path(file))
    assert list(found.jobs) == ["tune"]
    assert found.hosts["n1"].ssh.user == "admin"
    assert found.accelerators["n4-gpu0"].role == "spare"


@pytest.mark.timeout(300)
def test_hosts_with_unknown_keys_are_read_after_what_the_hint_says(lumctl, environment, tmp_path):
    """Simulated hosts, reached as a rack's are: by ssh's own configuration, and with keys that nobody has seen yet."""
    simulated = tmp_path / "simulated.yaml"
    done(lumctl("inventory", "init", str(simulated), "--hosts", "n[1-3]", "--gpus", "1", "--mesh", "3x3"))
    done(lumctl("sim", "up", "--detach", "-i", str(simulated)))
    try:
        hosts = json.loads(done(lumctl("sim", "status", "-i", str(simulated), "-o", "json")).stdout)["hosts"]
        (runtime,) = Path(environment["XDG_RUNTIME_DIR"]).rglob("sim.json")
        login = json.loads(runtime.read_text())
        lines = [
            f"Host {host['id']}\n  HostName 127.0.0.1\n  Port {host['address'].rpartition(':')[2]}\n"
            f"  User {login['user']}\n  IdentityFile {login['key_file']}\n"
            for host in hosts
        ]
        (tmp_path / ".ssh").mkdir(mode=0o700)
        (tmp_path / ".ssh" / "config").write_text("".join(lines))
        words = ("inventory", "init", "--hosts", "n[1-3]", "--mesh", "3x3", "--read-hosts")
        refused = lumctl(*words)
        assert refused.returncode == 3, refused.stderr
        hint = refused.stderr.split("hint: ")[1]
        assert hint.startswith(
            "write lumctl.yaml without --read-hosts first, then run lumctl inventory trust -i lumctl.yaml"
        )
        done(lumctl("inventory", "init", "--hosts", "n[1-3]", "--mesh", "3x3", "--gpus", "1"))
        done(lumctl("inventory", "trust", "-i", "lumctl.yaml", "--yes"))
        done(lumctl(*words, "--force"))
        assert load_inventory(tmp_path / "lumctl.yaml").accelerators["n2-gpu0"].uuid.startswith("GPU-")
    finally:
        lumctl("sim", "down", "-i", str(simulated))
