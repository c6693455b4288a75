"""Records a golden journal with the program as it is: run it once for each new version of the store's schema.

    PYTHONPATH=. python tests/system/golden/record.py tests/system/golden/schema-N.sql

What it writes is kept for ever: every later version must read it, verify it and replay each of its runs to the same
end. So it is run by the version that writes schema N, before the next one is begun (of an older commit, in a folder to
which ``git archive COMMIT`` was unpacked), and its output is never edited. It uses what every version has, and leaves
out what one does not have.
"""

import sqlite3
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import lumctl.swap as swaps
from lumctl.change import apply
from lumctl.errors import LumctlError
from lumctl.inventory.load import load_inventory
from lumctl.sim.launch import launch
from lumctl.site import Site
from lumctl.store import store_at

RACK = Path(__file__).with_name("rack.yaml")
WHO = "ops@console from 10.0.0.7"


def record(out: Path) -> None:
    """Do one of everything on a simulator of the golden rack and write the store as SQL."""
    inventory = load_inventory(RACK)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "store"
        store = opened(str(folder))
        with (
            launch(inventory, folder=Path(scratch) / "sim", tied=True) as sim,
            Site(inventory, "sim", endpoints=sim.endpoints(), store=lambda _rack: store) as site,
        ):
            perform(site, sim, store)
        store.close()
        with closing(sqlite3.connect(folder / "lumctl.db")) as database:
            out.write_text("\n".join(database.iterdump()) + "\n", encoding="utf-8")


def opened(place: str) -> Any:
    """A store, opened for the rack where that can be said."""
    with suppress(TypeError):
        return store_at(place, rack="golden")
    return store_at(place)


def perform(site: Site, sim: Any, store: Any) -> None:
    """Program, swap, take back, fail, set, and say something."""
    apply(site, swaps.plan_fabric(site, "golden", placement={"pair": ("g1-gpu0", "g2-gpu0")}, forget=True), who=WHO)
    sim.inject("g2-gpu0", "gpu-lost")
    done = apply(site, swaps.plan_swap(site, "pair", ["g2-gpu0"]), who=WHO)
    sim.clear()
    apply(site, swaps.plan_rollback(site, store.run(done.run)), who=WHO)
    sim.inject("g2-gpu0", "gpu-lost")
    plan = swaps.plan_swap(site, "pair", ["g2-gpu0"])
    sim.inject("g3-gpu0-a", "dark")
    with suppress(LumctlError):  # no light: it is rolled back
        apply(site, plan, who=WHO)
    sim.clear()
    settings: Any = getattr(swaps, "plan_settings", None)
    if settings is not None:
        apply(site, settings(site, "g3-gpu0-a", ["transmit=off"]), who=WHO)
    if hasattr(store, "record_action"):
        about = {"rack": "golden", "component": "g2-gpu0"}
        ack = {**about, "act": "acknowledge", "rule": None, "comment": "the vendor is called", "for_s": 7200.0}
        work = {**about, "act": "open-window", "comment": "a new card", "starts_in_s": 0.0, "for_s": 3600.0}
        for kind, data in (("ack", ack), ("maintain", work), ("maintain", {**about, "act": "end-window"})):
            say(site, store, kind, data)


def say(site: Site, store: Any, kind: str, data: dict[str, Any]) -> None:
    """Record one action."""
    at = site.now()
    store.record_action(
        kind,
        f"{data['act']} {data['component']}",
        [{"title": f"{data['act']} {data['component']}", "data": data}],
        who=WHO,
        inventory_digest=site.inventory.digest,
        target="sim",
        at=at,
        end=at,
    )


if __name__ == "__main__":
    record(Path(sys.argv[1]))
