"""The revert guard, with real processes: an engine that is killed or stands still leaves the rack as it found it."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumctl.change import apply
from lumctl.change.guard import LOG_NAME
from lumctl.errors import ExitCode
from lumctl.swap import plan_rollback

BEGIN, END = 1, 6
"""The journal of this swap: its begin, the outcomes of each of five stages with the intents of the next one (of the
first, which only reads, both), and the last outcome with the end."""
MESH_INTENT, MESH_OUTCOME = 3, 4
NOT_PROVED = 5
"""With a mesh that lies, the proof's outcome is its failure; then each step that is undone is recorded twice."""
UNDONE = range(NOT_PROVED, NOT_PROVED + 14)
CAMPAIGN = bool(os.environ.get("LUMCTL_CAMPAIGN"))
CUTS = UNDONE if CAMPAIGN else (NOT_PROVED, NOT_PROVED + 3, NOT_PROVED + 4, NOT_PROVED + 9)
BOUNDARIES = (
    *({"after": number} for number in range(BEGIN, END)),
    *({"before": number} for number in range(BEGIN + 1, END + 1)),
)
"""Just after each transaction of the journal, and just before each that follows an act."""


@pytest.fixture(scope="module")
def swap(tmp_path_factory, rack_of) -> Iterator[tuple]:
    """A rack with a dead GPU, and the plan of its swap: undone whole, it can be applied again."""
    for rack in rack_of("prototype", tmp_path_factory.mktemp("guarded")):
        plan = rack.lost()
        yield rack, plan, rack.cells(), rack.transmitters(), rack.ok_circuits("finetune")


def is_put_back(swap, run, *, state="rolled-back") -> None:
    rack, _, cells, transmitters, circuits = swap
    assert rack.store.runs.get(run.id).state == state
    assert rack.cells() == cells
    assert rack.transmitters() == transmitters
    assert rack.context.known_states("mesh") == cells["mesh"]
    assert rack.context.assignment()["finetune"] == ("s0-gpu0", "s1-gpu0", "s2-gpu0")
    assert rack.ok_circuits("finetune") == circuits
    assert rack.store.first_break() is None
    lease = rack.store.leases.acquire("prototype", "the next one", term_s=1.0, now=time.time())  # nobody holds it
    rack.store.leases.release(lease)


def newest(rack):
    return max(rack.store.runs.all(), key=lambda run: run.fence)


def killed(rack, plan, **where: int) -> tuple:
    """Apply in a process that kills itself; returns the newest run once the guard has done its work."""
    with rack.engine(plan, signal=signal.SIGKILL, **where) as engine:
        said = engine.stdout.read()
    assert engine.returncode == -signal.SIGKILL
    rack.await_guard()
    return newest(rack), said


@pytest.mark.parametrize("where", BOUNDARIES if CAMPAIGN else BOUNDARIES[::2], ids=str)
def test_an_engine_that_is_killed_leaves_the_rack_as_it_was(swap, where) -> None:
    rack, plan, *_ = swap
    run, said = killed(rack, plan, **where)
    assert said.startswith(
        "mesh and 4 other parts have no revert timer: lumctl undoes the run if this command is silent for 62 s\n"
    )
    is_put_back(swap, run)
    end = rack.store.journal.of_run(run.id)[-1]
    assert end.data == {
        "state": "rolled-back",
        "failed": "its engine died",
        "by": f"revert guard of {run.id}",
    }
    assert (run.fence, end.fence) == (rack.store.journal.of_run(run.id)[0].fence + 1,) * 2


def test_an_engine_that_is_killed_before_its_run_begins_leaves_nothing(swap) -> None:
    rack, plan, *_ = swap
    earlier = newest(rack)
    run, _ = killed(rack, plan, before=BEGIN)
    assert run == earlier
    assert rack.store.runs.unfinished(now=time.time()) == ()
    is_put_back(swap, run, state=run.state)


def test_a_run_that_was_closed_as_its_engine_died_is_done(swap) -> None:
    rack, plan, *_ = swap
    run, _ = killed(rack, plan, after=END)
    assert run.state == "done"
    assert rack.context.assignment()["finetune"] == ("s0-gpu0", "s3-gpu0", "s2-gpu0")
    assert all(rack.ok_circuits("finetune"))
    apply(rack.context, plan_rollback(rack.context, run))
    is_put_back(swap, run, state="undone")


@pytest.mark.parametrize("after", CUTS)
def test_an_undo_that_is_cut_is_finished(swap, after) -> None:
    rack, plan, *_ = swap
    rack.sim.inject("mesh", "mesh-lying")
    try:
        run, _ = killed(rack, plan, after=after)
    finally:
        rack.sim.clear("mesh")
    is_put_back(swap, run)


