"""Files that are there whole or not at all, and folders that only their owner may enter."""

import errno
import os
import stat

import pytest

from lumctl.errors import UsageError
from lumctl.files import make_private, put, write_whole


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_every_folder_that_is_made_is_private_whatever_the_umask(tmp_path, umask):
    tmp_path.chmod(0o755)
    before = os.umask(umask)
    try:
        make_private(tmp_path / "state" / "lumctl" / "rack")
        make_private(tmp_path / "state" / "lumctl" / "rack")
    finally:
        os.umask(before)
    made = [tmp_path / "state", tmp_path / "state/lumctl", tmp_path / "state/lumctl/rack"]
    assert [folder.stat().st_mode & 0o777 for folder in made] == [0o700] * 3
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("umask", [0o000, 0o077])
@pytest.mark.parametrize(("mode", "becomes"), [(0o600, 0o600), (0o644, 0o644), (None, 0o666)])
def test_a_file_has_the_mode_asked_for_whatever_the_umask(tmp_path, umask, mode, becomes):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", "text", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").read_text() == "text"
    assert (tmp_path / "file").stat().st_mode & 0o777 == (becomes & ~umask if mode is None else becomes)


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    order = []
    synchronise, move = os.fsync, type(tmp_path).replace

    def fsync(opened):
        order.append("folder" if stat.S_ISDIR(os.fstat(opened).st_mode) else "content")
        synchronise(opened)

    def replace(beside, path):
        order.append("name")
        return move(beside, path)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(type(tmp_path), "replace", replace)
    write_whole(tmp_path / "file", b"new")
    assert order == ["content", "name", "folder"]


def test_what_stood_there_stays_where_the_new_content_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")

    def full(_opened):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="file cannot be written: No space left on device"):
        put(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
