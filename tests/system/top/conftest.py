"""A simulated rack of which everything is well, for dashboards that are real processes."""

from collections.abc import Iterator

import pytest
from watched import Rack, racks


@pytest.fixture
def rack() -> Iterator[Rack]:
    """The four-server example, commissioned, with one spare and no policy."""
    running = racks()
    yield next(running)("  []")
    for _ in running:
        pass
