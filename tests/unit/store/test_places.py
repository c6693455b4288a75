"""Where a rack's store is, and its simulator's: both follow $LUMCTL_STATE, and they never share a record."""

from pathlib import Path

import psycopg
import pytest

from lumctl.errors import UsageError
from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.model import Inventory
from lumctl.store import Record, Store, files_of, open_store, place_of, postgres, store_at
from lumctl.store.database import writing

RUN = {"kind": "swap", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}


@pytest.fixture
def inventory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Inventory:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return load_inventory(example("prototype"))


@pytest.fixture(params=["folder", "sqlite", "postgres"])
def named(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place of each kind in $LUMCTL_STATE."""
    places = {"folder": str(tmp_path / "folder"), "sqlite": f"sqlite:///{tmp_path / 'racks.db'}"}
    place = places.get(request.param) or str(request.getfixturevalue("emptied"))
    monkeypatch.setenv("LUMCTL_STATE", place)
    return place


def live(store: Store) -> None:
    lease = store.leases.acquire("prototype", "me", term_s=30.0, now=1.0)
    run = store.runs.begin(lease, RUN, {"digest": "d"}, now=1.0)
    store.runs.conclude(lease, run, Record(2.0, "outcome", "1", {}), states={"mesh": {0: "="}}, placed={"job": ("a",)})
    store.leases.release(lease)


@pytest.mark.usefixtures("named")
def test_a_simulator_shares_no_record_with_its_rack(inventory: Inventory) -> None:
    rack, sim = open_store(inventory, "prototype", "rack"), open_store(inventory, "prototype", "sim")
    live(sim)
    assert (rack.runs.all(), rack.fabric.assignment(), rack.journal.head().count, rack.leases.newest("prototype")) == (
        (),
        {},
        0,
        0,
    )
    live(rack)
    live(rack)
    assert (len(rack.runs.all()), len(sim.runs.all())) == (2, 1)
    assert rack.files != sim.files
    assert sim.files == files_of(inventory, "prototype", "sim")
    rack.close()
    # Another process, such as a revert guard, opens it by its place.
    again = store_at(sim.place, files=sim.files, rack="prototype", make=False)
    assert [run.state for run in again.runs.all()] == ["running"]
    assert again.fabric.assignment() == {"job": ("a",)}
    again.close()
    sim.close()


def test_the_store_of_a_simulator_is_where_the_variable_says(named: str, inventory: Inventory, tmp_path: Path) -> None:
    open_store(inventory, "prototype", "sim").close()
    if named.startswith("postgresql"):
        with psycopg.connect(named.replace("+psycopg", "")) as connection:
            found = connection.execute("SELECT table_schema FROM information_schema.tables WHERE table_name = 'runs'")
            assert [name for (name,) in found.fetchall()] == [place_of(inventory, "prototype", "sim").split("=")[-1]]
    else:
        assert not list((tmp_path / "lumctl").glob("**/*.db"))


def test_a_simulator_and_its_rack_do_not_wait_for_each_other(
    emptied: str, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUMCTL_STATE", emptied)
    monkeypatch.setitem(postgres._SETTINGS, "lock_timeout", "200ms")
    rack, sim = open_store(inventory, "prototype", "rack"), open_store(inventory, "prototype", "sim")
    with writing(rack._engine):
        sim.journal.remark("decision", {}, at=1.0, who="me")
    rack.close()
    sim.close()


@pytest.mark.parametrize("wrong", ["mysql://db/racks", "://", "postgresql+pg8000://db/x", "http://[::1/x"])
def test_a_place_that_will_not_do_is_refused_for_a_simulator_too(
    wrong: str, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LUMCTL_STATE", wrong)
    with pytest.raises(UsageError, match="the store's URL"):
        open_store(inventory, "prototype", "sim")
