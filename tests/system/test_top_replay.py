"""A recorded swap played by ``lumctl top --replay``: on a simulator of its own, and nothing of it is left."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lumctl.change import apply
from lumctl.cli.invocation import Invocation
from lumctl.cli.top import replay
from lumctl.cli.top.replay import Play
from lumctl.context import Context
from lumctl.inventory.load import example, load_inventory
from lumctl.runbook.playback import Wait
from lumctl.runbook.run_states import stood
from lumctl.runbook.stage import no_guard, staged
from lumctl.swap import commission, plan_rollback, plan_swap

FAILED = "s1-gpu0"


@pytest.fixture
def rack(tmp_path: Path, simulate, monkeypatch):
    """The four-server example, in which one accelerator was swapped out, the swap undone and done again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(replay, "WELL_S", 0.6)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir(mode=0o700)
    path = tmp_path / "rack.yaml"
    path.write_text(example("prototype").read_text() + "\nthresholds: {light_deadline_s: 0.6}\n")
    simulated = simulate(load_inventory(path))
    with Context(simulated.inventory, "sim", endpoints=simulated.endpoints) as context:
        commission(context)
        first = _swapped(context)
        apply(context, plan_rollback(context, context.store("prototype").runs.get(first)), arm=no_guard)
        _swapped(context)
        cx = Invocation.compose({"inventory": str(path), "target": "sim"}, {})
        yield SimpleNamespace(cx=cx, context=context, run=first, path=path, folder=tmp_path)


def _swapped(context: Context) -> str:
    return apply(context, plan_swap(context, "finetune", [FAILED], even_if_healthy=True), arm=no_guard).run


class Told(list[str]):
    """The lines that are told; another thread may wait for one."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._changed:
            self.append(line)
            self._changed.notify_all()

    def wait(self, words: str) -> None:
        """Until a line with these words is told."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(words in line for line in self), 40), self


def test_a_swap_is_played_from_where_it_began_to_its_end_and_compared(rack):
    run, runbook, starts, noticed = replay._found(rack.context, rack.run)
    assert noticed == ()
    assert starts["prototype"].assignment == {"finetune": ("s0-gpu0", FAILED, "s2-gpu0")}
    said = Told()
    with staged(rack.context.inventory) as stage, stage.play() as context:
        replay._stand(context, runbook, starts)
        play = Play(runbook, stage, context, speed=100.0, began_at=run.started_at, say=said)
        with stage.context() as eyes, replay._recorder(stage) as records, play:
            sources = replay._sources(stage, eyes, records, play)
            before = sources.look()
            assert before.observation.report.accelerators[FAILED].state == "ok"
            assert {circuit.state for circuit in before.observation.report.circuits.values()} == {"ok"}
            assert before.records.runs == ()  # how the simulator was brought there is no part of the story
            said.wait("falls off the bus")
            assert sources.look().observation.report.accelerators[FAILED].state == "failed"
            said.wait("has ended")
            after = sources.look()
            assert after.observation.assignment["finetune"] == ("s0-gpu0", "s3-gpu0", "s2-gpu0")
            (again,) = after.records.runs
            key = f"{again.rack}/{again.id}"
            assert (sources.run(key).run.state, len(sources.run(key).proved)) == ("done", 4)
            assert sources.mesh("mesh").cells == rack.context.known_cells("mesh")
            assert len(sources.runbook(key)["steps"]) == len(runbook.steps)
        standing = play.standing()
    assert play.identical, standing
    assert "identical: done as recorded, 8 steps" in standing.text
    assert said[0].startswith(f"the rack as it was before {rack.run}")
    assert f"{FAILED} falls off the bus" in said[1]
    assert [line for line in said if line.startswith("step 8 of 8")]


def test_who_leaves_in_the_middle_ends_the_simulator_and_has_what_was_done_taken_back(rack):
    run, runbook, starts, _ = replay._found(rack.context, rack.run)
    said = Told()
    with staged(rack.context.inventory) as stage, stage.play() as context:
        replay._stand(context, runbook, starts)
        play = Play(runbook, stage, context, speed=100.0, began_at=run.started_at, say=said)
        play._waits["6"] = Wait(60.0, 60.0)
        with stage.context() as eyes, play:
            play.seeing(eyes.observe)()
            said.wait("next is step 6 of 8: program")
            lit = eyes.devices.transponder("s1-gpu0-a").transmitting()
            left_at = time.monotonic()
        assert time.monotonic() - left_at < 5
        assert not lit
        assert play.identical is None
        assert [each.state for each in context.store("prototype").runs.all() if each.kind == "replay"] == [
            "rolled-back"
        ]
        assert stage.sim.process.poll() is None
    assert stage.sim.process.poll() is not None
    assert not stage.sim.folder.exists()


def test_each_rack_stood_as_the_runs_since_tell(rack):
    store = rack.context.store("prototype")
    second = store.runs.all()[0]
    back = next(run for run in store.runs.all() if run.kind == "rollback")
    swapped = stood(rack.context, back)["prototype"]
    assert swapped.assignment["finetune"] == ("s0-gpu0", "s3-gpu0", "s2-gpu0")
    before = stood(rack.context, second)["prototype"]
    assert before.assignment["finetune"] == ("s0-gpu0", FAILED, "s2-gpu0")
    assert before.crosses["mesh"] == stood(rack.context, store.runs.get(rack.run))["prototype"].crosses["mesh"]
    assert before.crosses != swapped.crosses


@pytest.mark.parametrize("way", ["words", "signal"])
def test_the_program_leaves_nothing_behind_and_touches_no_store(rack, way):
    store = rack.context.store("prototype")

    def kept() -> tuple[object, ...]:
        files = {path for path in (rack.folder / "state").rglob("*") if path.suffix not in {".db-wal", ".db-shm"}}
        return store.journal.head(), store.runs.all(), store.fabric.device_cells("mesh"), files

    scratch = Path(tempfile.mkdtemp(prefix="lumctl-"))  # not pytest's own folder: the path of a socket must be short
    before = kept()
    command = [sys.executable, "-m", "lumctl", "-i", str(rack.path), "--target", "sim", "top", "--plain"]
    with subprocess.Popen(
        [*command, "--replay", rack.run, "--speed", "0.05"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        while "falls off the bus" not in (line := program.stdout.readline()):
            assert line
        if way == "signal":
            program.send_signal(signal.SIGTERM)
        else:
            program.stdin.write("quit\n")
            program.stdin.flush()
        _, told = program.communicate(timeout=30)
    assert program.returncode == (130 if way == "signal" else 0), told
    assert told.startswith(f"REPLAY of {rack.run}, recorded 20")
    assert "0.05x" in told.splitlines()[0]
    assert kept() == before
    scratch.rmdir()  # it is empty
    assert [path for path in (rack.folder / "run").rglob("*") if not path.is_dir()] == []


def test_what_cannot_be_played_is_told_in_a_line(rack):
    for words, said in (
        (["--replay", "swap-9999"], "no run 'swap-9999' on target sim"),
        (["--speed", "2"], "--speed sets the playback speed"),
        (["--replay", rack.run, "--web"], "omit --web"),
        (["--replay", rack.run, "--speed", "nan"], "--speed"),
    ):
        command = [sys.executable, "-m", "lumctl", "-i", str(rack.path), "--target", "sim", "top", "--plain", *words]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 2, words
        assert said in done.stderr
        assert "Traceback" not in done.stderr
