"""Where the simulators of rehearsals have their sockets."""

import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder for sockets: the path of one must be short."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield folder
