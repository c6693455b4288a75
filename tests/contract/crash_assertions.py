"""What became of a rack whose engine was killed: judged by its devices, held against its journal."""

import os
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from crash_fixture import CrashRack, Ended, Seen

from lumctl.change import apply
from lumctl.change.interrupts import LEASE_TERM_S
from lumctl.change.resumption import abort, resume
from lumctl.errors import ExitCode
from lumctl.store import StoredRun
from lumctl.store.database import writing
from lumctl.swap import plan_rollback

VICTIMS = ("kill", "kill-both", "kill-guard")
WORKS = ("swap", "rollback")
WAYS = ("rollback", "resume", "abort")
"""What an operator may do with a run that nobody has undone."""


class CrashAssertions:
    """Kills engines on one crash rack; each case must end in the planned state or in the one before."""

    def __init__(self, crash_rack: CrashRack) -> None:
        self.crash_rack = crash_rack
        self.outcomes: Counter[str] = Counter()

    def at_moment(self, work: str, victim: str, number: int, way: str = "rollback") -> None:
        """Kill at a moment of the run; where it is left cut, an operator continues in one of the ways."""
        plan = self.crash_rack.ready(work)
        ended = self.crash_rack.run(plan, at=number, do=victim)
        assert ended.status == (0 if victim == "kill-guard" else -signal.SIGKILL)
        self.judge(work, victim, ended, way)

    def at_instant(self, work: str, victim: str, after_s: float, way: str = "rollback") -> None:
        """Kill so long after the run has begun, or earlier where it has come to its end by then."""
        plan = self.crash_rack.ready(work)
        newest = self.crash_rack.newest()
        with suppress(ProcessLookupError):  # it has come to its end
            process = os.pidfd_open(self.crash_rack.start(plan))
            try:
                if not select.select([process], [], [], after_s)[0]:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)
        ended = self.crash_rack.end(fence=newest.fence if newest else None)
        if not ended.status:  # it was quicker than that
            self.at_instant(work, victim, after_s * 0.8, way)
            return
        assert ended.status == -signal.SIGKILL
        self.judge(work, victim, ended, way)

    def judge(self, work: str, victim: str, ended: Ended, way: str) -> None:
        """Hold what the devices show against what the journal says."""
        crash_rack, store = self.crash_rack, self.crash_rack.rack.store
        start, goal = (crash_rack.before, crash_rack.after) if work == "swap" else (crash_rack.after, crash_rack.before)
        if victim == "kill-both":
            crash_rack.end_guards()
        self.require_honest()
        guarded = crash_rack.await_guards() and victim != "kill-both"
        run = store.runs.get(ended.run.id) if ended.run else None
        state = run.state if run else "not begun"
        outcome = f"{work}, {victim}: {state}"
        if run is not None and state == "running":
            assert not guarded
            outcome += f", {way}: {self._recovered(run, way, start, goal)}"
        else:
            assert crash_rack.seen().differences(goal if state == "done" else start) == {}, state
            assert state in {"done", "rolled-back", "refused", "not begun"}
            assert victim != "kill-guard" or state == "done"
        self.outcomes[outcome] += 1
        given_back = ended.status == 0 or (guarded and state != "done")  # it may die with nothing left to do but that
        self.require_free(later_s=0.0 if given_back else LEASE_TERM_S)
        assert known_cells(crash_rack) == crash_rack.rack.cells()
        assert store.runs.unfinished(now=time.time() + LEASE_TERM_S) == ()

    def require_honest(self) -> None:
        """In this moment, before anybody has mended anything: no foreign light has moved, no record is wrong."""
        cells = self.crash_rack.rack.cells()
        assert self.crash_rack.kept(cells) == self.crash_rack.kept(self.crash_rack.before.cells)
        assert all(not held or held == cells[device] for device, held in known_cells(self.crash_rack).items())

    def _recovered(self, run: StoredRun, way: str, start: Seen, goal: Seen) -> str:
        """Nobody has taken the run back: it is named, and as soon as its lease ends the next command can continue."""
        crash_rack, state = self.crash_rack, "rolled-back"
        assert crash_rack.rack.store.runs.unfinished(now=time.time() + LEASE_TERM_S) == (run.id,)
        with crash_rack.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
            if way == "rollback":
                apply(later, plan_rollback(later, run))
                state = "undone"
            elif way == "abort":
                abort(later, run)
            else:
                state = resume(later, run).outcome
        assert crash_rack.rack.store.runs.get(run.id).state == state
        assert crash_rack.seen().differences(goal if state == "done" else start) == {}
        return state

    def require_free(self, *, later_s: float) -> None:
        """Nobody holds the lease so much later."""
        require_free(self.crash_rack, later_s=later_s)


