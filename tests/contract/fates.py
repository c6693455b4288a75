"""What became of a rack whose engine was killed: judged by its devices, held against its journal."""

import os
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from yard import Ended, Seen, Yard

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


class Fates:
    """Kills engines on one yard; each case must end in the planned state or in the one before."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.outcomes: Counter[str] = Counter()

    def at_moment(self, work: str, victim: str, number: int, way: str = "rollback") -> None:
        """Kill at a moment of the run; where it is left cut, an operator continues in one of the ways."""
        plan = self.yard.ready(work)
        ended = self.yard.run(plan, at=number, do=victim)
        assert ended.status == (0 if victim == "kill-guard" else -signal.SIGKILL)
        self.judge(work, victim, ended, way)

    def at_instant(self, work: str, victim: str, after_s: float, way: str = "rollback") -> None:
        """Kill so long after the run has begun, or earlier where it has come to its end by then."""
        plan = self.yard.ready(work)
        newest = self.yard.newest()
        with suppress(ProcessLookupError):  # it has come to its end
            process = os.pidfd_open(self.yard.start(plan))
            try:
                if not select.select([process], [], [], after_s)[0]:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
            finally:
                os.close(process)
        ended = self.yard.end(fence=newest.fence if newest else None)
        if not ended.status:  # it was quicker than that
            self.at_instant(work, victim, after_s * 0.8, way)
            return
        assert ended.status == -signal.SIGKILL
        self.judge(work, victim, ended, way)

    def judge(self, work: str, victim: str, ended: Ended, way: str) -> None:
        """Hold what the devices show against what the journal says."""
        yard, store = self.yard, self.yard.rack.store
        start, goal = (yard.before, yard.after) if work == "swap" else (yard.after, yard.before)
        if victim == "kill-both":
            yard.end_guards()
        self.require_honest()
        guarded = yard.await_guards() and victim != "kill-both"
        run = store.runs.get(ended.run.id) if ended.run else None
        state = run.state if run else "not begun"
        outcome = f"{work}, {victim}: {state}"
        if run is not None and state == "running":
            assert not guarded
            outcome += f", {way}: {self._recovered(run, way, start, goal)}"
        else:
            assert yard.seen().differences(goal if state == "done" else start) == {}, state
            assert state in {"done", "rolled-back", "refused", "not begun"}
            assert victim != "kill-guard" or state == "done"
        self.outcomes[outcome] += 1
        given_back = ended.status == 0 or (guarded and state != "done")  # it may die with nothing left to do but that
        self.require_free(later_s=0.0 if given_back else LEASE_TERM_S)
        assert yard.rack.context.known_states("mesh") == yard.rack.cells()["mesh"]
        assert store.runs.unfinished(now=time.time() + LEASE_TERM_S) == ()

    def require_honest(self) -> None:
        """In this moment, before anybody has mended anything: no foreign light has moved, no record is wrong."""
        cells = self.yard.rack.cells()
        assert self.yard.kept(cells) == self.yard.kept(self.yard.before.cells)
        known = self.yard.rack.context.known_states("mesh")
        assert not known or known == cells["mesh"]

    def _recovered(self, run: StoredRun, way: str, start: Seen, goal: Seen) -> str:
        """Nobody has taken the run back: it is named, and as soon as its lease ends the next command can continue."""
        yard, state = self.yard, "rolled-back"
        assert yard.rack.store.runs.unfinished(now=time.time() + LEASE_TERM_S) == (run.id,)
        with yard.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
            if way == "rollback":
                apply(later, plan_rollback(later, run))
                state = "undone"
            elif way == "abort":
                abort(later, run)
            else:
                state = resume(later, run).outcome
        assert yard.rack.store.runs.get(run.id).state == state
        assert yard.seen().differences(goal if state == "done" else start) == {}
        return state

    def require_free(self, *, later_s: float) -> None:
        """Nobody holds the lease so much later."""
        require_free(self.yard, later_s=later_s)


class Lost:
    """Takes the store from engines on one yard; none may leave the rack half done without saying so."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.outcomes: Counter[str] = Counter()

    def at_moment(self, number: int, happens: Callable[[], object], mend: Callable[[], object] = lambda: None) -> Ended:
        """Apply the swap; something happens to its store at a moment of it, and is mended when the engine has ended."""
        yard = self.yard
        plan = yard.ready("swap")
        newest = yard.newest()
        try:
            status, said = yard.run_alone(plan, happens, at=number)
            yard.await_guards()
            cells = yard.rack.cells()
        finally:
            mend()
        assert yard.kept(cells) == yard.kept(yard.before.cells)
        run = yard.newest()
        run = None if run is None or (newest and run.fence == newest.fence) else run
        state = run.state if run else "not begun"
        self.outcomes[f"exit {status}: {state}"] += 1
        if status == ExitCode.DONE:
            assert state == "done"
            assert yard.seen().differences(yard.after) == {}
            self._pass_term()
            require_free(yard, later_s=LEASE_TERM_S)  # it may not have been able to give its lease back
            return Ended(status, said, run)
        assert said.splitlines()[-1]
        assert cells in (yard.before.cells, yard.after.cells)
        if status != ExitCode.HALF_DONE:
            assert cells == yard.before.cells
        self._pass_term()
        require_free(yard, later_s=LEASE_TERM_S)
        if run is not None and state in {"running", "half-done"}:
            assert yard.rack.store.runs.unfinished(now=time.time() + LEASE_TERM_S) == (run.id,)
            with yard.rack.another_context(now=lambda: time.time() + LEASE_TERM_S) as later:
                abort(later, run)
        elif state == "done":  # the engine could not know
            yard.take_back(run)
        assert yard.seen().differences(yard.before) == {}
        return Ended(status, said, run)

    def _pass_term(self) -> None:
        """Where the database's own clock counts: no lease ends later than a term from now, and now that has passed."""
        if "://" in self.yard.rack.place:
            with writing(self.yard.rack.store._engine) as connection:
                left_s = "SELECT expires_at - extract(epoch FROM clock_timestamp()) FROM leases"
                assert connection.exec_driver_sql(left_s).scalar() <= LEASE_TERM_S
                connection.exec_driver_sql("UPDATE leases SET expires_at = 0")


def require_free(yard: Yard, *, later_s: float) -> None:
    """Nobody holds the lease so much later."""
    store = yard.rack.store
    lease = store.leases.acquire("prototype", "the next one", term_s=LEASE_TERM_S, now=time.time() + later_s)
    store.leases.release(lease)
