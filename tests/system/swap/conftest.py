"""Simulated racks on which swaps are planned, applied, cut and taken back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from racks import Rack, rack_of


@pytest.fixture(scope="session", name="rack_of")
def _rack_of() -> Callable[..., Iterator[Rack]]:
    return rack_of


@pytest.fixture(scope="module")
def rack64(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("rack64", tmp_path_factory.mktemp("rack64"))


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    yield from rack_of("prototype", tmp_path)


@pytest.fixture
def timed_rack(tmp_path: Path) -> Iterator[Rack]:
    """A rack whose mesh can be read back and reverts by itself unless a change is confirmed."""
    yield from rack_of("prototype", tmp_path, driver="sim-mesh", delay_ms=300.0)


@pytest.fixture
def slow_rack(tmp_path: Path) -> Iterator[Rack]:
    """A rack whose mesh takes a while to settle, so that a run can be killed while it writes."""
    yield from rack_of("prototype", tmp_path, delay_ms=700.0)
