import paramiko
import pytest

from lumctl.errors import UsageError
from lumctl.fleet.ssh.routes import read_config


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    folder.mkdir()
    return folder


def said(address, config_file=None):
    return paramiko.SSHConfig.from_text(read_config(config_file)).lookup(address)


def test_what_is_included_counts_where_it_stands(ssh):
    (ssh / "config").write_text("Include rack.conf\nUser late\n")
    (ssh / "rack.conf").write_text("Host h*\n  Port 2200\n  User operator\n")
    assert said("h1")["port"] == "2200"
    assert said("h1")["user"] == "operator"
    # What the included file opened ended with it.
    assert said("other")["user"] == "late"


def test_an_include_within_a_block_leaves_the_block_open(ssh):
    (ssh / "config").write_text("Host h*\n  include more\n  User mine\n")
    (ssh / "more").write_text("Port 7\nHost nobody\nUser wrong\n")
    assert (said("h1")["port"], said("h1")["user"]) == ("7", "mine")
    assert "user" not in said("x")


def test_patterns_are_read_in_order_and_may_match_nothing(ssh):
    (ssh / "conf.d").mkdir()
    (ssh / "conf.d" / "20").write_text("User second\nPort 2\n")
    (ssh / "conf.d" / "10").write_text("User first\n")
    (ssh / "config").write_text(f'Include conf.d/* "{ssh}/absent" ~/.ssh/none*\n')
    assert (said("h")["user"], said("h")["port"]) == ("first", "2")


def test_files_that_include_each_other_are_refused(ssh):
    (ssh / "config").write_text("Include config\n")
    with pytest.raises(UsageError, match="files deep"):
        read_config(None)


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        read_config(tmp_path / "config")
