"""A small rack whose light is known by heart, with a clock that stands still unless a test moves it.

Its mesh has 2 x 1 cells. In bar ports 0 and 1 are joined, so hosts a and b hear each other; with PUCs 0 and 1 in
cross ports 0 and 3 are, so that a and c do. Host d has a lane with separate ports: it sends into 5 and hears port 2,
where c's light leaves in bar.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.inventory.model import (
    Accelerator,
    Device,
    DeviceKind,
    Evidence,
    Geometry,
    Host,
    Inventory,
    Job,
    Lane,
    PairLinks,
    Rack,
    Role,
    Thresholds,
    Transponder,
)
from lumctl.sim.hosts.commands import CommandAnswer, answer
from lumctl.sim.world.world import World

START = 1_800_000_000.0
LANES = {"a": (0, 0), "b": (1, 1), "c": (3, 3), "d": (5, 2)}


def small_inventory() -> Inventory:
    hosts = {name: Host(name, "r1", f"{name}.example") for name in LANES}
    accelerators = {
        f"{name}-gpu{index}": Accelerator(
            f"{name}-gpu{index}", name, "r1", "NVIDIA H100 80GB HBM3", 80, Role.ACTIVE, index, f"0000:{bus}:00.0"
        )
        for name in LANES
        for index, bus in enumerate(["1b", "9d"])
    }
    transponders = {
        f"{name}-t0": Transponder(
            id=f"{name}-t0",
            accelerator=f"{name}-gpu0",
            host=name,
            interface="eth2",
            lane=Lane("m1", tx, rx),
            driver="hostport",
            verify=(Evidence.LLDP,),
            tx_power_dbm=0.0,
            rx_sensitivity_dbm=-10.0,
        )
        for name, (tx, rx) in LANES.items()
    }
    mesh = Device("m1", "r1", DeviceKind.MESH, "sim-mesh", "", Geometry(2, 1), 16, 0.5, 1.0, 5.0)
    switch = Device("x1", "r1", DeviceKind.SWITCH, "sim-mesh", "", None, 8, 0.0, 1.0, 5.0)
    chassis = Device("k1", "r1", DeviceKind.CHASSIS, "no-such", "", None, 0, 0.0, 0.0, 0.0)
    power = Device("p1", "r1", DeviceKind.POWER, "no-such", "", None, 0, 0.0, 0.0, 0.0)
    return Inventory(
        path=Path("small.yaml"),
        digest="0" * 64,
        racks={"r1": Rack("r1")},
        hosts=hosts,
        accelerators=accelerators,
        transponders=transponders,
        devices={"m1": mesh, "x1": switch, "k1": chassis, "p1": power},
        jobs={"train": Job("train", "r1", ("a-gpu0", "b-gpu0"), (PairLinks(((0, 1),)),))},
        thresholds=Thresholds(),
    )


class Clock:
    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> float:
        return self.time


class Bench:
    """A world, its clock, and a shell on each of its hosts."""

    def __init__(self, inventory: Inventory) -> None:
        self.clock = Clock()
        self.world = World(inventory, seed=7, now=self.clock)

    def run(self, host: str, command: str) -> CommandAnswer:
        return answer(self.world, host, command, now=self.clock.time)

    def link(self, host: str):
        return self.world.link(host, "eth2")

    def hears(self, host: str) -> dict[str, float]:
        return {sender.host: age for sender, age, _ in self.link(host).neighbours}


@pytest.fixture
def inventory() -> Inventory:
    return small_inventory()


@pytest.fixture
def bench(make_bench) -> Bench:
    return make_bench()


@pytest.fixture(scope="session")
def make_bench():
    """Make a bench: for tests that need a fresh one for each example."""
    return lambda: Bench(small_inventory())


@pytest.fixture
def on_switch(inventory):
    """Makes the small rack with the lanes of its hosts on its switch, of which some fields differ."""

    def make(lanes, **changed):
        transponders = {
            name: replace(each, lane=Lane("x1", *lanes[each.host])) for name, each in inventory.transponders.items()
        }
        switch = replace(inventory.devices["x1"], **changed)
        return replace(inventory, devices={"x1": switch}, transponders=transponders)

    return make
