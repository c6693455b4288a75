"""What the dashboard reads of the past: from the store of the component's rack, opened again after it has failed."""

import pytest

from lumctl.cli.top.command import Historian
from lumctl.inventory.load import example, load_inventory
from lumctl.store import StoreError, open_store
from lumctl.store.packed_hours import Values

NOW = 1_800_000_000.0
GPU = "s1-gpu0"


@pytest.fixture
def inventory(monkeypatch, tmp_path):
    monkeypatch.delenv("LUMCTL_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return load_inventory(example("prototype"))


@pytest.fixture
def kept(inventory):
    """A store with the power and the temperature of ten minutes, and a name that is not known here."""
    store = open_store(inventory, "prototype", "sim")
    one = {
        "power": Values(299.0, 300.0, 301.0),
        "temperature": Values(50.0, 51.0, 52.0),
        "of tomorrow": Values(1, 1, 1),
    }
    store.readings.add({int(NOW // 60) - back: {GPU: one} for back in range(1, 11)})
    store.close()


@pytest.mark.usefixtures("kept")
def test_each_reading_is_a_series_with_its_unit(inventory):
    with Historian(inventory, "sim", lambda: NOW) as history:
        temperature, power = history(GPU, 300)
    assert (temperature.name, temperature.unit, power.name, power.unit) == ("temperature", "C", "power", "W")
    assert [NOW - point.at for point in power.points] == [300, 240, 180, 120, 60]
    assert power.points[0][1:4] == (299.0, 300.0, 301.0)


@pytest.mark.usefixtures("kept")
def test_the_rack_has_a_store_of_its_own_and_what_is_in_no_rack_has_none(inventory):
    with Historian(inventory, "rack", lambda: NOW) as history:
        assert history(GPU, 300) == ()
        assert history("finetune/0-1", 300) == ()


@pytest.mark.usefixtures("kept")
def test_a_store_that_failed_is_opened_anew(inventory, monkeypatch):
    with Historian(inventory, "sim", lambda: NOW) as history:
        assert history(GPU, 300)
        store = history._stores["prototype"]

        def fails(*_, **__):
            raise StoreError("the store cannot be read")

        monkeypatch.setattr(store.readings, "of", fails)
        with pytest.raises(StoreError):
            history(GPU, 300)
        assert history(GPU, 300)
        assert history._stores["prototype"] is not store