class Lost:
    """Takes the store from engines on one crash rack; none may leave the rack half done without saying so."""

    def __init__(self, crash_rack: CrashRack) -> None:
        self.crash_rack = crash_rack
        self.outcomes: Counter[str] = Counter()

    def at_moment(self, number: int, happens: Callable[[], object], mend: Callable[[], object] = lambda: None) -> Ended:
        """Apply the swap; something happens to its store at a moment of it, and is mended when the engine has ended."""
        crash_rack = self.crash_rack
        plan = crash_rack.ready("swap")
        newest = crash_rack.newest()
        try:
            status, said = crash_rack.run_alone(plan, happens, at=number)
            crash_rack.await_guards()
            cells = crash_rack.rack.cells()
        finally:
            mend()
        assert crash_rack.kept(cells) == crash_rack.kept(crash_rack.before.cells)
        run = crash_rack.newest()
        run = None if run is None or (newest and run.fence == newest.fence) else run
        state = run.state if run else "not begun"
        self.outcomes[f"exit {status}: {state}"] += 1
        if status == ExitCode.DONE:
            assert state == "done"
            assert crash_rack.seen().differences(crash_rack.after) == {}
            self._pass_term()
            require_free(crash_rack, later_s=LEASE_TERM_S)  # it may not have been able to give its lease back
            return Ended(status, said, run)
        assert said.splitlines()[-1]
        assert cells in (crash_rack.before.cells, crash_rack.after.cells)
        if status != ExitCode.HALF_DONE:
            assert cells == crash_rack.before.cells
        self._pass_term()
        require_free(crash_rack, later_s=LEASE_TERM_S)
        if run is not None and state in {"running", "half-done"}:
            assert crash_rack.rack.store.runs.unfinished(now=time.time() + LEASE_TERM_S) == (run.id,)
            with crash_rack.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
                abort(later, run)
        elif state == "done":  # the engine could not know
            crash_rack.take_back(run)
        assert crash_rack.seen().differences(crash_rack.before) == {}
        return Ended(status, said, run)

    def _pass_term(self) -> None:
        """Where the database's own clock counts: no lease ends later than a term from now, and now that has passed."""
        if "://" in self.crash_rack.rack.place:
            with writing(self.crash_rack.rack.store._engine) as connection:
                left_s = "SELECT expires_at - extract(epoch FROM clock_timestamp()) FROM leases"
                assert connection.exec_driver_sql(left_s).scalar() <= LEASE_TERM_S
                connection.exec_driver_sql("UPDATE leases SET expires_at = 0")


def known_cells(crash_rack: CrashRack) -> dict[str, dict[int, str]]:
    """What the store says that each mesh holds."""
    (rack,) = crash_rack.rack.inventory.racks
    return crash_rack.rack.context.known_fabric(rack)


def require_free(crash_rack: CrashRack, *, later_s: float) -> None:
    """Nobody holds the lease so much later."""
    store = crash_rack.rack.store
    (rack,) = crash_rack.rack.inventory.racks
    lease = store.leases.acquire(rack, "the next one", term_s=LEASE_TERM_S, now=time.time() + later_s)
    store.leases.release(lease)
