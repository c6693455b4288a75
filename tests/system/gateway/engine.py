"""An engine among others: swaps and undoes, again and again, and stops itself now and then in the middle of it.

Its order, as JSON: ``inventory``, ``sim`` (the simulator's folder), ``store``, ``files``, ``socket`` (of the gateway),
``term_s`` (of its leases), ``seed``, ``stops`` (how likely it stops before a write) or ``stop_at`` or ``stop_after``
(the call before or after which it does), and ``once``. It prints a line of JSON after each change, until told to end.
"""

import json
import os
import random
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from lumctl import processes
from lumctl.change import interrupts

order = json.loads(sys.argv[1])
processes._boot_id = lambda: f"machine {order.get('seed', 0)}"  # else the next engine would end one that is stopped
interrupts.LEASE_TERM_S = order["term_s"]  # before the engine takes it up

from gateways import through  # noqa: E402

from lumctl.change import apply  # noqa: E402
from lumctl.change.resumption import abort, resume  # noqa: E402
from lumctl.context import Context  # noqa: E402
from lumctl.devices.endpoints import sim_endpoints  # noqa: E402
from lumctl.devices.gateway.client import Gateway  # noqa: E402
from lumctl.errors import LumctlError, RefusedError  # noqa: E402
from lumctl.inventory.load import load_inventory  # noqa: E402
from lumctl.json_lines import JsonLines  # noqa: E402
from lumctl.store import store_at  # noqa: E402
from lumctl.swap import plan_rollback, plan_swap  # noqa: E402

RACK, JOB, FAILED = "prototype", "finetune", "s1-gpu0"
dice = random.Random(order.get("seed", 0))  # noqa: S311 - no secret
inventory = load_inventory(Path(order["inventory"]))
endpoints = through(sim_endpoints(inventory, Path(order["sim"])), Path(order["socket"]), RACK)
place, files = order["store"], Path(order["files"])


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def stopping_before(send: Any) -> Any:
    """After the engine's own check of its lease, right before the bytes go to the gateway."""
    left = [order.get("stop_at")]

    def sent(self: JsonLines, said: Any, within_s: float) -> None:
        if left[0] is not None and left[0] == said.get("call"):
            left[0] = None
            stop()
        send(self, said, within_s)

    return sent


def stopping(ask: Any) -> Any:
    def asked(self: Gateway, request: Any, **how: Any) -> Any:
        if request.get("fence") is not None and dice.random() < order.get("stops", 0.0):
            stop()
        answer = ask(self, request, **how)
        if order.get("stop_after") == request["call"]:
            stop()
        return answer

    return asked


Gateway.ask = stopping(Gateway.ask)  # type: ignore[method-assign]
JsonLines.send = stopping_before(JsonLines.send)  # type: ignore[method-assign]


def change(context: Context) -> str:
    """Swap, or take back what stands; what was cut goes before, the newest first."""
    runs = context.store(RACK).runs.all()
    cut = [run for run in runs if run.state in {"running", "half-done"}]
    standing = [run for run in runs if run.kind == "swap" and run.state == "done"]
    if cut:
        act = dice.choice([abort, resume])
        return act(context, max(cut, key=lambda run: run.fence)).outcome
    last = max(standing, key=lambda run: run.fence, default=None)
    plan = plan_rollback(context, last) if last else plan_swap(context, JOB, [FAILED])
    # Its guard acts before the lease ends, or leaves that to the other engine.
    return apply(context, plan, revert_after_s=order.get("revert_after_s", dice.choice([-1.5, 60.0]))).outcome


told = False
while not told:
    try:
        with Context(
            inventory,
            "sim",
            endpoints=endpoints,
            store=lambda rack: store_at(place, files=files, rack=rack),
        ) as context:
            said = {"outcome": change(context)}
    except RefusedError as error:
        said = {"outcome": "refused", "why": error.message}
        threading.Event().wait(0.05)  # who holds the rack is given a moment
    except LumctlError as error:
        said = {"outcome": type(error).__name__, "why": error.message}
    print(json.dumps(said), flush=True)  # noqa: T201
    told = order.get("once", False) or bool(select.select([sys.stdin], [], [], 0)[0])