def test_an_engine_that_stands_still_is_ended_by_its_guard(swap) -> None:
    rack, plan, *_ = swap
    with rack.engine(plan, signal=signal.SIGSTOP, after=MESH_OUTCOME, revert_after_s=0.6) as engine:
        assert engine.wait() == -signal.SIGKILL
        rack.await_guard()
    run = newest(rack)
    is_put_back(swap, run)
    assert rack.store.journal.of_run(run.id)[-1].data["failed"] == "its engine did nothing for 3 s"


def test_an_engine_that_its_guard_may_not_end_is_shut_out_and_says_so(swap) -> None:
    rack, plan, *_ = swap
    stops = {"signal": signal.SIGSTOP, "after": MESH_OUTCOME, "revert_after_s": 0.6}
    with rack.engine(plan, **stops, elsewhere=True) as engine:
        rack.await_stop(engine)
        rack.await_guard()
        run = newest(rack)
        is_put_back(swap, run)
        engine.send_signal(signal.SIGCONT)
        said = engine.stdout.read()
    assert rack.store.journal.of_run(run.id)[-1].data["failed"] == "its engine did nothing for 3 s"
    assert said.endswith(
        f"{run.id} wrote nothing to the journal for so long that its revert guard took over the run: it is "
        "rolled-back\n"
    )
    assert engine.returncode == ExitCode.ROLLED_BACK
    is_put_back(swap, run)


def test_an_engine_that_was_about_to_write_when_it_stood_still_writes_nothing(swap) -> None:
    rack, plan, *_ = swap
    stops = {"signal": signal.SIGSTOP, "after": MESH_INTENT, "revert_after_s": 0.5}
    with rack.engine(plan, **stops, elsewhere=True) as engine:
        rack.await_stop(engine)
        rack.await_guard()
        run = newest(rack)
        is_put_back(swap, run)
        engine.send_signal(signal.SIGCONT)
        engine.stdout.read()
    assert engine.returncode == ExitCode.ROLLED_BACK
    is_put_back(swap, run)


def test_the_end_of_a_terminal_is_not_the_end_of_the_guard(swap) -> None:
    rack, plan, *_ = swap
    with rack.engine(plan, signal=signal.SIGSTOP, after=MESH_OUTCOME) as engine:
        rack.await_stop(engine)
        os.killpg(engine.pid, signal.SIGHUP)
        os.killpg(engine.pid, signal.SIGKILL)
    rack.await_guard()
    is_put_back(swap, newest(rack))


def test_a_guard_that_is_told_to_end_does_its_work_first(swap) -> None:
    rack, plan, *_ = swap
    with rack.engine(plan, signal=signal.SIGSTOP, after=MESH_OUTCOME) as engine:
        rack.await_stop(engine)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(rack.guard, number)
        engine.kill()
        os.kill(rack.guard, signal.SIGTERM)
    rack.await_guard()
    is_put_back(swap, newest(rack))


def test_a_run_that_was_taken_back_by_hand_is_left_alone(swap) -> None:
    rack, plan, *_ = swap
    with rack.engine(plan, signal=signal.SIGSTOP, after=MESH_OUTCOME, revert_after_s=6.0) as engine:
        rack.await_stop(engine)
        run = newest(rack)
        with rack.another_context(now=lambda: time.time() + 60) as later:
            apply(later, plan_rollback(later, run))
        entries = rack.store.journal.of_run(run.id)
        rack.await_guard()
        assert rack.store.journal.of_run(run.id) == entries
        engine.kill()
    is_put_back(swap, run, state="undone")


def test_a_guard_holds_nothing_of_its_engine_and_shows_no_secret(swap) -> None:
    rack, plan, *_ = swap
    with rack.engine(plan, signal=signal.SIGSTOP, after=MESH_OUTCOME) as engine:
        rack.await_stop(engine)
        proc = Path(f"/proc/{rack.guard}")
        held = sorted(str(file.readlink()).split(":")[0] for file in (proc / "fd").iterdir())
        words = (proc / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        log = rack.folder / "store" / LOG_NAME
        engine.kill()
    rack.await_guard()
    assert held == [*["/dev/null"] * 2, "/memfd", str(log), *["pipe"] * 3]
    assert words[1:3] == [b"-I", b"-S"]
    assert words[4:] == [words[4], words[5], b"prototype"]
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.read_text().splitlines()[-1].endswith("was rolled back: its engine died")
    is_put_back(swap, newest(rack))
