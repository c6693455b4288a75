"""Gateways for tests: in a thread of the test's own process, or each in a process that can be stopped and killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lumctl.context import Context
from lumctl.daemon.gateway.service import service
from lumctl.devices.endpoints import Endpoints, GatewayEndpoint, sim_endpoints
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.store import store_at


def through(endpoints: Endpoints, socket: Path, rack: str = "r1") -> Endpoints:
    """The same endpoints, with a gateway before them."""
    return replace(endpoints, gateways={rack: GatewayEndpoint(socket)})


@contextmanager
def serving(
    inventory: Inventory,
    endpoints: Endpoints,
    store: str,
    socket: Path,
    *,
    rack: str = "r1",
    say: Callable[[str], None] = lambda _line: None,
) -> Iterator[Context]:
    """A gateway in this process."""
    files = socket.parent
    with (
        Context(
            inventory,
            endpoints.target,
            endpoints=endpoints,
            store=lambda _rack: store_at(store, files=files, rack=rack),
        ) as context,
        service(context, rack, socket, say),
    ):
        yield context


@contextmanager
def process(order: Mapping[str, Any]) -> Iterator["subprocess.Popen[str]"]:
    """A gateway in a process of its own, which serves when this begins: see ``__main__`` below for its order."""
    with subprocess.Popen(
        [sys.executable, __file__, json.dumps(order)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout.readline() == "serving\n"
            yield running
        finally:
            running.kill()


def _main(order: Mapping[str, Any]) -> None:
    inventory = load_inventory(Path(order["inventory"]))
    endpoints = sim_endpoints(inventory, Path(order["sim"]))
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731, T201
    with serving(inventory, endpoints, order["store"], Path(order["socket"]), rack=order["rack"], say=say):
        print("serving", flush=True)  # noqa: T201
        sys.stdin.read()


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
