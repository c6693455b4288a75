"""Engines that are frozen at any instant and woken after others have continued: their devices are told nothing more.

The guard is killed or does its work; the frozen process is one of this machine, or takes itself for one of another;
then its run is resumed or aborted, or another job is swapped. The truth is the devices' own log of writes.
"""

import os
import random
import re
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from crash_fixture import CrashRack, crash_rack_of

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.context import Context
from lumctl.errors import LumctlError, RefusedError
from lumctl.inventory.wiring import jobs_in
from lumctl.store import StoreError, store_at
from lumctl.swap import plan_swap

STOPS, FEW = 200, 3
SEED = 22
TERM_S = 1.0
FREE_WITHIN_S = 60.0
WAYS = ("resume", "abort", "another swap")


@dataclass(frozen=True)
class Case:
    """When it is frozen (as a part of a run's time), what becomes of its guard, where it runs, and who continues."""

    work: str
    at: float
    guard: bool
    elsewhere: bool
    way: str


def cases(count: int) -> list[Case]:
    dice = random.Random(SEED)  # noqa: S311 - the same ones in every campaign
    return [
        Case(
            dice.choice(("swap", "rollback")),
            dice.uniform(0.0, 1.0),
            dice.random() < 0.3,
            dice.random() < 0.5,
            dice.choice(WAYS),
        )
        for _ in range(count)
    ]


@pytest.fixture(params=["sqlite", "postgres"])
def new_crash_rack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], CrashRack]]:
    """Gives a crash rack of its own to each who asks; the one before is taken down."""
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    with ExitStack() as stack:

        def new() -> CrashRack:
            stack.close()
            folder = tmp_path_factory.mktemp("frozen")
            return stack.enter_context(crash_rack_of(folder, place=server.fresh() if server else None))

        yield new


