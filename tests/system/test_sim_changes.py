"""A simulated switch whose changes take time: it answers when its light has settled, and lanes lose no byte."""

import json
import socket
import threading
import time
from pathlib import Path

import pytest
from waiting import until

from lumctl.context import Context
from lumctl.devices import transaction
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.client import ask
from lumctl.sim.launch import launch
from lumctl.store import store_at

CHANGE_S = 0.3


@pytest.fixture(scope="module")
def rails(tmp_path_factory):
    """Two rails, of which only rail0 takes time, and the drivers of both."""
    folder = tmp_path_factory.mktemp("r")
    inventory = load_inventory(example("rails"))
    with (
        launch(inventory, folder=folder / "sim", change_ms={"rail0": CHANGE_S * 1000}, tied=True) as sim,
        Context(
            inventory, "sim", endpoints=sim.endpoints(), store=lambda rack: store_at(str(folder / "store"), rack=rack)
        ) as context,
    ):
        yield sim, context


def write(context, joins, device="rail0"):
    """Write joins and read them back; return how long that took, in seconds."""
    driver = context.devices.switch(device)
    cells = [(ingress, None, egress) for ingress, egress in joins.items()]
    began = time.monotonic()
    transaction.write(driver, transaction.stage(driver, cells))
    return time.monotonic() - began


def joined(path: Path, source: str, sink: str) -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection over lanes."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        request = {"from": source, "to": sink, "address": listener.getsockname()}
        asking.sendall(json.dumps(request).encode() + b"\n")
        near = socket.create_connection(json.loads(asking.recv(4096))["endpoint"])
        return near, listener.accept()[0]


def test_bytes_wait_for_the_light_of_a_change_and_none_is_lost(rails):
    sim, context = rails
    dark = lambda: ask(sim.control, "status")["lanes"]["dark"]  # noqa: E731
    write(context, {0: "1"})
    near, far = joined(context.endpoints.lanes, "h1-gpu0", "h2-gpu0")
    with near, far:
        near.sendall(b"first")
        assert far.recv(5) == b"first"
        away = threading.Thread(target=write, args=(context, {0: "2"}))
        away.start()
        # From the beginning of the change on, and not from its end.
        until(lambda: dark() == 1)
        near.sendall(b"second")
        away.join()
        far.settimeout(0.1)
        with pytest.raises(TimeoutError):
            far.recv(6)
        far.settimeout(10)
        assert write(context, {0: "1"}) >= CHANGE_S
        assert far.recv(6) == b"second"


def test_a_switch_that_is_not_named_takes_no_time_and_both_are_logged(rails):
    sim, context = rails
    before = max((each.number for each in sim.writes()), default=0)
    write(context, {2: "3"}, "rail1")
    write(context, {2: "3"})
    assert [(each.device, each.what) for each in sim.writes(before)] == [("rail1", "makes 2-3"), ("rail0", "makes 2-3")]
