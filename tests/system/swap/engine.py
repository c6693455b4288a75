"""An engine in a process of its own, for tests that end it or stop it where they please.

Its order, as JSON: ``inventory``, ``folder`` (of the simulator and the store) and ``plan``; ``revert_after_s``; and
where it sends itself a ``signal``: ``before`` or ``after`` that many writes into the journal. It prints a line after
each step, and what the engine says when it fails; the exit status is that of the program.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from lumctl.change import apply, from_document
from lumctl.change.guard import Guard, arm
from lumctl.change.steps import REVERT_AFTER_S
from lumctl.devices.endpoints import sim_endpoints
from lumctl.errors import LumctlError
from lumctl.inventory.load import load_inventory
from lumctl.site import Site
from lumctl.store import Lease, Store, store_at

order = json.loads(sys.argv[1])
inventory, folder = load_inventory(Path(order["inventory"])), Path(order["folder"])
store = store_at(str(folder / "store"))
written = 0


def counted(name: str) -> None:
    """Count the writes of one kind, and send the signal where it is due."""
    real = getattr(Store, name)

    def write(*words: Any, **more: Any) -> Any:
        global written  # noqa: PLW0603 - there is one journal
        written += 1
        if order.get("before") == written:
            os.kill(os.getpid(), order["signal"])
        result = real(*words, **more)
        if order.get("after") == written:
            os.kill(os.getpid(), order["signal"])
        return result

    setattr(Store, name, write)


def armed(site: Site, lease: Lease, silent_s: float) -> Guard:
    """Arm the guard and write down which process it is."""
    guard = arm(site, lease, silent_s)
    (folder / "guard.pid").write_text(str(guard._process.pid))
    return guard


for kind in ("begin_run", "advance", "end_run"):
    counted(kind)
with Site(inventory, "sim", endpoints=sim_endpoints(inventory, folder / "sim"), store=lambda _rack: store) as site:
    try:
        apply(
            site,
            from_document(store.plan(order["plan"])),
            progress=lambda line: print(line, flush=True),  # noqa: T201
            revert_after_s=order.get("revert_after_s", REVERT_AFTER_S),
            arm=armed,
        )
    except LumctlError as error:
        print(error.message, flush=True)  # noqa: T201
        sys.exit(error.exit_code)
