"""Clients of one netconfd that serves made-up joins."""

import contextlib

import pytest
from netconf_joins import NOTHING

from lumctl.devices.errors import DeviceError
from lumctl.devices.netconf import NetconfClient


@pytest.fixture(scope="module")
def joins_server(serve_netconf):
    return serve_netconf()


@pytest.fixture
def opened(joins_server):
    clients = []

    def open_one():
        clients.append(NetconfClient(joins_server.context(f"d{len(clients) + 1}")))
        return clients[-1]

    yield open_one
    for each in clients:
        with contextlib.suppress(DeviceError):
            each.cancel()
        each.close()


@pytest.fixture
def client(opened):
    """One that finds nothing joined, and nothing waiting to be confirmed."""
    first = opened()
    with first.locked("running", "candidate"):
        first.edit_config(NOTHING)
        first.commit()
    return first
