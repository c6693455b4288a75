"""A job that a real torchrun has: ended on all its hosts while light moves, started where it is placed then."""

import json
import os
import select
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.context import Context
from lumctl.errors import ExitCode
from lumctl.inventory.load import example, load_inventory
from lumctl.jobs import HookRefusedError, Hooks
from lumctl.jobs.hooks import Facts
from lumctl.store import store_at

SCRIPT = """
import os, signal
from pathlib import Path
folder, rank = Path({folder!r}), os.environ["RANK"]
steps = folder / f"steps-{{rank}}"  # its own checkpoint
done = int(steps.read_text()) if steps.exists() else 0
steps.write_text(str(done + 7))
new = folder / f"new-{{rank}}"
told = os.environ.get("LUMCTL_ACCELERATORS", "none")
new.write_text(f"{{os.getpid()}} {{rank}} {{os.environ['WORLD_SIZE']}} {{told}} {{done}}")
new.replace(folder / f"rank-{{rank}}")
signal.pause()
"""


@pytest.fixture
def never(tmp_path, monkeypatch):
    """The job ``finetune`` of two ranks on two hosts, both of which are this machine; it is never started."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    job = Job(tmp_path)
    yield job
    job.context.close()


@pytest.fixture
def torchrun(never):
    yield never
    for placed in (("s0-gpu0", "s1-gpu0"), ("s0-gpu0", "s3-gpu0")):
        never.hooks(*placed, facts=Facts()).pause()


class Job:
    """The job as torchrun has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "train.py").write_text(SCRIPT.format(folder=str(folder)))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        torchrun = json.dumps([sys.executable, "-m", "torch.distributed.run"])
        hook = f"{{kind: torchrun, command: [{folder}/train.py], torchrun: {torchrun}, port: {port}, timeout_s: 50,"
        hook += f" grace_s: 5, python: {sys.executable}}}"
        text = example("prototype").read_text().replace("ranks: s[0-2]-gpu0", f"ranks: s[0-1]-gpu0\n    hook: {hook}")
        (folder / "rack.yaml").write_text(text.replace("kind: ring", "kind: pairs\n        pairs: [[0, 1]]"))
        self.inventory = load_inventory(folder / "rack.yaml")
        self.context = Context(self.inventory, "rack", store=lambda _rack: store_at(str(folder / "store")))

    def hooks(self, *placed: str, facts: Facts = Facts("swap-0001", ["s1-gpu0"], ["s3-gpu0"])) -> Hooks:  # noqa: B008
        if placed:
            jobs = self.inventory.jobs
            self.context.inventory = replace(
                self.inventory, jobs={**jobs, "finetune": replace(jobs["finetune"], ranks=placed)}
            )
        return Hooks(self.context, "finetune", facts)

    def by_hand(self) -> subprocess.Popen[bytes]:
        """Start it as somebody would who knows nothing of lumctl, but for the id."""
        words = ["--nproc-per-node=2", "--rdzv-id", "finetune", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0"]
        program = [sys.executable, "-m", "torch.distributed.run", *words, self.folder / "train.py"]
        return subprocess.Popen(program, stderr=subprocess.DEVNULL)

    def change(self, **settings) -> None:
        jobs = self.inventory.jobs
        hook = jobs["finetune"].hook
        hook = replace(hook, settings=hook.settings.model_copy(update=settings))
        self.inventory = self.context.inventory = replace(
            self.inventory, jobs={**jobs, "finetune": replace(jobs["finetune"], hook=hook)}
        )

    def ranks(self) -> list[list[str]]:
        """What each rank has said of itself, once it has: rank, world, accelerators, steps done before."""
        import time

        found = []
        for rank in range(2):
            path = self.folder / f"rank-{rank}"
            ends = time.monotonic() + 40
            while not path.exists():
                assert time.monotonic() < ends, [log.read_text() for log in self.folder.rglob("*.log")]
                time.sleep(0.02)
            found.append(path.read_text().split())
            path.unlink()
        return found


def test_it_is_ended_and_started_anew_where_its_job_is_placed(torchrun):
    assert torchrun.hooks().status() == "stopped"
    with torchrun.by_hand() as by_hand:
        first = torchrun.ranks()
        assert [rank[1:] for rank in first] == [["0", "2", "none", "0"], ["1", "2", "none", "0"]]
        assert torchrun.hooks().status() == "running"
        assert torchrun.hooks().pause() == {"was": "running", "is": "stopped"}
        assert by_hand.wait(10) != 0
    assert all(is_gone(int(rank[0])) for rank in first)
    assert (torchrun.hooks().status(), torchrun.hooks().pause()["was"]) == ("stopped", "stopped")

    moved = torchrun.hooks("s0-gpu0", "s3-gpu0")
    at = {"ranks": "s0-gpu0,s3-gpu0"}
    assert moved.resume() == {"was": "stopped", "is": "running", "said": "started on s0, s3", **at}
    second = torchrun.ranks()
    assert moved.resume() == {"was": "running", "is": "running", **at}
    assert [rank[1:] for rank in second] == [["0", "2", "s0-gpu0", "7"], ["1", "2", "s3-gpu0", "7"]]
    # Nothing of the memory of who started it is needed: what is recorded is enough, and so is its id alone.
    for note in (torchrun.folder / ".local/state/lumctl/torchrun").glob("*@s?"):
        assert json.loads(note.read_text())["pid"]
        note.unlink()
    again = torchrun.hooks("s0-gpu0", "s3-gpu0", facts=Facts("swap-0002", ["s0-gpu0"], ["s1-gpu0"]))
    assert again.pause()["was"] == "running"
    assert all(is_gone(int(rank[0])) for rank in second)


def test_a_script_that_ends_at_once_is_told_of_with_its_last_words(never):
    never.change(torchrun=["sh", "-c", "echo no such rendezvous; exit 3"])
    with pytest.raises(HookRefusedError, match="did not start on s0: no such rendezvous") as error:
        never.hooks().resume()
    assert error.value.exit_code is ExitCode.REFUSED
    never.change(torchrun=["no-such-torchrun"])
    with pytest.raises(HookRefusedError, match="did not start on s0: no-such-torchrun: No such file"):
        never.hooks().resume()


def test_a_failed_host_that_is_silent_does_not_hold_up_a_pause_but_another_does(never):
    # A way to the hosts that leads to s0 only.
    never.change(on=["sh", "-c", 'test "$0" = s0 || exit 255; exec "$@"', "{host}"])
    told = never.hooks(facts=Facts("swap-0001", ["s1-gpu0"], ["s3-gpu0"])).pause()
    assert "s1 could not be reached: torchrun of job finetune cannot be supervised on s1: exit code 255" in told["said"]
    with pytest.raises(Exception, match="cannot be supervised on s1"):
        never.hooks(facts=Facts("swap-0001", ["s0-gpu0"], ["s3-gpu0"])).pause()


def test_ranks_that_it_cannot_number_are_refused(never):
    with pytest.raises(HookRefusedError, match="rank 2 is on s0, and rank 1 between its other ranks is on s1"):
        never.hooks("s0-gpu0", "s1-gpu0", "s0-gpu0").resume()


def is_gone(pid: int) -> bool:
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 10)[0])
    finally:
        os.close(watched)
