"""A second daemon is refused and told of the first."""

import os
import subprocess
import sys

import pytest

from lumctl.daemon.process import exclusive_lock, lock_holder
from lumctl.errors import ExitCode, RefusedError, UsageError


def test_a_second_one_is_refused_and_named_the_first(tmp_path):
    lock = tmp_path / "new" / "watch.lock"
    with exclusive_lock(lock, "rack r1"), pytest.raises(RefusedError) as refused, exclusive_lock(lock, "rack r1"):
        pass
    assert refused.value.message == f"a daemon already watches rack r1 (pid {os.getpid()})"
    assert refused.value.exit_code is ExitCode.REFUSED
    with exclusive_lock(lock, "rack r1"):
        pass


def test_the_lock_dies_with_its_process(tmp_path):
    lock = tmp_path / "watch.lock"
    script = (
        "import os, pathlib, sys; from lumctl.daemon.process import exclusive_lock;"
        "held = exclusive_lock(pathlib.Path(sys.argv[1]), 'it'); held.__enter__(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(lock)], check=False).returncode == -9
    assert lock.read_text().isdigit()
    with exclusive_lock(lock, "it"):
        assert lock.read_text() == str(os.getpid())


def test_who_holds_it_can_be_asked_without_taking_it(tmp_path):
    lock = tmp_path / "lock"
    assert lock_holder(lock) is None
    with exclusive_lock(lock, "rack"):
        assert lock_holder(lock) == os.getpid()
    assert lock_holder(lock) is None


def test_a_full_disk_keeps_nobody_from_locking(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    lock = tmp_path / "watch.lock"
    monkeypatch.setattr("lumctl.daemon.process.os.pwrite", full)
    with exclusive_lock(lock, "it"), pytest.raises(RefusedError, match="pid unknown"), exclusive_lock(lock, "it"):
        pass


def test_a_place_where_no_lock_can_be_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make"), exclusive_lock(tmp_path / "file" / "watch.lock", "it"):
        pass


def test_a_link_that_another_user_left_in_place_of_the_lock_is_not_written_through(tmp_path):
    precious, lock = tmp_path / "precious", tmp_path / "gateway.lock"
    precious.write_text("keep this")
    lock.symlink_to(precious)
    with pytest.raises(UsageError, match="cannot make "), exclusive_lock(lock, "rack"):
        pass
    assert precious.read_text() == "keep this"
