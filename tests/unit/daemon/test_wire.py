"""What passes between the daemon and who asks it is what was seen."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumctl.daemon.client import decode, encode
from lumctl.devices.types import Alarm, DeviceReading
from lumctl.health.attention import Acknowledgement, CoveredFinding, MaintenanceWindow
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory


@pytest.mark.parametrize("name", ["prototype", "rack64"])
def test_a_look_arrives_as_it_was_but_for_unread_leaves(seen_of, pure, name):
    seen = seen_of(name)
    seen.group(next(iter(seen.inventory.hosts)), *list(seen.inventory.accelerators)[:3])
    seen.silent_hosts.add(list(seen.inventory.hosts)[-1])
    look = seen.look(
        unfinished=("swap-0001",),
        acknowledgements=(
            Acknowledgement("h", None, "ops", "known", 1.0, None),
            Acknowledgement("g", "gpu.lost", "ops", "x", 1.0, 2.0, (CoveredFinding("g", "gpu.lost", "", "failed"),)),
        ),
        windows=(MaintenanceWindow("w", "h", "ops", "", 1.0, 2.0),),
        devices={
            "d": DeviceReading(1.0, None, 1.0, (Alarm("psu", "CRITICAL", "", 0.5),), 31.0, {3: -math.inf}, {"x": "y"}),
            "e": DeviceReading(1.0, "gone"),
        },
    )
    data = encode(look)
    assert b"new_field" not in data
    back = decode(data, seen.inventory)
    assert back == pure(look)
    assert back.report.circuits[seen.circuits[0].id].ends[1].rx_power_dbm == -math.inf
    assert back.report.accelerators[seen.incidents[0].members[0]].state is State.FAILED


NUMBERS = st.floats(allow_nan=False)


@settings(max_examples=50)
@given(at=NUMBERS, seconds=NUMBERS, losses=st.dictionaries(st.text(max_size=5), NUMBERS, max_size=3), text=st.text())
def test_any_number_and_any_text_survive(at, seconds, losses, text):
    look = replace(LOOK, at=at, losses=losses, not_kept=text, snapshot=replace(LOOK.snapshot, seconds=seconds))
    assert decode(encode(look), LOOK.inventory) == look


@pytest.mark.parametrize("data", [b"", b"null", b"{}", b"[1]", b"\xff\xfe", b'{"at": "soon"}', b"[" * 10_000])
def test_what_is_no_look_is_a_value_error(data):
    with pytest.raises(ValueError, match=r"."):
        decode(data, LOOK.inventory)


def test_a_look_cut_short_is_none():
    data = encode(LOOK)
    json.loads(data)
    with pytest.raises(ValueError, match=r"."):
        decode(data[:-1], LOOK.inventory)


def _empty_look():
    from lumctl.fleet.readings import Snapshot
    from lumctl.health.states import HealthReport
    from lumctl.site.observation import Observation

    inventory = load_inventory(example("prototype"))
    return Observation(0.0, "sim", inventory, {}, (), {}, Snapshot(0.0, 0.0, {}), HealthReport(0.0, {}, {}, {}, {}, {}))


LOOK = _empty_look()
