"""Why a connection failed, in the same words for hosts, devices and receivers."""

import socket

import pytest

from lumctl import tcp
from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.http.failures import reason as http_reason
from lumctl.devices.ways import Direct
from lumctl.errors import is_unresolved
from lumctl.fleet.ssh.connect import _or_unreachable


def unresolved(kind):
    def create_connection(*_address, timeout):  # noqa: ARG001 - as the standard library's
        raise socket.gaierror(kind, "as the C library has it")

    return create_connection


@pytest.mark.parametrize(
    ("kind", "says"),
    [(socket.EAI_NONAME, "cannot be resolved"), (socket.EAI_AGAIN, "cannot be resolved: no name server answers")],
)
def test_an_unknown_name_is_named_in_the_same_words_by_every_connection(monkeypatch, kind, says):
    monkeypatch.setattr(socket, "create_connection", unresolved(kind))
    with pytest.raises(socket.gaierror) as failed:
        Direct("m1.example:65432").tcp(1, 1.0)
    text = tcp.reason(failed.value)
    assert text == f"name 'm1.example' {says}"
    assert is_unresolved(text)
    assert http_reason(failed.value) == text
    with pytest.raises(DeviceUnreachableError) as host:
        _or_unreachable("h01", 1.0, lambda: tcp.connect("m1.example", 22, 1.0))
    assert host.value.message == f"h01: {text}"


def test_other_reasons_are_short():
    assert tcp.reason(TimeoutError()) == "no answer in time"
    assert tcp.reason(ConnectionRefusedError(111, "Connection refused")) == "connection refused"
    assert tcp.reason(OSError()) == "OSError".lower()


def test_what_a_device_says_of_other_things_is_no_unknown_name():
    assert not is_unresolved("rail2: rpc-error: the leafref cannot be resolved")
