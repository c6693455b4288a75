"""A simulated rack from the text of its inventory, and the drivers of its devices, for contract tests."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lumctl.devices.registry import DeviceSet
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import load_inventory
from lumctl.sim.launch import SimProcess, launch


@contextmanager
def simulated(rack: str) -> Iterator[SimProcess]:
    """Run the simulator on an inventory."""
    # A short path: the simulator's sockets are in it, and the name of a socket may have 107 bytes only.
    with tempfile.TemporaryDirectory(prefix="lumctl-") as folder:
        path = Path(folder) / "rack.yaml"
        path.write_text(rack)
        with launch(load_inventory(path), folder=Path(folder) / "sim", tied=True) as running:
            yield running


@contextmanager
def devices_of(simulator: SimProcess, fleet: Fleet) -> Iterator[DeviceSet]:
    """The drivers of a simulated rack, which know no states of devices that cannot be read."""
    opened = DeviceSet(
        simulator.inventory,
        simulator.endpoints(),
        shell_of=fleet.shell,
        way_of=fleet.way,
        known_states=lambda _device: {},
        now=time.time,
    )
    with closing(opened):
        yield opened


@contextmanager
def fleet_of(simulator: SimProcess, connect_timeout_s: float = 2.0) -> Iterator[Fleet]:
    """The hosts of a simulated rack. The short limit is for hosts that a test has made silent."""
    with closing(Fleet(simulator.inventory, simulator.endpoints(), connect_timeout_s=connect_timeout_s)) as fleet:
        yield fleet
