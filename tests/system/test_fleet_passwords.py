"""Logging in to a device with the secret of its login. OpenSSH takes the system's passwords only: paramiko serves."""

import contextlib
import socket
import threading
import time
from pathlib import Path

import paramiko
import pytest

from lumctl.devices.endpoints import DeviceEndpoint
from lumctl.devices.errors import DeviceLoginError, DeviceUnreachableError
from lumctl.devices.logins import Login
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.routes import Routes
from lumctl.fleet.ways import SshWay
from lumctl.inventory.model import SshSettings

pytestmark = pytest.mark.usefixtures("ssh_client")

SECRET = "däs Licht"  # noqa: S105 - that is what it is called
TIMEOUT_S = 5.0


class Device(paramiko.ServerInterface):
    """Takes one password, told or asked for, and echoes on a subsystem; it answers no request for the one ``mute``."""

    def __init__(self, methods):
        self._methods = methods
        self.over = threading.Event()
        self.keys_offered = 0

    def get_allowed_auths(self, username):
        del username
        return self._methods

    def check_auth_publickey(self, username, key):
        del username, key
        self.keys_offered += 1
        return paramiko.AUTH_FAILED

    def check_auth_password(self, username, password):
        return paramiko.AUTH_SUCCESSFUL if (username, password) == ("admin", SECRET) else paramiko.AUTH_FAILED

    def check_auth_interactive(self, username, submethods):
        del username, submethods
        return paramiko.InteractiveQuery("", "", ("Password: ", False))

    def check_auth_interactive_response(self, responses):
        return paramiko.AUTH_SUCCESSFUL if responses == [SECRET] else paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        del kind, chanid
        return paramiko.OPEN_SUCCEEDED

    def check_channel_subsystem_request(self, channel, name):
        if name == "mute":
            self.over.wait(60)
        with contextlib.suppress(OSError):
            channel.sendall(f"this is {name}".encode())
        return True


@pytest.fixture
def serve():
    """Start a device that takes some methods of logging in; gives it, and how it is reached."""
    key, running = paramiko.ECDSAKey.generate(), contextlib.ExitStack()

    def start(folder, login, methods="password", **ssh):
        listener = running.enter_context(socket.create_server(("127.0.0.1", 0)))
        device, port = Device(methods), listener.getsockname()[1]

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    transport = paramiko.Transport(listener.accept()[0])
                    running.callback(transport.close)
                    transport.add_server_key(key)
                    with contextlib.suppress(paramiko.SSHException, EOFError):
                        transport.start_server(server=device, event=threading.Event())

        accepting = threading.Thread(target=accept)
        accepting.start()
        running.callback(accepting.join)
        running.callback(listener.shutdown, socket.SHUT_RDWR)
        running.callback(device.over.set)
        known = folder / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
        settings = SshSettings(user="admin", config_file=Path("/dev/null"), **ssh)
        endpoint = DeviceEndpoint("d1", f"127.0.0.1:{port}", settings, known, login=login)
        return device, SshWay(endpoint, Connector(timeout_s=TIMEOUT_S), Routes(), lambda _: None)

    yield start
    running.close()


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("methods", ["password", "keyboard-interactive", "publickey,password"])
def test_the_secret_lets_us_in(serve, tmp_path, secret_file, methods):
    device, way = serve(tmp_path, Login("admin", secret_file), methods)
    stream = way.subsystem("netconf", 830, TIMEOUT_S)
    stream.settimeout(TIMEOUT_S)
    assert stream.recv(100) == b"this is netconf"
    stream.close()
    assert device.keys_offered == 0


def test_the_secret_may_stand_in_a_variable(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("D1_SECRET", SECRET)
    _, way = serve(tmp_path, Login("admin", secret_variable="D1_SECRET"))  # noqa: S106 - its name
    way.subsystem("netconf", 830, TIMEOUT_S).close()


def test_a_key_that_was_chosen_is_offered_first(serve, tmp_path, secret_file):
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "key"))
    device, way = serve(tmp_path, Login("admin", secret_file), "publickey,password", key_file=tmp_path / "key")
    way.subsystem("netconf", 830, TIMEOUT_S).close()
    assert device.keys_offered == 1


def test_a_wrong_secret_is_refused_and_stands_in_no_message(serve, tmp_path, secret_file):
    secret_file.write_text("wrong-one")
    paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / "key"))
    for more, said in (
        ({}, "refused the password$"),
        ({"key_file": tmp_path / "key"}, "refused 1 key and the password$"),
    ):
        _, way = serve(tmp_path, Login("admin", secret_file), "publickey,password", **more)
        with pytest.raises(DeviceLoginError, match=said) as caught:
            way.subsystem("netconf", 830, TIMEOUT_S)
        assert "wrong-one" not in caught.value.message + str(caught.value.hint)


def test_a_secret_that_others_may_read_is_not_shown_to_anybody(serve, tmp_path, secret_file):
    secret_file.chmod(0o644)
    _, way = serve(tmp_path, Login("admin", secret_file))
    with pytest.raises(DeviceLoginError, match="other users may read it"):
        way.subsystem("netconf", 830, TIMEOUT_S)


def test_a_device_that_shows_another_key_is_not_shown_the_secret(serve, tmp_path):
    fetched = []

    class Watched(Login):
        def secret(self):
            fetched.append(True)
            return SECRET

    _, way = serve(tmp_path, Watched("admin", tmp_path / "secret"))
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(DeviceUnreachableError, match="is unknown"):
        way.subsystem("netconf", 830, TIMEOUT_S)
    assert not fetched


def test_a_device_that_does_not_answer_for_its_subsystem_is_given_up_in_time(serve, tmp_path, secret_file):
    _, way = serve(tmp_path, Login("admin", secret_file))
    started = time.monotonic()
    with pytest.raises(DeviceUnreachableError, match="no answer within 1 s about its subsystem mute"):
        way.subsystem("mute", 830, 1.0)
    assert time.monotonic() - started < TIMEOUT_S
