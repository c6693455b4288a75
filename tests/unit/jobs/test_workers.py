"""Asking the coordinator of a job where that cannot be done."""

import pytest

from lumctl.errors import UnreachableError
from lumctl.jobs.workers import ask


def test_a_path_that_is_too_long_for_a_socket_is_told_of(tmp_path):
    with pytest.raises(UnreachableError, match="cannot be asked: AF_UNIX path too long") as error:
        ask(tmp_path / ("long" * 40) / "c.sock", "status", timeout_s=1.0)
    assert "XDG_RUNTIME_DIR" in error.value.hint


def test_a_folder_that_may_not_be_entered_is_told_of(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreachableError, match="Not a directory"):
        ask(tmp_path / "file" / "c.sock", "status", timeout_s=1.0)


def test_nobody_there(tmp_path):
    assert ask(tmp_path / "c.sock", "status", timeout_s=1.0) is None
