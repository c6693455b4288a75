"""Simulated racks on which swaps are planned, applied, cut and undone."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked_commands import run_lumctl
from racks import Rack, rack_of

from lumctl.devices.endpoints import sim_runtime_folder


@pytest.fixture(scope="session", name="rack_of")
def _rack_of() -> Callable[..., Iterator[Rack]]:
    return rack_of


@pytest.fixture
def shell_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., object]]:
    """Gives, for an inventory file and the folder of its simulator, a function that runs lumctl with an empty store.

    Each call says which exit code is due, and has no terminal.
    """
    with tempfile.TemporaryDirectory() as runtime:  # the path of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)

        def made(inventory: Path, folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
            sim_runtime_folder(inventory).symlink_to(folder)
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "LUMCTL_STATE": str(tmp_path / "state"),
                "LUMCTL_TARGET": "sim",
                "LUMCTL_INVENTORY": str(inventory),
                "XDG_RUNTIME_DIR": runtime,
            }

            def lumctl(*words: str, code: int) -> subprocess.CompletedProcess[str]:
                done = run_lumctl(*words, env=environment, timeout=None)
                assert done.returncode == code, done.stderr
                assert "Traceback" not in done.stderr
                return done

            return lumctl

        yield made


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
