"""Capturing hosts that are not there: what is asked, what is written, and what is noted where nothing comes."""

import json
import stat
import threading
from itertools import count

import pytest

from lumctl.devices.errors import DeviceRefusedError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult
from lumctl.errors import RefusedError, UsageError
from lumctl.fleet.bundle import writer as bundle_write
from lumctl.fleet.bundle.capture import CaptureManifest, read_capture_manifest, read_host_manifest
from lumctl.fleet.bundle.files import open_capture
from lumctl.fleet.bundle.host_answers import command_of
from lumctl.fleet.bundle.reader import read_host
from lumctl.fleet.bundle.writer import capture, prepare, problems_of
from lumctl.fleet.probes import probes_for
from lumctl.fleet.readings import HostSnapshot, ProbeStatus, Snapshot

AT = 1_800_000_000.0
BOOT = AT - 1000
ABOUT = CaptureManifest(AT, "rack", "9.9", ("r1",), ("h01", "h02"), {"job": ("h01-gpu0",)})
PROBES = probes_for(["eth2"], sudo=True)
XID = "[  900.000000] NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=x, Timeout\n"


class Host:
    """A host's shell: answers by the beginning of the command."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def run(self, command, *, timeout_s):
        self.asked.append((command, timeout_s))
        for beginning, told in self.answers.items():
            if beginning in command:
                if isinstance(told, BaseException):
                    raise told
                return told if isinstance(told, CommandResult) else CommandResult(0, told, "")
        return CommandResult(2, "", "") if "grep" in command else CommandResult(127, "", "sh: 1: it: not found\n")


class Fleet:
    def __init__(self, hosts, first=None):
        self.hosts = hosts
        self.first = first or {}

    def collect(self, hosts, probes):
        assert list(probes) == ["net"]
        well = {name: HostSnapshot(name, AT, reachable=True, boot_id="b-1", booted_at=BOOT) for name in hosts}
        return Snapshot(AT, 0.1, well | self.first)

    def shell(self, host):
        return self.hosts[host]

    def pages(self, _host):
        return ()


@pytest.fixture
def take(tmp_path):
    def run(monotonic=lambda: 0.0, **hosts):
        first = {name: host for name, host in hosts.items() if isinstance(host, HostSnapshot)}
        said = []
        folder = tmp_path / "capture"
        prepare(folder)
        probes = dict.fromkeys(hosts, PROBES)
        captured = capture(
            Fleet(hosts, first), probes, folder, ABOUT, now=lambda: AT, narrate=said.append, monotonic=monotonic
        )
        return folder, {one.manifest.host: one for one in captured}, said

    return run


def test_the_commands_are_those_of_the_probes_and_the_log_comes_whole():
    assert [command_of(probe) for probe in PROBES if probe.name in {"gpu", "kernel", "optics:eth2"}] == [
        "sudo -n nvidia-smi -q -x",
        "sudo -n dmesg",
        "sudo -n ethtool -m eth2",
    ]
    assert next(command_of(probe) for probe in PROBES if probe.name == "net").startswith(
        "grep -sH . /sys/class/net/lo/operstate "
    )


def test_files_and_manifests_for_the_owner_only(take, answer):
    link = "/sys/class/net/eth2/operstate:up\n"
    folder, captured, said = take(
        h01=Host(
            {
                "-q -x": answer("h100.xml"),
                "sudo -n dmesg": XID,
                "lo/operstate": link,
                "statistics": "/sys/class/net/eth2/statistics/rx_bytes:5\n",
            }
        )
    )
    assert {path.name for path in folder.iterdir()} == {"h01", "capture.json"}
    here = folder / "h01"
    assert {path.name for path in here.iterdir()} == {
        *("manifest.json", "nvidia-smi.xml", "kernel.log", "net.tsv", "counters.tsv")
    }  # fmt: skip
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(here.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (*here.iterdir(), folder / "capture.json")} == {0o600}
    assert (here / "nvidia-smi.xml").read_text() == answer("h100.xml")
    assert (here / "net.tsv").read_text() == "/sys/class/net/eth2/operstate\tup\n"
    manifest = read_host_manifest((here / "manifest.json").read_text(), "h01")
    assert manifest == captured["h01"].manifest
    assert (manifest.taken_at, manifest.boot_id, manifest.booted_at, manifest.lumctl) == (AT, "b-1", BOOT, "9.9")
    by_probe = {asked.probe: asked for asked in manifest.probes}
    assert by_probe["gpu"].status is ProbeStatus.OK
    assert by_probe["gpu"].file == "nvidia-smi.xml"
    assert by_probe["lldp"].status is ProbeStatus.ABSENT
    assert by_probe["lldp"].file is None
    assert read_capture_manifest((folder / "capture.json").read_text()) == ABOUT
    assert said == ["h01: 4 files"]


def test_a_capture_read_back_says_what_the_host_said(take, answer):
    folder, *_ = take(h01=Host({"-q -x": answer("h100.xml"), "sudo -n dmesg": XID, "-s": answer("nvlink.txt")}))
    (host,) = map(read_host, open_capture(folder).folders())
    assert (host.at, host.unread) == (AT, ())
    assert [gpu.pci for gpu in host.snapshot.gpus] == ["0000:9b:00.0", "0000:c3:00.0"]
    assert [(xid.xid, xid.at) for xid in host.snapshot.xids] == [(119, BOOT + 900)]
    assert host.snapshot.nvlinks
    assert host.snapshot.probes["lldp"].status is ProbeStatus.ABSENT
    assert host.snapshot.booted_at == BOOT


def test_a_hung_tool_is_noted_and_none_is_put_behind_it(take):
    clock = count(step=5)
    host = Host({"nvidia-smi": OutcomeUnknownError("h01: it may have acted"), "sudo -n dmesg": ""})
    folder, captured, said = take(lambda: float(next(clock)), h01=host)
    smi = [command for command, _ in host.asked if "nvidia-smi" in command]
    assert smi == ["sudo -n nvidia-smi -q -x"]
    told = {asked.probe: (asked.status, asked.detail) for asked in captured["h01"].manifest.probes}
    assert told["gpu"] == (ProbeStatus.TIMED_OUT, "no answer within 5 s")
    assert told["nvlink"] == (ProbeStatus.TIMED_OUT, "not run, because gpu did not end")
    assert not (folder / "h01" / "nvidia-smi.xml").exists()
    assert said[0].startswith("h01: 0 files; gpu timed-out: no answer within 5 s; ")
    (read,) = map(read_host, open_capture(folder).folders())
    assert read.snapshot.probes["gpu"].status is ProbeStatus.TIMED_OUT
    assert read.unread == ()


def test_denied_and_broken_probes_are_noted_with_their_words(take):
    host = Host(
        {
            "sudo -n dmesg": CommandResult(1, "", "sudo: a password is required\n"),
            "nvidia-smi -q": DeviceRefusedError("h01: the host opens no more sessions"),
        }
    )
    folder, captured, _ = take(h01=host)
    assert problems_of(captured["h01"].manifest) == [
        "gpu failed: h01: the host opens no more sessions",
        "kernel denied: sudo: a password is required",
    ]
    (read,) = map(read_host, open_capture(folder).folders())
    assert read.snapshot.probes["kernel"].status is ProbeStatus.DENIED
    assert read.snapshot.probes["gpu"].detail == "h01: the host opens no more sessions"


def test_a_host_that_is_not_reached_is_in_the_capture(take):
    lost = HostSnapshot("h02", AT, reachable=False, error="h02: no SSH session in time", host_key_problem=True)
    folder, captured, said = take(h01=Host({}), h02=lost)
    assert captured["h02"].files == {}
    assert "h02: not reached: h02: no SSH session in time" in said
    read = {host.id: host.snapshot for host in map(read_host, open_capture(folder).folders())}
    assert (read["h01"].reachable, read["h02"].reachable) == (True, False)
    assert (read["h02"].error, read["h02"].host_key_problem) == ("h02: no SSH session in time", True)


def test_all_hosts_are_asked_at_once(take):
    together = threading.Barrier(2, timeout=10)

    class Meeting(Host):
        def run(self, command, *, timeout_s):
            if "-q -x" in command:
                together.wait()
            return super().run(command, timeout_s=timeout_s)

    take(h01=Meeting({}), h02=Meeting({}))


def test_a_host_that_was_not_done_when_somebody_gave_up_is_left_out(tmp_path):
    """What its sessions say of being closed is not the host's state."""
    given_up, told = threading.Event(), threading.Event()

    class Slow(Host):
        def run(self, command, *, timeout_s):
            given_up.wait(10)
            return super().run(command, timeout_s=timeout_s)

    prepare(tmp_path / "capture")
    hosts = {"h01": Host({"": KeyboardInterrupt()}), "h02": Slow({"sudo -n dmesg": XID})}
    bystanders = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        capture(
            Fleet(hosts),
            dict.fromkeys(hosts, PROBES),
            tmp_path / "capture",
            ABOUT,
            now=lambda: AT,
            narrate=lambda _: told.set(),
        )
    given_up.set()
    for thread in set(threading.enumerate()) - bystanders:
        thread.join(10)
    assert list((tmp_path / "capture").iterdir()) == []
    assert not told.is_set()


