"""Simulators for tests: each in a private runtime folder, ended with the test or by the death of the test process.

``simulate("prototype")`` starts one of an example inventory (or of any inventory file) and gives a ``Simulated``:
``inventory, endpoints = simulate("prototype")``. It is dark: nothing is programmed yet. Faults and the true state of
its meshes are at hand through ``simulated.process.inject(...)`` and ``.clear()``, and ``simulated.mesh(DEVICE)``.
``prototype_sim`` is one of the four-server example, shared by the tests of a module: clear what you inject.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lumctl.devices.protocols import DriverContext
from lumctl.inventory.examples import EXAMPLES, example
from lumctl.inventory.load import load_inventory
from lumctl.inventory.model import Inventory
from lumctl.sim.driver import SimMesh
from lumctl.sim.launch import SimProcess, launch


class Simulated:
    """A running simulator and its inventory; unpacks into ``(inventory, endpoints)``."""

    def __init__(self, process: SimProcess) -> None:
        self.process = process
        self.inventory = process.inventory
        self.endpoints = process.endpoints()
        self.folder = process.folder
        self.control = process.control

    def __iter__(self) -> Iterator[Any]:
        return iter((self.inventory, self.endpoints))

    def mesh(self, device: str) -> SimMesh:
        """The true state of a mesh, whatever driver the inventory names for it."""
        return SimMesh(DriverContext(device=device, address=f"unix:{self.control}"))


class Simulations:
    """Starts simulators and ends them all."""

    def __init__(self) -> None:
        self._running = ExitStack()

    def __call__(self, inventory: str | Path | Inventory, **options: Any) -> Simulated:
        if not isinstance(inventory, Inventory):
            inventory = load_inventory(example(inventory) if inventory in EXAMPLES else Path(inventory))
        # Not pytest's own folder: the path of a socket must be short.
        folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
        self._running.callback(shutil.rmtree, folder, ignore_errors=True)
        process = launch(inventory, folder=folder / "sim", tied=True, **options)
        return Simulated(self._running.enter_context(process))

    def close(self) -> None:
        self._running.close()


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulated]]:
    """Start simulators for one test."""
    simulations = Simulations()
    yield simulations
    simulations.close()


@pytest.fixture(scope="module")
def prototype_sim() -> Iterator[Simulated]:
    """The four-server example, for all tests of a module."""
    simulations = Simulations()
    yield simulations("prototype")
    simulations.close()
