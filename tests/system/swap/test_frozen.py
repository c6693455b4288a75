"""An engine that was frozen writes nothing when it wakes up: its lease has ended, and others have changed the rack."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from racks import Rack, rack_of

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.errors import ExitCode, RefusedError
from lumctl.store import StoredRun
from lumctl.swap import plan_rollback, plan_swap

TRANSMIT_INTENTS = 2
"""The transactions of the journal after which the engine is about to switch transmitters."""
TERM_S = 1.0
FREE_WITHIN_S = 30.0
ENDS_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("prototype", tmp_path_factory.mktemp("frozen"))


def when_free(act: Callable[[], object]) -> object:
    """Do something as soon as the lease of the frozen engine has ended."""
    deadline = time.monotonic() + FREE_WITHIN_S
    while True:
        with suppress(RefusedError):
            return act()
        assert time.monotonic() < deadline, "the lease does not end"
        threading.Event().wait(0.05)


def swap_and_back(rack: Rack) -> None:
    """Another change of the same transmitters, from its beginning to its end."""
    done = apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"]))
    apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(done.run)))


def aborted(rack: Rack, run: StoredRun) -> None:
    abort(rack.context, run)


def aborted_and_swapped(rack: Rack, run: StoredRun) -> None:
    abort(rack.context, run)
    apply(rack.context, plan_swap(rack.context, "finetune", ["s1-gpu0"]))


def resumed(rack: Rack, run: StoredRun) -> None:
    resume(rack.context, run)


@pytest.mark.parametrize(
    ("goes_on", "elsewhere"),
    [(aborted, True), (aborted_and_swapped, False), (aborted_and_swapped, True), (resumed, True)],
    ids=["aborted-elsewhere", "swapped-here", "swapped-elsewhere", "resumed-elsewhere"],
)
def test_a_frozen_engine_that_wakes_up_switches_no_transmitter(frozen: Rack, goes_on, elsewhere: bool) -> None:
    rack = frozen
    with rack.engine(
        rack.lost(), signal=signal.SIGSTOP, after=TRANSMIT_INTENTS, term_s=TERM_S, elsewhere=elsewhere
    ) as engine:
        rack.await_stop(engine)
        os.kill(rack.guard, signal.SIGKILL)
        run = max(rack.store.runs.all(), key=lambda run: run.fence)
        assert run.state == "running"
        when_free(lambda: goes_on(rack, run))
        transmitters, cells, circuits = rack.transmitters(), rack.cells(), rack.ok_circuits("finetune")
        assert all(circuits) or goes_on is aborted  # the lost GPU is in the job again
        engine.send_signal(signal.SIGCONT)
        engine.wait(ENDS_WITHIN_S)
        said = engine.stdout.read()
    assert rack.transmitters() == transmitters
    assert rack.cells() == cells
    assert rack.ok_circuits("finetune") == circuits
    assert rack.store.fabric.uncertain_since("mesh") is None
    if elsewhere:
        assert engine.returncode in {ExitCode.ROLLED_BACK, ExitCode.HALF_DONE}
        assert "wrote nothing to the journal for so long that" in said
    else:
        assert engine.returncode == -signal.SIGKILL
    for left in [each for each in rack.store.runs.all() if each.kind == "swap" and each.state == "done"]:
        apply(rack.context, plan_rollback(rack.context, left))