class Frozen:
    """Freezes engines and wakes them up."""

    def __init__(self, new_crash_rack: Callable[[], CrashRack]) -> None:
        self._new_crash_rack = new_crash_rack
        self.crash_rack = new_crash_rack()
        self.outcomes: Counter[str] = Counter()
        began = time.monotonic()
        self.crash_rack.run(self.crash_rack.ready("swap"))
        self._lasts_s = time.monotonic() - began

    def suffer(self, case: Case) -> None:
        """Freeze an engine, let others continue, wake it up, and look at what its devices were told since."""
        crash_rack = self.crash_rack
        plan, newest = crash_rack.ready(case.work), crash_rack.newest()
        how = {
            "term_s": TERM_S,
            "elsewhere": case.elsewhere,
            **({"revert_after_s": 0.1} if case.guard else {}),
        }
        engine = crash_rack.start(plan, **how)
        process = os.pidfd_open(engine)
        if select.select([process], [], [], case.at * self._lasts_s)[0]:  # it was quicker than that
            os.close(process)
            assert int(crash_rack.hear()["status"]) == 0
            self._lasts_s *= 0.95
            self.suffer(case)
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGSTOP)
        if not case.guard and crash_rack.rack.guard_file.exists():
            with suppress(ProcessLookupError):
                os.kill(crash_rack.guard(), signal.SIGKILL)
        before = crash_rack.rack.store.leases.newest("prototype")
        others = self._go_on(case, newest.fence if newest else 0)
        is_followed = crash_rack.rack.store.leases.newest("prototype") > before
        written, seen = len(self._writes()), crash_rack.seen()
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGCONT)
        os.close(process)
        status = int(crash_rack.hear()["status"])
        late = self._writes()[written:]
        self.outcomes[f"{case.way}: {others}, exit {status}"] += 1
        if is_followed:  # else its lease is still its own: it may renew it and continue
            assert not late, (case, late)
            assert crash_rack.seen().differences(seen) == {}, case
        assert crash_rack.seen() in (crash_rack.before, crash_rack.after) or case.way == "another swap"
        assert self._dark() == [], case
        assert crash_rack.rack.store.first_break() is None
        self._put_right()

    def _another_context(self) -> Context:
        """As the engine's: in a database writers of a rack wait for each other by the name that their store has."""
        rack = self.crash_rack.rack
        store = partial(store_at, rack.place, files=rack.folder / "store")
        return Context(rack.inventory, "sim", endpoints=rack.sim.endpoints(), store=lambda _rack: store())

    def _writes(self) -> list:
        return self.crash_rack.rack.sim.writes()

    def _go_on(self, case: Case, fence: int) -> str:
        """What others do once the lease of the frozen engine has ended; in a word what they found."""
        crash_rack, store = self.crash_rack, self.crash_rack.rack.store
        deadline = time.monotonic() + FREE_WITHIN_S
        # One of another machine may be stopped in the middle of a write to the store, and nobody here can end it.
        if case.guard and crash_rack.rack.guard_file.exists() and not case.elsewhere:
            crash_rack.rack.await_guard()
        while True:
            cut = [run for run in store.runs.all() if run.state in {"running", "half-done"}]
            mine = [run for run in store.runs.all() if run.fence > fence]
            try:
                with self._another_context() as context:
                    if cut and case.way == "resume":
                        return resume(context, cut[0]).outcome
                    if cut:
                        abort(context, cut[0])
                    if case.way == "another swap":
                        apply(context, plan_swap(context, "guest", ["g0-gpu0"], even_if_healthy=True))
                    return "undone" if cut else mine[0].state if mine else "not begun"
            except (RefusedError, StoreError) as error:
                if "has no spare left" in error.message:
                    return "the spare is in use"
                self._follow(error)
                if time.monotonic() > deadline:
                    raise
            threading.Event().wait(0.05)

    def _follow(self, error: LumctlError) -> None:
        """A process that is stopped in the middle of a write to the store is ended, as the message says."""
        for session in re.findall(r"pg_terminate_backend\((\d+)\)", error.hint or ""):
            with psycopg.connect(self.crash_rack.rack.place.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", (int(session),))
        for word in (error.hint or "").split("kill -KILL ")[1:]:
            with suppress(ProcessLookupError):
                os.kill(int("".join(c for c in word.split()[0] if c.isdigit())), signal.SIGKILL)

    def _dark(self) -> list[str]:
        """The transmitters of placed ranks that are off, by their hosts."""
        crash_rack, lit = self.crash_rack, self.crash_rack.rack.transmitters()
        inventory = crash_rack.rack.inventory
        placed = {a for ranks in jobs_in(crash_rack.rack.context.assignment()).values() for a in ranks}
        return [lane.id for a in placed for lane in inventory.transponders_of(a) if not lit[lane.id]]

    def _put_right(self) -> None:
        """Take back what the case has left in force beside the swap."""
        crash_rack, rack = self.crash_rack, self.crash_rack.rack
        if (
            rack.store.fabric.uncertain_since("mesh") is not None
        ):  # it was frozen as it wrote, and cannot know when it arrived
            rack.reprogram()
        for run in rack.store.runs.all():
            if run.kind == "swap" and run.state == "done" and run.plan["replacements"][0]["job"] == "guest":
                with suppress(RefusedError):  # the mesh was written again since
                    crash_rack.take_back(run)
        if rack.context.assignment()["guest"] == crash_rack.before.assignment["guest"]:
            assert crash_rack.kept(rack.cells()) == crash_rack.kept(crash_rack.before.cells)
        if crash_rack.seen() not in (
            crash_rack.before,
            crash_rack.after,
        ):  # programmed again, it may be routed in another way
            self.crash_rack = self._new_crash_rack()


@pytest.mark.timeout(3600)
def test_an_engine_frozen_at_any_instant_writes_nothing_when_it_wakes_up(new_crash_rack, campaign, tell) -> None:
    frozen = Frozen(new_crash_rack)
    chosen = cases(STOPS // 2 if campaign else FEW)
    for case in chosen:
        try:
            frozen.suffer(case)
        except BaseException as error:
            error.add_note(f"the case was {case}, after {dict(frozen.outcomes)}")
            with suppress(ProcessLookupError):
                os.kill(frozen.crash_rack.engine, signal.SIGKILL)  # its worker waits for it
            raise
    tell(f"{len(chosen)} stops: {dict(sorted(frozen.outcomes.items()))}")
    assert frozen.outcomes.total() == len(chosen)
