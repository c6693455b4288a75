"""The datastores of one device: running, candidate, their locks, and a confirmed commit."""

import threading
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from lumctl.sim.netconf.edit import edit, parts, perform
from lumctl.sim.netconf.tree import NetconfDevice, RpcError, join
from lumctl.sim.world.misbehaviour import Misbehaviour


class Locks:
    """Locks by datastore. Not thread-safe: the caller holds a lock."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def take(self, session: int, target: str) -> None:
        """Lock a datastore.

        Raises:
            RpcError: the datastore is already locked.
        """
        self.require_unlocked(target)
        self._held[target] = session

    def require_unlocked(self, target: str) -> None:
        """Check that a datastore is not locked.

        Raises:
            RpcError: the datastore is locked.
        """
        if target in self._held:
            raise denied(self._held[target], f"{target} is already locked")

    def give_back(self, session: int, target: str) -> None:
        """Unlock a datastore.

        Raises:
            RpcError: this session has not locked it.
        """
        if self._held.get(target) != session:
            raise RpcError("operation-failed", f"this session has not locked {target}")
        del self._held[target]

    def require_free(self, session: int, target: str) -> None:
        """Check that a session may change a datastore.

        Raises:
            RpcError: another session has locked the datastore.
        """
        holder = self._held.get(target, session)
        if holder != session:
            raise RpcError("in-use", f"{target} is locked by session {holder}", info=(("session-id", str(holder)),))

    def left(self, session: int) -> set[str]:
        """Release the locks of a session that has ended; return the datastores that it had locked."""
        freed = {target for target, holder in self._held.items() if holder == session}
        for target in freed:
            del self._held[target]
        return freed


def denied(holder: int, message: str) -> RpcError:
    """The error for a lock that is denied; ``holder`` is the session that prevents it, or 0."""
    return RpcError("lock-denied", message, info=(("session-id", str(holder)),))


RUNNING, CANDIDATE = "running", "candidate"


@dataclass(slots=True)
class _Trial:
    """A commit that is reverted unless it is confirmed."""

    before: Element
    session: int
    persist: str | None
    timer: threading.Timer


class Datastore:
    """Running and candidate configuration of one device. Thread-safe. Sessions are numbers from 1."""

    def __init__(
        self, device: NetconfDevice, *, candidate: bool = True, conduct: Callable[[], Misbehaviour] = Misbehaviour
    ) -> None:
        self.device = device
        self.targets = (CANDIDATE,) if candidate else (RUNNING,)
        """The datastores that may be edited."""
        self._conduct = conduct
        self._lock = threading.RLock()
        self._stores = {RUNNING: deepcopy(device.initial())}
        if candidate:
            self._stores[CANDIDATE] = deepcopy(self._stores[RUNNING])
        self._locks = Locks()
        self._trial: _Trial | None = None

    def read(self, name: str) -> Element:
        """One datastore.

        Raises:
            RpcError: there is no such datastore.
        """
        with self._lock:
            return deepcopy(self._store(name))

    def everything(self) -> Element:
        """The running configuration and the state."""
        with self._lock:
            data = deepcopy(self._stores[RUNNING])
        join(data, self.device.state(), self.device.keys)
        return data

    def edit(self, session: int, target: str, wanted: Element, default: str) -> None:
        """Change a datastore completely or not at all.

        Raises:
            RpcError: the edit is not possible, or another session has locked the datastore.
        """
        with self._lock:
            if target not in self.targets:
                raise RpcError("operation-not-supported", f"{target} cannot be written directly")
            self._locks.require_free(session, target)
            changed = deepcopy(self._stores[target])
            edit(changed, wanted, default, self.device.keys)
            if target == RUNNING:
                self.device.check(changed)
                self._take(changed)
            else:
                self._stores[target] = changed

    def validate(self, name: str) -> None:
        """Check that the device accepts the content of a datastore.

        Raises:
            RpcError: the device does not accept it.
        """
        self.device.check(self.read(name))

    def lock(self, session: int, target: str) -> None:
        """Lock a datastore against other sessions.

        Raises:
            RpcError: another session has locked it, or it is being changed.
        """
        with self._lock:
            self._store(target)
            self._locks.require_unlocked(target)
            # These two refusals are rules of RFC 6241 (7.5).
            if target == CANDIDATE and self._dirty():
                raise denied(0, "the candidate contains uncommitted changes")
            if target == RUNNING and self._trial is not None and self._trial.session != session:
                raise denied(self._trial.session, "a commit is waiting for confirmation")
            self._locks.take(session, target)

    def unlock(self, session: int, target: str) -> None:
        """Release a lock.

        Raises:
            RpcError: the lock is not this session's.
        """
        with self._lock:
            self._store(target)
            self._locks.give_back(session, target)

    def discard(self, session: int) -> None:
        """Reset the candidate to the running configuration."""
        with self._lock:
            self._store(CANDIDATE)
            self._locks.require_free(session, CANDIDATE)
            self._stores[CANDIDATE] = deepcopy(self._stores[RUNNING])

    def commit(
        self, session: int, *, trial_s: float | None = None, persist: str | None = None, persist_id: str | None = None
    ) -> None:
        """Make the candidate the running configuration; with ``trial_s`` it is reverted then unless confirmed.

        Another commit confirms it.

        Raises:
            RpcError: the device does not accept it, or another session has a lock or an unconfirmed commit.
        """
        with self._lock:
            wanted = self._store(CANDIDATE)
            self._locks.require_free(session, RUNNING)
            self._locks.require_free(session, CANDIDATE)
            self._require_trial(session, persist_id)
            self.device.check(wanted)
            running, trial = self._stores[RUNNING], self._trial
            self._take(wanted)
            # Only now: a commit that is refused must not end the trial.
            if trial is not None:
                trial.timer.cancel()
                self._trial = None
            if trial_s is not None:
                # A commit that prolongs a trial still reverts to the state before the first one.
                before = running if trial is None else trial.before
                self._trial = _Trial(before, session, persist or persist_id, self._timer(trial_s))

    def cancel(self, session: int, persist_id: str | None) -> None:
        """Revert a confirmed commit now.

        Raises:
            RpcError: there is no confirmed commit, or it is another session's.
        """
        with self._lock:
            if self._trial is None:
                raise RpcError("operation-failed", "no commit is waiting for confirmation")
            self._require_trial(session, persist_id)
            self._revert()

    def left(self, session: int) -> None:
        """End what a session leaves behind: its locks, its edits of a locked candidate, and its unconfirmed commit.

        An unconfirmed commit with a persist-id remains.
        """
        with self._lock:
            if CANDIDATE in self._locks.left(session):
                self._stores[CANDIDATE] = deepcopy(self._stores[RUNNING])
            if self._trial is not None and self._trial.session == session and self._trial.persist is None:
                self._revert()

    def close(self) -> None:
        """Stop the timer of an unconfirmed commit, if there is one."""
        with self._lock:
            if self._trial is not None:
                self._trial.timer.cancel()

    def _store(self, name: str) -> Element:
        if name not in self._stores:
            raise RpcError("invalid-value", f"datastore {name!r} does not exist")
        return self._stores[name]

    def _dirty(self) -> bool:
        keys = self.device.keys
        return next(parts(self._stores[RUNNING], self._stores[CANDIDATE], keys), None) is not None

    def _require_trial(self, session: int, persist_id: str | None) -> None:
        """Check that a session may confirm, prolong or cancel the pending commit: its own, or one whose id it gives."""
        trial = self._trial
        if persist_id is not None and (trial is None or trial.persist != persist_id):
            raise RpcError("invalid-value", f"no commit of persist-id {persist_id!r} is waiting for confirmation")
        if trial is None or persist_id is not None:
            return
        if trial.persist is not None or trial.session != session:
            raise RpcError("in-use", f"a commit of session {trial.session} is waiting for confirmation")

    def _take(self, wanted: Element) -> None:
        """Make this the running configuration, as far as the device's faults allow.

        Raises:
            RpcError: the device refuses; it may have made none or part of the change.
        """
        conduct, keys = self._conduct(), self.device.keys
        running = deepcopy(self._stores[RUNNING])
        every = tuple(parts(running, wanted, keys))
        taken = conduct.taken(every)
        for number, part in enumerate(every, 1):
            # A faulty device stops in the middle of a change, but only at a configuration that is valid for it.
            if number > len(taken) and (not taken or self._holds(running)):
                break
            perform(running, part, keys)
        self._run(running)
        if conduct.says_no:
            raise RpcError("operation-failed", conduct.complaint)
        if CANDIDATE in self._stores:
            self._stores[CANDIDATE] = deepcopy(running)

    def _holds(self, config: Element) -> bool:
        try:
            self.device.check(config)
        except RpcError:
            return False
        return True

    def _run(self, config: Element) -> None:
        self._stores[RUNNING] = config
        self.device.apply(config)

    def _timer(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._time_out)
        timer.daemon = True
        timer.name = "confirmed commit"
        timer.start()
        return timer

    def _time_out(self) -> None:
        with self._lock:
            # If this timer was cancelled too late, its commit has ended, or another commit has its own timer.
            if self._trial is not None and self._trial.timer is threading.current_thread():
                self._revert()

    def _revert(self) -> None:
        trial, self._trial = self._trial, None
        if trial is not None:
            trial.timer.cancel()
            self._run(trial.before)
            self._stores[CANDIDATE] = deepcopy(trial.before)
