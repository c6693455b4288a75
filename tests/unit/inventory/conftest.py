"""A small valid inventory that tests edit, and what comes of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumctl.inventory.load import load_inventory
from lumctl.inventory.problems import InventoryError, Problem

SMALL = """\
lumctl: 1
racks:
  r1:
hosts:
  - name: h[1-3]
    accelerators:
      - id: "{host}-gpu0"
        model: X100
        memory_gib: 80
        pci: 0000:17:00.0
devices:
  - id: mesh
    kind: mesh
    driver: smartlight
    address: mesh.example:65432
    geometry: {columns: 3, rows: 2}
transponders:
  - id: h[1-3]-gpu0-a
    accelerator: h[1-3]-gpu0
    interface: eth2
    device: mesh
    port: [0, 2, 4]
  - id: h[1-3]-gpu0-b
    accelerator: h[1-3]-gpu0
    interface: eth3
    device: mesh
    port: [1, 3, 5]
jobs:
  - name: job
    ranks: h[1-2]-gpu0
    links:
      - kind: ring
"""


@pytest.fixture
def small() -> str:
    """The text of a small inventory without errors."""
    return SMALL


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Puts a text into a file."""

    def _write(text: str | bytes) -> Path:
        path = tmp_path / "rack.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return _write


@pytest.fixture
def problems_of(write: Callable[[str | bytes], Path]) -> Callable[[str | bytes], tuple[Problem, ...]]:
    """All problems of a text."""

    def _problems(text: str | bytes) -> tuple[Problem, ...]:
        try:
            load_inventory(write(text))
        except InventoryError as error:
            return error.problems
        return ()

    return _problems
