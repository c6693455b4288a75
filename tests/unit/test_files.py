"""Folders that only their owner may enter."""

import os

import pytest

from lumctl.files import make_private


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
