"""The moments of a run at which something may happen to it: before and after each transaction, and each act.

They are found where they pass, so that a run which was recorded says which there are. At the moment number ``at``
the order's ``do`` is done: ``kill`` (this process), ``kill-both`` (the guard and this process), ``kill-guard``,
``stop`` (SIGSTOP), or ``ask``: the test does what it likes and answers, perhaps with a ``clock`` that has jumped by so
many seconds.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from lumctl.change.step_actions import ACTIONS
from lumctl.store import Store
from lumctl.store.leases import Leases
from lumctl.store.runs import Runs


class Moments:
    """Counts the moments of one run."""

    def __init__(self, order: Mapping[str, Any], ask: Callable[[], Mapping[str, Any]]) -> None:
        self._at, self._do, self._ask = order.get("at"), order.get("do"), ask
        self._jumped_s = float(order.get("clock", 0.0))
        self._lock = threading.Lock()
        self.labels: list[str] = []
        self.guard: int | None = None

    def now(self) -> float:
        """The time of this machine's clock, which may jump."""
        return time.time() + self._jumped_s

    def watch(self, store: Store) -> None:
        """Count the transactions of a store, and the acts of all steps."""
        dialect = store._engine.dialect
        commit = dialect.do_commit

        def committed(connection: Any) -> None:
            what = f"commit of {_caller()}"
            self._pass(f"before {what}")
            commit(connection)
            self._pass(f"after {what}")

        dialect.do_commit = committed  # type: ignore[method-assign]
        for action in {type(action) for action in ACTIONS.values()}:
            for name in ("act", "undo"):
                self._surround(action, name)

    def _surround(self, action: type, name: str) -> None:
        real = getattr(action, name)

        def surrounded(*words: Any) -> Any:
            what = f"{name} {words[2].do.value}"
            self._pass(f"before {what}")
            result = real(*words)
            self._pass(f"after {what}")
            return result

        setattr(action, name, surrounded)

    def _pass(self, label: str) -> None:
        with self._lock:
            self.labels.append(label)
            if len(self.labels) == self._at:
                self._happen()

    def _happen(self) -> None:
        if self._do == "ask":
            self._jumped_s += float(self._ask().get("clock", 0.0))
            return
        if self._do in {"kill-both", "kill-guard"} and self.guard is not None:
            with suppress(ProcessLookupError):
                os.kill(self.guard, signal.SIGKILL)
        if self._do in {"kill", "kill-both"}:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._do == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)


def _caller() -> str:
    """Which method of the store is committing."""
    frame, name = sys._getframe(1), ""
    while frame.f_back is not None:
        frame = frame.f_back
        if isinstance(frame.f_locals.get("self"), (Leases, Runs)):
            name = frame.f_code.co_name
    return name
