"""Arming: which runs are guarded, for how long the engine may be silent, and what happens where none can be started."""

import io
import os
import pickle
import queue
import subprocess
import sys
from dataclasses import replace

import pytest

from lumctl.change import guard
from lumctl.change.guard import LOG_NAME, MOST_LOG_BYTES, arm
from lumctl.change.guard_scope import TURN_S, GuardScope, unguarded
from lumctl.change.plan import Do
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError, RolledBackError
from lumctl.inventory.model import PartOf
from lumctl.swap import plan_fabric

LANES = ["s1-gpu0-a", "s1-gpu0-b", "s3-gpu0-a", "s3-gpu0-b"]


class Started:
    """A process that was started, as far as it was told how."""

    def __init__(self, command, **how) -> None:
        self.command, self.how = command, how
        self.pipe, self.file = map(os.dup, how["pass_fds"])
        self.returncode = None
        self.waited = queue.SimpleQueue()

    def wait(self, seconds=None):
        self.waited.put(seconds)
        if seconds is not None:
            raise subprocess.TimeoutExpired("guard", seconds)

    def heard(self):
        return os.read(self.pipe, 4096)

    def order(self):
        return os.read(self.file, 1_000_000)

    def poll(self):
        return self.returncode

    def close(self):
        os.close(self.pipe)
        os.close(self.file)


@pytest.fixture
def lease(rack):
    rack.context.endpoints = None  # nobody asks where things answer
    return rack.store.leases.acquire("prototype", "me", term_s=30.0, now=rack.time)


@pytest.fixture
def armed(rack, lease):
    started = []

    def start(*words, **more):
        started.append(Started(*words, **more))
        return started[0]

    yield arm(rack.context, lease, 62.0, start=start), started[0]
    started[0].close()


def test_a_guard_is_an_interpreter_with_one_file_in_a_session_of_its_own(armed, rack, lease):
    _, started = armed
    program, *flags, file, _pipe, _order, named = started.command
    assert (os.path.basename(file), named, started.heard()) == ("guard_watch.py", "prototype", b"62.000\n")  # noqa: PTH119
    assert flags == ["-I", "-S"]
    assert program
    assert started.how["start_new_session"]
    assert started.how["stdin"] == started.how["stdout"] == subprocess.DEVNULL
    written = io.BytesIO(started.order())
    path, order, told = (pickle.load(written) for _ in range(3))  # noqa: S301
    assert (path, order.inventory, order.target, told) == (sys.path, rack.inventory, "sim", lease)
    assert order.stores == {"prototype": (str(rack.folder), rack.folder)}
    assert (rack.folder / LOG_NAME).stat().st_mode & 0o777 == 0o600


def test_it_hears_that_its_engine_lives_and_that_it_is_done(armed):
    made, started = armed
    made.allow(62.5)
    assert started.heard() == b"62.000\n62.500\n"
    made.dismiss()
    assert started.heard() == b"end\n"
    assert started.heard() == b""
    assert started.waited.get(timeout=10) is None
    made.dismiss()
    made.allow(1.0)  # nobody minds
    assert started.waited.empty()


def test_an_engine_that_was_shut_out_waits_for_the_end_of_its_guard(armed):
    made, started = armed
    made.finish()
    assert started.heard() == b"62.000\n"
    assert (started.heard(), started.waited.get_nowait()) == (b"", guard.TAKEN_BACK_WITHIN_S)
    made.dismiss()
    assert started.waited.empty()


def test_a_guard_that_does_not_listen_stops_nobody(rack, lease):
    made = arm(rack.context, lease, 62.0, start=lambda *_, **__: subprocess.Popen(["true"]))
    for _ in range(70_000):  # its pipe is closed; and were it not, it would be full
        made.allow(62.0)
    made.dismiss()


def test_a_log_that_has_grown_begins_anew(rack, lease):
    log = rack.folder / LOG_NAME
    log.write_bytes(b"x" * (MOST_LOG_BYTES + 1))
    arm(rack.context, lease, 62.0, start=lambda *_, **__: subprocess.Popen(["true"])).dismiss()
    assert log.stat().st_size == 0


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file"), BlockingIOError(11, "no more processes")])
def test_without_a_guard_nothing_is_touched(rack, error):
    rack.context.endpoints = None
    plan = rack.plan()

    def none_to_be_had(*_words, **_more):
        raise error

    runs = rack.store.runs.all()
    with pytest.raises(RefusedError, match=r"cannot start a revert guard: .*(No such file|no more processes)"):
        rack.apply(plan, arm=lambda *words: arm(*words, start=none_to_be_had))
    assert rack.acts() == []
    assert rack.store.runs.all() == runs
    assert rack.events[-1] == ("release",)


