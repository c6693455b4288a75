"""Serves a new look at many racks each second on the daemon's own socket: ``daemon.py INVENTORY TARGET FAILED...``."""

import signal
import sys
import threading
import time
from pathlib import Path

from looks import Looks

from lumctl.daemon.client import socket_path
from lumctl.daemon.history import LatestObservation
from lumctl.daemon.service import observation_server
from lumctl.inventory.load import load_inventory

EACH_S = 1.0


def main(path: str, target: str, *failed: str) -> None:
    """Serve until the process is told to end."""
    inventory = load_inventory(Path(path))
    looks, newest, ended = Looks(inventory, target=target), LatestObservation(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    place = socket_path(inventory, target)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    newest.put(looks.look(time.time(), failed=failed))
    with observation_server(place, newest):
        print("ready", flush=True)
        while not ended.wait(EACH_S):
            newest.put(looks.look(time.time(), failed=failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
