"""Folders of a capture as anybody may hand them in: nothing is followed, nothing is waited for, nothing raises."""

import os
import socket

import pytest

from lumctl.errors import UsageError
from lumctl.fleet.bundle import files as bundle_files
from lumctl.fleet.bundle.files import open_capture, shown

OUTSIDE = "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, secret"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "capture"
    (made / "h01").mkdir(parents=True)
    (tmp_path / "outside.log").write_text(OUTSIDE)
    return made


def only(path):
    (host,) = open_capture(path).folders()
    return host


def refused(host):
    return dict(host.refused)


def test_files_are_read_and_others_passed_over(folder):
    (folder / "h01" / "dmesg.txt").write_bytes(b"\xef\xbb\xbf[ 1.5] caf\xc3\xa9 \xff\n")
    (folder / "h01" / "README.md").write_text("dmesg")
    (folder / "h01" / "notes.txt").write_text("dmesg")
    (folder / "h01" / ".hidden.log").write_text("dmesg")
    (folder / "h01" / "kernel.d").mkdir()
    host = only(folder)
    assert host.id == "h01"
    (file,) = host.files
    assert (file.name, file.content.probe, file.text) == ("dmesg.txt", "kernel", "[ 1.5] café �\n")
    assert file.modified == (folder / "h01" / "dmesg.txt").stat().st_mtime
    assert host.refused == ()


def test_no_link_is_followed_be_it_a_file_or_a_host(folder):
    (folder / "h01" / "kernel.log").symlink_to("../../outside.log")
    (folder / "h01" / "dmesg.log").symlink_to("kernel.log")
    (folder / "h01" / "unknown").symlink_to("../../outside.log")
    (folder / "h02").symlink_to("..")
    host, linked = open_capture(folder).folders()
    assert host.files == linked.files == ()
    why = "is a link, and links are not followed"
    assert refused(host) == {"kernel.log": why, "dmesg.log": why}
    assert refused(linked) == {"h02": why}


def test_what_never_ends_or_never_begins_is_not_opened(folder):
    os.mkfifo(folder / "h01" / "kernel.log")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "h01" / "dmesg.log"))
        assert set(refused(only(folder))) == {"kernel.log", "dmesg.log"}


def test_a_huge_file_is_not_read(folder, monkeypatch):
    with (folder / "h01" / "kernel.log").open("wb") as file:
        file.truncate(bundle_files.MAX_FILE_BYTES + 1)
    assert refused(only(folder)) == {"kernel.log": "is larger than 32 MiB"}
    monkeypatch.setattr(bundle_files, "MAX_HOST_BYTES", 3 * 2**20)
    for number in range(3):
        (folder / "h01" / f"kern.log.{number}").write_bytes(b"x" * 2**20)
    (folder / "h01" / "kern.log.9").write_bytes(b"x")
    assert set(refused(only(folder))) == {"kernel.log", "kern.log.9"}


def test_a_file_that_may_not_be_read(folder, monkeypatch):
    (folder / "h01" / "kernel.log").write_text(OUTSIDE)
    opened = os.open

    def denied(path, *arguments, **named):
        if path == "kernel.log":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **named)

    monkeypatch.setattr(os, "open", denied)
    assert refused(only(folder)) == {"kernel.log": "Permission denied"}


def test_no_end_of_files(folder, monkeypatch):
    monkeypatch.setattr(bundle_files, "MAX_FILES", 2)
    for number in range(5):
        (folder / "h01" / f"kern.log.{number}").write_text("x")
    host = only(folder)
    assert len(host.files) == 2
    assert refused(host) == {"3 files": "beyond the first 2, which are the only ones read"}


def test_a_folder_of_one_host(folder):
    (folder / "kernel.log").write_text(OUTSIDE)
    (folder / "other things").mkdir()
    capture = open_capture(folder)
    assert capture.alone
    (host,) = (host for host in capture.folders() if host.files)
    assert host.id == "capture"
    assert [host.id for host in open_capture(folder).folders()] == ["capture"], "h01 is empty, and so of no interest"


def test_a_host_is_named_like_its_folder_even_from_within(folder, monkeypatch):
    (folder / "h01" / "kernel.log").write_text(OUTSIDE)
    monkeypatch.chdir(folder / "h01")
    assert only(type(folder)(".")).id == "h01"


def test_hostile_names_of_hosts(folder):
    (folder / "h01").rmdir()
    names = [b"a\nb", b"\xff\xfe", b"%41", b"\x1b[31mred", "ж".encode()]
    for name in names:
        (folder / os.fsdecode(name)).mkdir()
    hosts = [host.id for host in open_capture(folder).folders()]
    assert sorted(hosts) == sorted(["a%0Ab", "%FF%FE", "%2541", "%1B[31mred", "ж"])
    assert all(host.encode() and host.isprintable() for host in hosts)


@pytest.mark.parametrize("name", ["h01", "r17-h01.example.org", "a b"])
def test_ordinary_names_stay_as_they_are(name):
    assert shown(name) == name


def test_nothing_there_says_what_to_do(folder, tmp_path):
    (folder / "h01").rmdir()
    (folder / "README.md").write_text("hello")
    for path in (folder, tmp_path / "absent", tmp_path / "outside.log", type(folder)("a\0b")):
        with pytest.raises(UsageError, match="lumctl fleet capture") as error:
            open_capture(path)
        assert "\n" not in error.value.message


def test_more_folders_than_hosts(folder, monkeypatch):
    monkeypatch.setattr(bundle_files, "MAX_HOSTS", 1)
    (folder / "h02").mkdir()
    with pytest.raises(UsageError, match="contains 2 folders"):
        open_capture(folder)
