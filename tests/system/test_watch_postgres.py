"""Two daemons with one policy on one PostgreSQL, as on two machines: one acts; and both outlive their database."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import Postgres
from said import PATIENCE_S, Said
from watched import Rack, racks

POLICY = (
    "  - {name: dead, how: apply, rules: [gpu.xid], stands_s: 1, cool_down_s: 0, limits: {rack_hour: 9, rack_day: 9}}\n"
)


class Machine:
    """Another machine's daemon: its own folders, the same simulated rack and the same database."""

    def __init__(self, rack: Rack, folder: Path) -> None:
        folder.mkdir()
        (folder / "run" / "lumctl").mkdir(mode=0o700, parents=True)
        (folder / "run").chmod(0o700)
        for kept in Path(rack.environment["XDG_RUNTIME_DIR"], "lumctl").iterdir():
            (folder / "run" / "lumctl" / kept.name).symlink_to(kept)
        own = {"XDG_RUNTIME_DIR": str(folder / "run"), "XDG_STATE_HOME": str(folder / "state")}
        self.daemon = subprocess.Popen(
            [sys.executable, "-m", "lumctl", "watch", "--interval", "0.2", "--listen", "none"],
            env={**rack.environment, **own},
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said = Said(self.daemon.stderr)

    def hear(self, *words: str, after: int = 0) -> str:
        return self._said.hear(*words, after=after)

    @property
    def lines(self) -> list[str]:
        return self._said.lines

    def end(self) -> int:
        self.daemon.terminate()
        code = self.daemon.wait(PATIENCE_S)
        self._said.end()
        return code


@pytest.fixture
def server(require_program) -> Iterator[Postgres]:
    """A server that this test may stop."""
    pytest.importorskip("psycopg")
    running = Postgres(require_program)
    yield running
    running.close()


@pytest.fixture
def shared(server: Postgres, tmp_path: Path) -> Iterator[Rack]:
    """A simulated rack whose store is in the database: only a rack's own store is there otherwise."""
    url = server.fresh()
    (tmp_path / "sitecustomize.py").write_text(f"import lumctl.store\nlumctl.store.place_of = lambda *_: {url!r}\n")
    made = racks()
    rack = next(made)(POLICY)
    rack.environment["PYTHONPATH"] = str(tmp_path)
    rack("fabric", "apply", "--rewrite", "--yes")
    yield rack
    next(made, None)  # ends it


@pytest.mark.timeout(180)
def test_one_of_two_daemons_acts_and_both_outlive_their_database(shared: Rack, server: Postgres):
    other = Machine(shared, Path(shared.environment["HOME"]) / "other")
    try:
        shared.watch()
        both = (shared, other)
        for daemon in both:
            daemon.hear("observing ")
        shared("sim", "fault", "s1-gpu0", "gpu-lost")
        for daemon in both:
            daemon.hear("accelerator s1-gpu0 failed -> disabled")
        (swap,) = shared.swaps()
        assert (swap["outcome"], swap["title"]) == ("done", "finetune: replace s1-gpu0 by s3-gpu0")
        acted = [daemon for daemon in both if any("): done: runbook: " in line for line in daemon.lines)]
        assert len(acted) == 1
        told = len(shared.lines), len(other.lines)
        server.stop()
        for daemon, after in zip(both, told, strict=True):
            daemon.hear("look: the store at ", "cannot be read", after=after)
        server.start()
        for daemon, after in zip(both, told, strict=True):
            daemon.hear("look: ok again", after=after)
        shared("sim", "fault", "s2-gpu0", "gpu-lost")
        for daemon in both:
            daemon.hear("accelerator s2-gpu0 ok -> failed")
            assert not [line for line in daemon.lines if "Traceback" in line or "unexpected " in line]
        shared("runbook", "verify")
    finally:
        code = other.end()
    assert code == 0