def test_nothing_is_ever_written_over(tmp_path):
    (tmp_path / "kept").write_text("precious")
    with pytest.raises(RefusedError, match="is not empty"):
        prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(UsageError, match="cannot use"):
        prepare(tmp_path / "kept")


def test_an_empty_folder_is_used_and_closed_to_others(tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True, mode=0o755)
    prepare(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_full_disk_leaves_no_half_host(take, tmp_path, monkeypatch):
    def full(path, _text):
        if path.name == "kernel.log":
            raise OSError(28, "No space left on device")
        path.write_text("")

    monkeypatch.setattr(bundle_write, "_write", full)
    with pytest.raises(UsageError, match="No space left"):
        take(h01=Host({"-q -x": "x", "sudo -n dmesg": XID}))
    assert list((tmp_path / "capture").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"schema": "lumctl/captured-host/v1"}',
        '{"schema": "lumctl/captured-host/v1", "taken_at": NaN}',
        '{"schema": "lumctl/captured-host/v1", "taken_at": 1e400}',
        '{"schema": "lumctl/captured-host/v1", "taken_at": true}',
        '{"schema": "lumctl/captured-host/v1", "taken_at": ' + "9" * 400 + "}",
        '{"schema": "lumctl/captured-host/v1", "taken_at": -1}',
    ],
)
def test_what_is_no_manifest(text):
    assert read_host_manifest(text, "h01") is None
    assert read_capture_manifest(text) is None


