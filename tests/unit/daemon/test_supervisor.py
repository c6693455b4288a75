"""What systemd hears, if it listens."""

import socket

import pytest

from lumctl.daemon.process import notify_systemd


@pytest.mark.parametrize("abstract", [False, True])
def test_whoever_listens_hears_it(short, monkeypatch, abstract):
    address = f"{short}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0{address}" if abstract else address)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{address}" if abstract else address)
        notify_systemd("READY=1")
        supervisor.settimeout(10)
        assert supervisor.recv(64) == b"READY=1"


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/at/all", "vsock:1:2"])
def test_where_nobody_listens_nothing_happens(monkeypatch, address):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify_systemd("READY=1")
