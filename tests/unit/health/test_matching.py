"""Whose reading is it: addresses decide, and where they leave a doubt nobody is guessed."""

from dataclasses import replace

import pytest

from lumctl.fleet.readings import GpuReading, HostSnapshot, XidEvent
from lumctl.health.identity import addresses, match_gpus
from lumctl.health.states import SEVERITY, State, worst

NOW = 1_800_000_000.0


@pytest.fixture
def four(rack):
    """The four accelerators of a host, with their addresses."""
    return rack.inventory.accelerators_of("h03")


@pytest.fixture
def listed(rack):
    return rack.hosts["h03"].gpus


def without_addresses(accelerators, *indices):
    return [replace(a, pci=None) if a.index in indices else a for a in accelerators]


def host(gpus, *, lost=(), xids=()):
    events = tuple(XidEvent(NOW, pci, 79, "") for pci in xids)
    return HostSnapshot("h03", NOW, reachable=True, gpus=tuple(gpus), lost_gpus=tuple(lost), xids=events)


def slots(accelerators, gpus, **more):
    return addresses(accelerators, match_gpus(accelerators, gpus), host(gpus, **more))


def test_the_worst_of_several_wins_and_nothing_is_ok_by_default():
    assert worst(()) is State.UNKNOWN
    assert [worst((State.OK, state)) for state in SEVERITY] == list(SEVERITY)


def test_the_address_decides_whatever_place_and_number_a_gpu_has(four, listed):
    shuffled = [replace(gpu, minor=3 - (gpu.minor or 0)) for gpu in reversed(listed)]
    assert {a.id: match_gpus(four, shuffled)[a.id].pci for a in four} == {a.id: a.pci for a in four}


def test_a_gpu_at_another_address_is_not_taken_for_the_one_that_is_missing(four, listed):
    moved = [replace(gpu, pci="0000:f0:00.0") if gpu.minor == 2 else gpu for gpu in listed]
    assert sorted(match_gpus(four, moved)) == ["h03-gpu0", "h03-gpu1", "h03-gpu3"]
    assert "h03-gpu2" not in match_gpus(four, [GpuReading(NOW, "0000:f0:00.0", minor=2)])


def test_a_gpu_with_another_uuid_is_not_either(four, listed):
    named = [replace(a, pci=None, uuid="GPU-abc") if a.index == 2 else a for a in four]
    assert "h03-gpu2" not in match_gpus(named, listed)


def test_a_stray_address_is_that_of_the_only_accelerator_without_one(four, listed):
    rest = [gpu for gpu in listed if gpu.minor != 2]
    for named in ({"lost": ["0000:f0:00.0"]}, {"xids": ["0000:f0:00"]}):
        assert slots(without_addresses(four, 2), rest, **named)["h03-gpu2"] == "0000:f0:00"


def test_of_two_accelerators_without_an_address_none_is_guessed(four, listed):
    rest = [gpu for gpu in listed if gpu.minor not in {1, 2}]
    assert sorted(slots(without_addresses(four, 1, 2), rest, xids=["0000:f0:00"])) == ["h03-gpu0", "h03-gpu3"]


def test_of_two_stray_addresses_none_is_guessed(four, listed):
    rest = [gpu for gpu in listed if gpu.minor != 2]
    named = slots(without_addresses(four, 2), rest, xids=["0000:f0:00"], lost=["0000:f1:00.0"])
    assert "h03-gpu2" not in named


def test_where_it_was_listed_before_decides_unless_another_gpu_is_there_now(four, listed):
    rest = [gpu for gpu in listed if gpu.minor not in {1, 2}]
    nameless = without_addresses(four, 1, 2)
    before = {"h03-gpu1": "0000:f0:00", "h03-gpu2": "0000:f1:00"}
    found = addresses(nameless, match_gpus(nameless, rest), host(rest, xids=["0000:f0:00"]), before)
    assert (found["h03-gpu1"], found["h03-gpu2"]) == ("0000:f0:00", "0000:f1:00")
    taken = {"h03-gpu1": str(listed[3].pci).removesuffix(".0")}
    found = addresses(nameless, match_gpus(nameless, rest), host(rest, xids=["0000:f0:00"]), taken)
    assert not {"h03-gpu1", "h03-gpu2"} & found.keys()


def test_an_address_that_the_inventory_states_is_not_changed_by_a_stray_one(four, listed):
    rest = [gpu for gpu in listed if gpu.minor != 2]
    assert slots(four, rest, xids=["0000:f0:00"])["h03-gpu2"] == str(four[2].pci).removesuffix(".0")


def test_an_address_that_is_somebody_s_is_no_stray(four, listed):
    rest = [gpu for gpu in listed if gpu.minor != 2]
    assert "h03-gpu2" not in slots(without_addresses(four, 2), rest, xids=[listed[0].pci])
