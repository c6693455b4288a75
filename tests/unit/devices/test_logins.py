"""Secrets come from a variable or a private file, each time they are needed, and stand in no message."""

import pytest

from lumctl.devices.errors import DeviceLoginError
from lumctl.devices.logins import Login


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("hunter2\n")
    path.chmod(0o600)
    return path


def test_a_private_file_holds_it(secret_file):
    login = Login("ops", secret_file)
    assert login.has_secret
    assert login.secret() == "hunter2"
    secret_file.write_text("changed\r\n")
    assert login.secret() == "changed"
    assert "changed" not in repr(login)


def test_a_variable_goes_before_the_file(secret_file, monkeypatch):
    login = Login("ops", secret_file, "SHELF_SECRET")
    assert login.secret() == "hunter2"
    monkeypatch.setenv("SHELF_SECRET", "from outside")
    assert login.secret() == "from outside"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_is_refused(secret_file, mode):
    secret_file.chmod(mode)
    with pytest.raises(DeviceLoginError, match="other users may read it") as error:
        Login("ops", secret_file).secret()
    assert error.value.hint == f"chmod 600 {secret_file}"
    assert "hunter2" not in str(error.value)


def test_what_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("SHELF_SECRET", raising=False)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "bytes").chmod(0o600)
    for login, says in (
        (Login("ops", tmp_path / "gone"), "cannot be read: No such file"),
        (Login("ops", tmp_path), "cannot be read"),
        (Login("ops", tmp_path / "bytes"), "is not text"),
        (Login("ops", None, "SHELF_SECRET"), r"\$SHELF_SECRET is not set"),
        (Login("ops"), "no secret is configured for user 'ops'"),
    ):
        with pytest.raises(DeviceLoginError, match=says):
            login.secret()
    assert not Login("ops").has_secret