def test_nonsense_within_a_manifest_is_left_out():
    probes = [
        7,
        {},
        {"probe": "gpu", "taken_at": 1, "status": "lovely"},
        {"probe": "gpu", "taken_at": 1, "status": "ok"},
    ]
    document = {
        "schema": "lumctl/captured-host/v1",
        "taken_at": AT,
        "booted_at": "yesterday",
        "error": "a\nb\x1b[31m" + "x" * 9999,
        "probes": probes,
    }
    manifest = read_host_manifest(json.dumps(document), "h01")
    assert manifest.booted_at is None
    assert manifest.error.startswith("ab[31mxx")
    assert len(manifest.error) == 500
    assert [(asked.probe, asked.exit_status) for asked in manifest.probes] == [("gpu", None)]
    assert read_host_manifest(json.dumps({**document, "probes": {"a": 1}}), "h01").probes == ()


def test_a_file_in_which_the_driver_complains_says_what_the_host_said(tmp_path):
    (tmp_path / "h1").mkdir()
    said = "Failed to initialize NVML: Driver/library version mismatch"
    (tmp_path / "h1" / "nvidia-smi.xml").write_text(f"{said}\nNVML library version: 580.173\n")
    (host,) = map(read_host, open_capture(tmp_path).folders())
    outcome = host.snapshot.probes["gpu"]
    assert (outcome.status, outcome.detail) == (ProbeStatus.FAILED, said)
