"""``sim up --change-ms``: how long the changes of which device take."""

import pytest

from lumctl.cli.sim import _change_times
from lumctl.errors import UsageError
from lumctl.inventory.load import example, load_inventory


@pytest.fixture(scope="module")
def inventory():
    return load_inventory(example("switch-and-mesh"))


def test_a_time_is_for_all_devices_or_for_one_and_may_be_that_of_the_inventory(inventory):
    ids = [device.id for device in inventory.light_devices]
    written = {device.id: device.settle_ms for device in inventory.light_devices}
    assert len(ids) > 1
    assert _change_times(inventory, []) == {}
    assert _change_times(inventory, ["10"]) == dict.fromkeys(ids, 10.0)
    assert _change_times(inventory, [f"{ids[0]}=0.5"]) == {ids[0]: 0.5}
    assert _change_times(inventory, [f"{ids[0]}=0", "7"]) == {**dict.fromkeys(ids, 7.0), ids[0]: 0.0}
    assert _change_times(inventory, ["settle"]) == written
    assert _change_times(inventory, ["1", f"{ids[1]}=settle"]) == {**dict.fromkeys(ids, 1.0), ids[1]: written[ids[1]]}


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("fast", "'fast' is not a time in ms between 0 and 600000"),
        ("-1", "'-1' is not a time"),
        ("nan", "'nan' is not a time"),
        ("", "'' is not a time"),
        ("nothing=5", "the inventory has no mesh or switch 'nothing'"),
        ("=5", "'=5'|no mesh or switch ''"),
    ],
)
def test_nonsense_is_refused_with_a_hint(inventory, word, says):
    with pytest.raises(UsageError, match=says) as refused:
        _change_times(inventory, [word])
    assert refused.value.hint