def test_an_interrupt_while_it_is_started_leaves_no_open_end(rack, lease):
    def interrupted(*_words, **_more):
        raise KeyboardInterrupt

    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(KeyboardInterrupt):
        arm(rack.context, lease, 62.0, start=interrupted)
    assert sorted(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


# -- who is covered --------------------------------------------------------------------------------------------------


def test_what_has_no_timer_of_its_own_is_covered_the_mesh_first(rack):
    assert unguarded(rack.context, rack.plan()) == ["mesh", *LANES]


def test_a_mesh_with_a_timer_goes_back_by_itself_and_transmitters_do_not(rack):
    plan = rack.plan()
    rack.twin.capabilities = frozenset({Capability.CONFIRM_TIMER})
    assert unguarded(rack.context, plan) == LANES


def test_what_is_written_whole_cannot_go_back_and_is_not_covered(rack):
    assert unguarded(rack.context, plan_fabric(rack.context, "prototype", forget=True)) == []


def test_a_run_that_nobody_need_guard_has_no_guard(rack):
    said = []
    rack.apply(plan_fabric(rack.context, "prototype", forget=True), progress=said.append)
    assert rack.seen("arm") == []
    assert rack.guard.heard == []
    assert not any("revert timer" in line for line in said)


# -- for how long the engine may be silent ---------------------------------------------------------------------------


def test_the_engine_is_heard_before_each_stage(rack):
    rack.apply(rack.plan(), revert_after_s=7.0)
    assert rack.seen("arm") == [("arm", 7.0)]
    assert rack.guard.heard == [*[7.0] * 5, "dismiss"]


def test_a_person_who_is_asked_may_think(rack):
    rack.apply(rack.plan(), revert_after_s=7.0, before_step=lambda _step: None)
    assert rack.guard.heard == [*[600.0, 7.0, 7.0] * 7, 600.0, 7.0, "dismiss"]


def test_and_while_it_undoes(rack):
    plan = rack.plan()
    rack.dark.add("s3-gpu0-a")
    with pytest.raises(RolledBackError):
        rack.apply(plan, revert_after_s=7.0)
    assert rack.guard.heard == [*[7.0] * (4 + 1 + 14), "dismiss"]


def test_a_step_has_the_time_that_it_needs(rack):
    steps = {step.do: step for step in rack.plan().steps}
    inventory = rack.inventory
    rack.context.inventory = replace(
        inventory,
        devices={name: replace(device, settle_ms=1500.0) for name, device in inventory.devices.items()},
        thresholds=replace(inventory.thresholds, light_deadline_s=2.0),
    )
    rack.verify_by_blink("s3-gpu0-a", "s3-gpu0-b")
    scope = GuardScope(rack.guard, 7.0)
    for do in (Do.CHECK, Do.TRANSMIT, Do.PROGRAM, Do.VERIFY):
        scope.alive(rack.context, [steps[do]])
    scope.alive(rack.context, [replace(steps[Do.CHECK], do=Do.SET), steps[Do.CHECK]])
    assert rack.guard.heard == [7.0, 7.0, 8.5, 7.0 + 2 * 4 * 2.0, 7.0 + 240.0]


@pytest.mark.parametrize(("count", "turns"), [(1, 1), (8, 1), (9, 2), (40, 5)])
def test_transmitters_that_wait_for_others_of_their_stage_have_their_time_too(rack, count, turns):
    step = next(step for step in rack.plan().steps if step.do is Do.TRANSMIT)
    GuardScope(rack.guard, 7.0).alive(rack.context, [step] * count)
    assert rack.guard.heard == [7.0 + (turns - 1) * TURN_S]


def test_so_have_those_of_a_chassis_which_go_one_after_the_other(rack):
    step = next(step for step in rack.plan().steps if step.do is Do.TRANSMIT)
    lanes = rack.inventory.transponders
    lanes[step.data["transponder"]] = replace(lanes[step.data["transponder"]], module=PartOf("shelf", "och-1"))
    GuardScope(rack.guard, 7.0).alive(rack.context, [step] * 5)
    assert rack.guard.heard == [7.0 + 4 * TURN_S]
