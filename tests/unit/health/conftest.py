"""A collected rack that is looked at again and again, with a memory."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lumctl.fleet.readings import HostSnapshot, PortCounters, Snapshot
from lumctl.health.memory import Memory
from lumctl.health.states import HealthReport
from lumctl.inventory.wiring import circuits_of

START = 1_800_000_000.0


class WatchedRack:
    """Looks at a collected rack: each look reads everything again, unless a host is named as frozen."""

    def __init__(self, rack) -> None:
        self.rack = rack
        self.memory = Memory()
        self.now = START
        self.frozen: set[str] = set()
        self.said: dict[str, Any] = {}

    def look(self, after: float = 10.0) -> HealthReport:
        self.now += after
        for name, host in self.rack.hosts.items():
            if name not in self.frozen:
                self.rack.hosts[name] = read_at(host, self.now)
        for name, reading in self.rack.devices.items():
            if name not in self.frozen:
                self.rack.devices[name] = replace(reading, taken_at=self.now)
        return self.judge()

    def judge(self) -> HealthReport:
        rack = self.rack
        self.report = self.memory.judge(
            rack.inventory,
            Snapshot(self.now, 0.1, dict(rack.hosts)),
            circuits_of(rack.inventory, rack.assignment),
            losses={},
            devices=rack.devices,
            now=self.now,
            **self.said,
        )
        return self.report

    def restart(self) -> None:
        """As a process does: what was remembered goes through JSON."""
        self.memory = Memory(json.loads(json.dumps(self.memory.document())))

    def count(self, transponder: str, name: str | None = None, **values: int) -> None:
        """Set what the port behind a transponder has counted."""
        lane = self.rack.inventory.transponders[transponder]
        name = name or lane.interface
        known = self.rack.hosts[lane.host].counters
        counted = known[name].values if name in known else {}
        port = PortCounters(name, self.now, {**counted, **values})
        self.rack.host(lane.host, counters={**known, name: port})

    def carrier(self, transponder: str, changes: int, *, up: bool = True) -> None:
        self.rack.interface(transponder, carrier_changes=changes, operstate="up" if up else "down")


def read_at(host: HostSnapshot, at: float) -> HostSnapshot:
    """The same readings, taken at another time."""
    return replace(
        host,
        taken_at=at,
        probes={name: replace(outcome, taken_at=at) for name, outcome in host.probes.items()},
        gpus=tuple(replace(gpu, taken_at=at) for gpu in host.gpus),
        nvlinks=tuple(replace(link, taken_at=at, errors_at=at) for link in host.nvlinks),
        interfaces={name: replace(reading, taken_at=at) for name, reading in host.interfaces.items()},
        infiniband=tuple(replace(port, taken_at=at) for port in host.infiniband),
        optics={name: replace(reading, taken_at=at) for name, reading in host.optics.items()},
        counters={name: replace(port, taken_at=at) for name, port in host.counters.items()},
    )


@pytest.fixture
def watch() -> Callable[[Any], WatchedRack]:
    """Begin to look at a collected rack, with a first look at which all is as it is."""

    def begin(rack: Any) -> WatchedRack:
        found = WatchedRack(rack)
        found.look()
        return found

    return begin


@pytest.fixture
def watched(rack, watch) -> WatchedRack:
    """The 64-accelerator example, well, and looked at once."""
    return watch(rack)
