"""An engine in a process of its own, for tests that end it or stop it where they please.

Its order, as JSON: ``inventory``, ``folder`` (of the simulator and the store) and ``plan``; ``revert_after_s``; and
where it sends itself a ``signal``: ``before`` or ``after`` that many writes into the journal; ``stands_after`` is the
step after which it stops itself. ``term_s`` is that of its lease, ``place`` that of the store where it is not in the
folder; ``elsewhere``: it takes itself for a process of another machine. It prints a line after each step, and what
the engine says when it fails; the exit status is that of the program.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from lumctl import processes
from lumctl.store import clock

order = json.loads(sys.argv[1])
clock.TERM_S = order.get("term_s", clock.TERM_S)  # before the engine takes it up
if order.get("elsewhere"):
    processes._boot_id = lambda: "the start of another machine"

from lumctl.change import apply, from_document  # noqa: E402
from lumctl.change.guard import Guard, arm  # noqa: E402
from lumctl.change.step_actions import REVERT_AFTER_S  # noqa: E402
from lumctl.context import Context  # noqa: E402
from lumctl.devices.endpoints import sim_endpoints  # noqa: E402
from lumctl.errors import LumctlError  # noqa: E402
from lumctl.inventory.load import load_inventory  # noqa: E402
from lumctl.store import Lease, store_at  # noqa: E402
from lumctl.store.runs import Runs  # noqa: E402

inventory, folder = load_inventory(Path(order["inventory"])), Path(order["folder"])
store = store_at(order.get("place", str(folder / "store")), files=folder / "store", rack=order.get("rack", ""))
written = 0


def counted(name: str) -> None:
    """Count the writes of one kind, and send the signal where it is due."""
    real = getattr(Runs, name)

    def write(*words: Any, **more: Any) -> Any:
        global written  # noqa: PLW0603 - there is one journal
        written += 1
        if order.get("before") == written:
            os.kill(os.getpid(), order["signal"])
        result = real(*words, **more)
        if order.get("after") == written:
            os.kill(os.getpid(), order["signal"])
        return result

    setattr(Runs, name, write)


def armed(context: Context, lease: Lease, silent_s: float) -> Guard:
    """Arm the guard and record which process it is."""
    guard = arm(context, lease, silent_s)
    (folder / "guard.pid").write_text(str(guard._process.pid))
    return guard


def told(line: str) -> None:
    print(line, flush=True)  # noqa: T201
    if line.startswith(f"{order.get('stands_after')}. "):
        os.kill(os.getpid(), signal.SIGSTOP)


for kind in ("begin", "advance", "end"):
    counted(kind)
with Context(
    inventory, "sim", endpoints=sim_endpoints(inventory, folder / "sim"), store=lambda _rack: store
) as context:
    try:
        apply(
            context,
            from_document(store.runs.plan(order["plan"])),
            progress=told,
            revert_after_s=order.get("revert_after_s", REVERT_AFTER_S),
            arm=armed,
        )
    except LumctlError as error:
        print(error.message, flush=True)  # noqa: T201
        sys.exit(error.exit_code)
