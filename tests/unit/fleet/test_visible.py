"""Of all that was gathered, what a snapshot may show."""

import pytest

from lumctl.devices.types import Neighbour, OpticsReading
from lumctl.fleet.host_readings import HostEvent, HostEventKind
from lumctl.fleet.probe_output import Gathered, visible
from lumctl.fleet.readings import (
    GpuReading,
    InfinibandPort,
    InterfaceReading,
    NicEvent,
    NicEventKind,
    NvlinkReading,
    PortCounters,
    ProbeOutcome,
    ProbeStatus,
    SxidEvent,
    XidEvent,
)

OLD, NEW = 100.0, 200.0
LISTS = {
    "gpus": lambda at: GpuReading(at, "0000:01:00.0"),
    "nvlinks": lambda at: NvlinkReading(at, 0, None, 0),
    "infiniband": lambda at: InfinibandPort("mlx5_0", 1, at),
}
TABLES = {
    "interfaces": lambda at: InterfaceReading("eth2", at),
    "counters": lambda at: PortCounters("eth2", at, {}),
    "optics": OpticsReading,
}
EVENTS = {
    "xids": XidEvent(1.0, "0000:01:00.0", 79, "fallen off the bus"),
    "sxids": SxidEvent(1.0, "0000:07:00.0", 19084, "link"),
    "nic_events": NicEvent(1.0, "eth2", None, NicEventKind.LINK_DOWN, "down"),
    "host_events": HostEvent(1.0, HostEventKind.NVME_RESET, "reset"),
}
GATHERED = Gathered(
    lost_gpus=("0000:03:00.0",),
    neighbours={"eth2": (Neighbour("leaf1", "p1", 3.0),)},
    **{name: (made(OLD), made(NEW)) for name, made in LISTS.items()},
    **{name: {"old": made(OLD), "new": made(NEW)} for name, made in TABLES.items()},
    **{name: (event,) for name, event in EVENTS.items()},
)


def outcome(probe, taken_at=NEW, status=ProbeStatus.OK):
    return {probe: ProbeOutcome(probe, status, taken_at, 0.1)}


def test_a_tick_shows_the_newest_of_everything():
    shown = visible(GATHERED, outcome("lldp", OLD), None)
    for name in (*LISTS, *TABLES, *EVENTS, "lost_gpus", "neighbours"):
        assert shown[name] == getattr(GATHERED, name), name


@pytest.mark.parametrize("name", LISTS)
def test_of_a_list_only_what_was_read_since(name):
    assert visible(GATHERED, {}, NEW)[name] == (LISTS[name](NEW),)
    assert visible(GATHERED, {}, NEW + 0.1)[name] == ()
    assert visible(GATHERED, {}, OLD)[name] == getattr(GATHERED, name)


@pytest.mark.parametrize("name", TABLES)
def test_of_a_table_only_what_was_read_since(name):
    assert visible(GATHERED, {}, NEW)[name] == {"new": TABLES[name](NEW)}
    assert visible(GATHERED, {}, NEW + 0.1)[name] == {}
    assert visible(GATHERED, {}, OLD)[name] == getattr(GATHERED, name)


@pytest.mark.parametrize("name", EVENTS)
def test_events_stay(name):
    assert visible(GATHERED, {}, NEW + 1)[name] == (EVENTS[name],)


def test_lost_gpus_are_as_old_as_the_answer_that_names_them():
    def shown(outcomes, since=NEW):
        return visible(GATHERED, outcomes, since)["lost_gpus"]

    assert shown({}, None) == shown(outcome("gpu", NEW)) == ("0000:03:00.0",)
    assert shown({}) == shown(outcome("gpu", OLD)) == ()


def test_neighbours_are_shown_only_where_their_table_was_read_well():
    def shown(outcomes, since):
        return visible(GATHERED, outcomes, since)["neighbours"]

    assert shown(outcome("lldp"), None) == shown(outcome("lldp"), NEW) == GATHERED.neighbours
    assert shown(outcome("lldp", OLD), NEW) == {}
    for since in (None, NEW):
        assert shown({}, since) == {}
        for status in set(ProbeStatus) - {ProbeStatus.OK}:
            assert shown(outcome("lldp", NEW, status), since) == {}


def test_what_was_gathered_is_not_changed():
    before = {name: getattr(GATHERED, name) for name in (*LISTS, *TABLES, "neighbours", "lost_gpus")}
    visible(GATHERED, {}, NEW + 1)
    assert {name: getattr(GATHERED, name) for name in before} == before
    assert len(GATHERED.optics) == 2
