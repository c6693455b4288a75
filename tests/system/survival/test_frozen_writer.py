"""An engine that is stopped inside a commit keeps nobody out for long: it is named, ended as the hint says, undone."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from crash_fixture import CrashRack

from lumctl.change import apply
from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.resumption import abort
from lumctl.context import Context
from lumctl.store import StoreHeldError, sqlite


@pytest.fixture
def freeze(crash_rack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Starts an engine that is stopped inside a transaction of its run; others do not wait long for it."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.2)
    started: list[int] = []

    def freeze_(**how: float) -> None:
        number = crash_rack.moments("swap").index("before commit of advance") + 1
        started.append(crash_rack.start(crash_rack.ready("swap"), at=number, do="stop", **how))
        _await_stop(started[-1])

    yield freeze_
    for engine in started:
        with suppress(ProcessLookupError):
            os.kill(engine, signal.SIGKILL)


def _await_stop(pid: int) -> None:
    ended = time.monotonic() + 30
    while _state(pid) != "T":
        assert time.monotonic() < ended, "the engine does not stop"
        os.sched_yield()


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0]


def refused(crash_rack: CrashRack, act: Callable[[Context], object]) -> None:
    """Another operator tries something, and does what he is told to do."""
    with crash_rack.rack.another_context() as context, pytest.raises(StoreHeldError) as told:
        act(context)
    assert f"its lock is held by process {crash_rack.engine} " in told.value.message
    assert told.value.message.endswith("is stopped")
    hint = told.value.hint or ""
    command = re.fullmatch(r"end it: (.*) \(its unfinished write is undone\), then repeat this command", hint)
    assert command, hint
    subprocess.run(shlex.split(command[1]), check=True)


def test_once_it_is_ended_its_guard_undoes_the_run_and_the_plan_is_applied(crash_rack: CrashRack, freeze) -> None:
    freeze()
    refused(crash_rack, lambda context: apply(context, crash_rack.plan))
    ended = crash_rack.end()
    assert ended.status == -signal.SIGKILL
    assert crash_rack.await_guards()
    assert ended.run is not None
    assert crash_rack.rack.store.runs.get(ended.run.id).state == "rolled-back"
    assert crash_rack.seen() == crash_rack.before
    with crash_rack.rack.another_context() as context:
        apply(context, crash_rack.plan)
    assert crash_rack.seen() == crash_rack.after


def test_without_a_guard_it_is_ended_by_the_abort_once_its_lease_has_ended(crash_rack: CrashRack, freeze) -> None:
    freeze()
    os.kill(crash_rack.guard(), signal.SIGKILL)
    run = crash_rack.newest()
    assert run is not None
    with crash_rack.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as context:
        assert abort(context, run).outcome == "rolled-back"
    assert crash_rack.end().status == -signal.SIGKILL
    assert crash_rack.seen() == crash_rack.before


def test_a_guard_ends_its_engine_and_undoes_the_run_by_itself(crash_rack: CrashRack, freeze) -> None:
    freeze(revert_after_s=0.0)
    ended = crash_rack.end()
    assert ended.status == -signal.SIGKILL
    assert crash_rack.await_guards()
    assert ended.run is not None
    assert crash_rack.rack.store.runs.get(ended.run.id).state == "rolled-back"
    assert crash_rack.seen() == crash_rack.before
