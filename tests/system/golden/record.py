"""Records two stores: one run of every kind (schema-N.sql), and a swap with its rollback (swap-N.sql).

    PYTHONPATH=. python tests/system/golden/record.py

Run it when the schema changes. From 0.1.0 on each recording is kept: every later version must read it, verify it and
replay each run to the same end.
"""

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import lumctl.swap as swaps
from lumctl.change import apply
from lumctl.change.plan import to_document
from lumctl.context import Context
from lumctl.errors import LumctlError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.sim.launch import launch
from lumctl.store import Store, store_at
from lumctl.store.schema import SCHEMA_VERSION

HERE = Path(__file__).parent
WHO = "ops@console from 10.0.0.7"


def record(inventory: Inventory, perform: Callable[[Context, Any, Store], None], out: Path) -> None:
    """Perform runs on a simulator of the inventory's rack and write the store as SQL."""
    (rack,) = inventory.racks
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "store"
        store = store_at(str(folder), rack=rack)
        with (
            launch(inventory, folder=Path(scratch) / "sim", tied=True) as sim,
            Context(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as context,
        ):
            perform(context, sim, store)
        store.close()
        with closing(sqlite3.connect(folder / "lumctl.db")) as database:
            out.write_text("\n".join(database.iterdump()) + "\n", encoding="utf-8")


def swap_and_rollback(context: Context, sim: Any, store: Store) -> None:
    """Program, swap, roll back."""
    apply(context, swaps.plan_fabric(context, "prototype"), who=WHO)
    sim.inject("s1-gpu0", "gpu-lost")
    plan = swaps.plan_swap(context, "finetune", ["s1-gpu0"])
    store.runs.save_plan(to_document(plan))
    done = apply(context, plan, who=WHO)
    sim.clear()
    apply(context, swaps.plan_rollback(context, store.runs.get(done.run)), who=WHO)
    store.journal.remark("decision", {"act": "nothing"}, at=context.now(), who=WHO)


def everything(context: Context, sim: Any, store: Store) -> None:
    """Program, swap, take back, fail, set, and say something."""
    apply(
        context, swaps.plan_fabric(context, "golden", placement={"pair": ("g1-gpu0", "g2-gpu0")}, forget=True), who=WHO
    )
    sim.inject("g2-gpu0", "gpu-lost")
    done = apply(context, swaps.plan_swap(context, "pair", ["g2-gpu0"]), who=WHO)
    sim.clear()
    apply(context, swaps.plan_rollback(context, store.runs.get(done.run)), who=WHO)
    sim.inject("g2-gpu0", "gpu-lost")
    plan = swaps.plan_swap(context, "pair", ["g2-gpu0"])
    sim.inject("g3-gpu0-a", "dark")
    with suppress(LumctlError):  # no light: it is rolled back
        apply(context, plan, who=WHO)
    sim.clear()
    apply(context, swaps.plan_settings(context, "g3-gpu0-a", ["transmit=off"]), who=WHO)
    about = {"rack": "golden", "component": "g2-gpu0"}
    ack = {**about, "act": "acknowledge", "rule": None, "comment": "the vendor is called", "for_s": 7200.0}
    work = {**about, "act": "open-window", "comment": "a new card", "starts_in_s": 0.0, "for_s": 3600.0}
    for kind, data in (("ack", ack), ("maintain", work), ("maintain", {**about, "act": "end-window"})):
        record_action(context, store, kind, data)


def record_action(context: Context, store: Store, kind: str, data: dict[str, Any]) -> None:
    """Record one action."""
    at = context.now()
    store.actions.record(
        kind,
        f"{data['act']} {data['component']}",
        [{"title": f"{data['act']} {data['component']}", "data": data}],
        who=WHO,
        inventory_digest=context.inventory.digest,
        target="sim",
        at=at,
        end=at,
    )


if __name__ == "__main__":
    record(load_inventory(HERE / "rack.yaml"), everything, HERE / f"schema-{SCHEMA_VERSION}.sql")
    record(load_inventory(example("prototype")), swap_and_rollback, HERE / f"swap-{SCHEMA_VERSION}.sql")
