"""Makes engines: each a process of its own, forked from this one, so that it starts in milliseconds.

Orders come as lines of JSON, one at a time: ``inventory``, ``folder`` (of the simulator, and of what the engine says),
``place`` (of the store) and ``plan``; ``at``, the number of a moment, and ``do``, what happens there; see moments.py.
With ``resume`` or ``abort``, a run's id, it is that which is done. ``sync`` sets SQLite's synchronous mode, ``clock``
how far ahead the machine's clock is. ``elsewhere``: the engine takes itself for a process of another machine;
``term_s`` is that of its leases, ``revert_after_s`` how long its guard waits. Answered are the engine's process id,
whatever it asks, and its exit status.
"""

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

import lumctl_hostport
import lumctl_smartlight
import paramiko
from moments import Moments
from sqlalchemy import event

import lumctl.change.interrupts
import lumctl.change.run_journal
import lumctl.devices.registry  # what an engine loads when it first needs it: a fork has it
import lumctl.fleet.fleet
from lumctl import processes
from lumctl.change import apply, from_document
from lumctl.change.guard import Guard, arm
from lumctl.change.resumption import abort, resume
from lumctl.change.step_actions import REVERT_AFTER_S
from lumctl.context import Context
from lumctl.devices.endpoints import sim_endpoints
from lumctl.errors import LumctlError
from lumctl.inventory.load import load_inventory
from lumctl.store import Lease, store_at

LOADED = (lumctl.devices.registry, lumctl.fleet.fleet, lumctl_hostport, lumctl_smartlight, paramiko)
PR_SET_CHILD_SUBREAPER = 36
Line = Callable[[], bytes]


def say(**words: object) -> None:
    """Answer the test, in one write."""
    os.write(1, json.dumps(words).encode() + b"\n")


def engine(order: Mapping[str, Any], line: Line) -> int:
    """Apply a plan as the program does; its words go into files."""
    folder = Path(order["folder"])
    if order.get("elsewhere"):
        processes._boot_id = lambda: "the start of another machine"
    for module in (lumctl.change.engine, lumctl.change.interrupts, lumctl.change.run_journal, lumctl.change.resumption):
        module.LEASE_TERM_S = order.get("term_s", module.LEASE_TERM_S)
    inventory = load_inventory(Path(order["inventory"]))
    moments = Moments(order, lambda: _asked(line))
    store = store_at(order["place"], files=folder / "store")
    moments.watch(store)
    if order.get("sync"):
        event.listen(store._engine, "connect", lambda c, _: c.execute(f"PRAGMA synchronous={order['sync']}"))
        store._engine.dispose()

    def armed(context: Context, lease: Lease, silent_s: float) -> Guard:
        guard = arm(context, lease, silent_s)
        moments.guard = guard._process.pid
        (folder / "guard.pid").write_text(str(moments.guard))
        return guard

    with (
        (folder / "said").open("w", buffering=1) as said,
        redirect_stdout(said),
        Context(
            inventory,
            "sim",
            endpoints=sim_endpoints(inventory, folder / "sim"),
            store=lambda _rack: store,
            now=moments.now,
        ) as context,
    ):
        try:
            plan = from_document(store.runs.plan(order["plan"]))
            say(engine=os.getpid())
            if order.get("resume"):
                resume(context, store.runs.get(order["resume"]), progress=print, arm=armed)
            elif order.get("abort"):
                abort(context, store.runs.get(order["abort"]))
            else:
                revert_after_s = order.get("revert_after_s", REVERT_AFTER_S)
                apply(context, plan, progress=print, arm=armed, revert_after_s=revert_after_s)
        except LumctlError as error:
            print(error.message, *([f"hint: {error.hint}"] if error.hint else []), sep="\n")  # noqa: T201
            return int(error.exit_code)
        finally:
            (folder / "moments").write_text("".join(f"{label}\n" for label in moments.labels))
    return 0


def _asked(line: Line) -> Mapping[str, Any]:
    say(asks=True)
    return dict(json.loads(line()))


def _reap() -> None:
    """Guards outlive their engines and come to us."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Fork an engine for each order."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    lines = open(0, "rb", buffering=0)  # noqa: SIM115 - unbuffered: the engine reads from it as well
    while order := lines.readline():
        _reap()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.setsid()
                status = engine(json.loads(order), lines.readline)
            except BaseException:  # noqa: BLE001 - the end of a fork
                traceback.print_exc(file=sys.stderr)
            finally:
                sys.stderr.flush()
                os._exit(status)
        say(status=os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    main()
