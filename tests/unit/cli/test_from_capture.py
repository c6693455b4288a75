"""``lumctl check --from-capture`` as scripts meet it: exit codes, one line, data."""

import json

import pytest

from lumctl.cli.main import run
from lumctl.inventory.load import example

XID = "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=x, Timeout\n"
NET = "/sys/class/net/eth0/operstate\tup\n"


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Judge a folder, where no inventory lies about."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("LUMCTL_INVENTORY", raising=False)

    def command(*words, **hosts):
        folder = tmp_path / "capture"
        folder.mkdir(exist_ok=True)
        for host, files in hosts.items():
            (folder / host).mkdir()
            for name, text in files.items():
                (folder / host / name).write_text(text)
        code = run(["check", "--from-capture", str(folder), *words])
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return command


def test_the_line_and_the_codes_of_monitoring(check):
    code, line = check(h01={"net.tsv": NET})
    assert code == 0
    assert line.startswith("LUMCTL OK - capture: ")
    code, line = check(h02={"kernel.log": XID})
    assert code == 2
    assert line.startswith("LUMCTL CRITICAL - capture: 1 of 1 accelerators failed (h02-gpu-0000:9b:00.0: ")
    assert line.count("\n") == 1


def test_what_cannot_be_read_is_unknown(check):
    code, line = check(h01={"kernel.log": "\0\1\2"})
    assert code == 3
    assert "1 of 1 hosts unknown (h01: kernel.log: " in line


def test_the_data(check):
    code, out = check("-o", "json", h01={"kernel.log": XID})
    said = json.loads(out)
    assert (code, said["schema"], said["target"], said["state"]) == (2, "lumctl/check/v1", "capture", "failed")
    gpu, host = said["components"]
    assert (gpu["id"], gpu["kind"], gpu["state"]) == ("h01-gpu-0000:9b:00.0", "accelerator", "failed")
    assert gpu["findings"][0]["rule"] == "gpu.xid"
    assert (host["id"], host["state"]) == ("h01", "ok")


def test_metrics_too(check, tmp_path):
    assert check("--textfile", str(tmp_path / "x.prom"), h01={"net.tsv": NET})[0] == 0
    assert 'id="h01-eth0"' in (tmp_path / "x.prom").read_text()


def test_an_empty_folder_says_what_to_do_in_one_line(check):
    code, line = check()
    assert code == 3
    assert line.startswith("LUMCTL UNKNOWN - ")
    assert "lumctl fleet capture" in line
    assert line.count("\n") == 1


def test_a_named_inventory_must_be_sound_and_one_that_lies_about_must_not(check, tmp_path):
    (tmp_path / "lumctl.yaml").write_text("lumctl: 1\nracks: [\n")
    assert check(h01={"net.tsv": NET})[0] == 0
    code, line = check("-i", "lumctl.yaml")
    assert code == 3
    assert "lumctl.yaml" in line


def test_by_an_inventory(check):
    code, out = check("-q", "-i", str(example("prototype")), "-o", "json", s1={"kernel.log": XID}, h01={"net.tsv": NET})
    states = {c["id"]: c["state"] for c in json.loads(out)["components"]}
    assert code == 1, "an XID of a GPU that the inventory does not know"
    assert (states["s1"], states["s1-gpu0"], states["h01-eth0"]) == ("degraded", "unknown", "ok")


def test_a_table_of_ports_alone_is_counted_by_its_links(check):
    _, line = check(h01={"net.tsv": NET})
    assert line.startswith("LUMCTL OK - capture: 1 link, 1 host ok |")


def test_accelerators_without_nvidia_smi_say_why_nothing_is_known_of_them(check):
    code, line = check(h01={"nvlink.txt": "GPU 0: NVIDIA A100 (UUID: GPU-1)\n\t Link 0: 25 GB/s\n"})
    assert code == 3
    assert "1 of 1 accelerators unknown (h01-gpu0: nvidia-smi -q -x is not in this capture)" in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nvidia-smi.xml", "No devices were found\n"),
        ("session.txt", "# $ nvidia-smi -q\nNo devices were found\n"),
    ],
)
def test_a_driver_that_finds_no_gpu_is_not_ok(check, name, text):
    code, line = check(h01={name: text})
    assert code == 1
    assert "h01: nvidia-smi finds no GPU" in line
