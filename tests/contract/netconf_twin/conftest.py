"""A served device of the simplest kind, and a client that nobody here wrote: ncclient."""

import contextlib
import socket
from typing import ClassVar
from xml.etree.ElementTree import Element, SubElement

import paramiko
import pytest
from ncclient import manager

from lumctl.sim import ssh
from lumctl.sim.netconf import NetconfServer, RpcError
from lumctl.sim.world.misbehaviour import Misbehaviour

BASE = "urn:ietf:params:xml:ns:netconf:base:1.0"
NS = "urn:example:shop"
Q = f"{{{NS}}}"


class Shop:
    """Things with prices; none may cost more than 100. What it was last told is ``sold``."""

    keys: ClassVar = {f"{Q}thing": (f"{Q}name",), f"{Q}tag": ()}

    def __init__(self):
        self.sold = {}

    def initial(self):
        root = Element("data")
        things = SubElement(root, f"{Q}things")
        for name, price in (("pen", 1), ("book", 20)):
            thing = SubElement(things, f"{Q}thing")
            SubElement(thing, f"{Q}name").text = name
            SubElement(thing, f"{Q}price").text = str(price)
        self.apply(root)
        return root

    def check(self, config):
        for thing in config.iter(f"{Q}thing"):
            name, price = thing.findtext(f"{Q}name"), thing.findtext(f"{Q}price")
            if price is not None and int(price) > 100:
                raise RpcError("invalid-value", "too dear", path=f"/things/thing[name='{name}']/price")

    def apply(self, config):
        self.sold = {t.findtext(f"{Q}name"): t.findtext(f"{Q}price") for t in config.iter(f"{Q}thing")}

    def state(self):
        root = Element("data")
        things = SubElement(root, f"{Q}things")
        for name in self.sold:
            thing = SubElement(things, f"{Q}thing")
            SubElement(thing, f"{Q}name").text = name
            SubElement(thing, f"{Q}stock").text = "7"
        return root


class Open:
    """A served shop. ``conduct`` and ``spoil`` may be set by a test."""

    def __init__(self, **options):
        self.shop = Shop()
        self.conduct = Misbehaviour()
        self.spoil = lambda _operation, answer: answer
        self._client_key = ssh.new_private_key()
        self.server = NetconfServer(
            "shop",
            self.shop,
            key=ssh.loaded(ssh.new_private_key()),
            client_key=ssh.loaded(self._client_key),
            conduct=lambda: self.conduct,
            **options,
        )
        self.server.spoil = self._sent
        self.server.service.open()
        self._clients = []
        self._raw = []

    def _sent(self, operation, answer):
        return self.spoil(operation, answer)

    def connect(self, folder, *, timeout_s=10, **options):
        path = folder / "key"
        path.write_text(self._client_key)
        path.chmod(0o600)
        login = {"key_filename": str(path)} | options
        client = manager.connect(
            host="127.0.0.1",
            port=self.server.service.port,
            username="lumctl",
            hostkey_verify=False,
            allow_agent=False,
            look_for_keys=False,
            timeout=timeout_s,
            device_params={"name": "default"},
            **login,
        )
        self._clients.append(client)
        return client

    def raw(self):
        """The subsystem as a bare channel."""
        transport = paramiko.Transport(socket.create_connection(("127.0.0.1", self.server.service.port)))
        self._raw.append(transport)
        transport.start_client(timeout=10)
        transport.auth_publickey("lumctl", ssh.loaded(self._client_key))
        channel = transport.open_session(timeout=10)
        channel.settimeout(10)
        channel.invoke_subsystem("netconf")
        return channel

    def close(self):
        for transport in self._raw:
            transport.close()
            transport.join(5)
        for client in self._clients:
            with contextlib.suppress(Exception):
                client._session.close()
        self.server.close()


@pytest.fixture
def served():
    """Open shops, and close them in the end."""
    every = []

    def serve(**options):
        every.append(Open(**options))
        return every[-1]

    yield serve
    for each in every:
        each.close()


@pytest.fixture
def shop(served):
    return served()


@pytest.fixture
def client(shop, tmp_path):
    return shop.connect(tmp_path)


@pytest.fixture
def priced():
    """The configuration that gives a thing a price, with an operation on the thing."""

    def config(name, price, operation=""):
        word = f' nc:operation="{operation}"' if operation else ""
        key = f"<name>{name}</name>" if name is not None else ""
        cost = f"<price>{price}</price>" if price is not None else ""
        thing = f"<thing{word}>{key}{cost}</thing>"
        return f'<nc:config xmlns:nc="{BASE}"><things xmlns="{NS}">{thing}</things></nc:config>'

    return config


@pytest.fixture
def prices():
    """The prices in a datastore, by things."""

    def read(client, source="running"):
        things = client.get_config(source).data.iter(f"{Q}thing")
        return {thing.findtext(f"{Q}name"): thing.findtext(f"{Q}price") for thing in things}

    return read
