"""The simulator's own process: ``python -m lumctl.sim.server ORDER``, started only by :mod:`lumctl.sim.launch`.

When it is ready or has failed, it writes one line of JSON to stderr for its parent: ``{}`` or an error.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.sim import runtime
from lumctl.sim.simulator import Simulator


def serve(order: dict[str, Any]) -> None:
    """Run one simulator until it is asked to end.

    Raises:
        LumctlError: the simulator cannot start.
    """
    folder = Path(order["folder"])
    inventory = _inventory(order)
    with runtime.claimed(folder):
        simulator = Simulator(
            inventory, folder, change_ms=order["change_ms"], seed=order["seed"], lane_mbps=order["lane_mbps"]
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: simulator.ended.set())
        if order["tie"] is not None:
            threading.Thread(target=_follow, args=(order["tie"], simulator), name="tie", daemon=True).start()
        simulator.start()
        _ready({}, log=folder / runtime.LOG)
        simulator.ended.wait()
        simulator.stop()


def _inventory(order: dict[str, Any]) -> Inventory:
    inventory = load_inventory(Path(order["inventory"]))
    if inventory.digest != order["digest"]:
        raise RefusedError(f"{inventory.path} was changed while its simulator started", hint="start it again")
    return inventory


def _follow(tie: int, simulator: Simulator) -> None:
    """End the simulator when the parent ends: the parent's end of this pipe then closes, even if it is killed."""
    while os.read(tie, 1):
        pass
    simulator.ended.set()


def _ready(said: dict[str, Any], *, log: Path | None = None) -> None:
    """Report to the parent, and close the pipe to it; later output goes to the log."""
    sys.stderr.write(json.dumps(said) + "\n")
    sys.stderr.flush()
    if log is not None:
        to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(to, 1)
        os.dup2(to, 2)
        os.close(to)


def main() -> int:
    """Run the process; returns its exit status."""
    # Before anything is made: sockets, keys and logs are for this user only.
    os.umask(0o077)
    try:
        serve(json.loads(sys.argv[1]))
    except LumctlError as error:
        _ready({"error": error.message, "hint": error.hint, "exit_code": error.exit_code})
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
