"""The token of a job: made once, whole, and never an empty one."""

import os
import stat

import pytest

from lumctl.errors import RefusedError, UsageError
from lumctl.training import job_folder
from lumctl.training.job_folder import TOKEN, token_of


def test_it_is_made_once_and_private(tmp_path):
    token = token_of(tmp_path)
    assert len(bytes.fromhex(token)) == 32
    assert token_of(tmp_path) == token
    assert stat.S_IMODE((tmp_path / TOKEN).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [TOKEN]


@pytest.mark.parametrize("cut", ["", "\n", "0123abcd"])
def test_one_that_was_cut_off_is_refused(tmp_path, cut):
    (tmp_path / TOKEN).write_text(cut)
    with pytest.raises(RefusedError, match="contains no token"):
        token_of(tmp_path)


def test_a_disk_that_is_full_leaves_none(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(job_folder.os, "fsync", full)
        with pytest.raises(UsageError, match="cannot be written: No space left on device"):
            token_of(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert token_of(tmp_path)


def test_who_comes_second_takes_the_first_one(tmp_path, monkeypatch):
    link = os.link

    def late(beside, path):
        path.write_text("ab" * 32)
        link(beside, path)

    monkeypatch.setattr(job_folder.os, "link", late)
    assert token_of(tmp_path) == "ab" * 32
