"""An apply in a thread of its own. The apply and its outcome outlive the screen that began it."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from lumctl.errors import LumctlError
from lumctl.process_exit import FinishingThread
from lumctl.tui.actions import Applier, ApplyView, PlanView
from lumctl.tui.threads.collector import one_line


class Applying:
    """Applies one plan at a time and stores the result of the last one."""

    def __init__(self, apply: Applier) -> None:
        self._apply = apply
        self._last: Future[ApplyView] | None = None
        self._ended_at = 0.0

    @property
    def ended_s_ago(self) -> float:
        """How long ago the last apply ended, in seconds."""
        return time.monotonic() - self._ended_at

    @property
    def under_way(self) -> bool:
        """Whether a plan is being applied now."""
        return self._last is not None and not self._last.done()

    def begin(self, plan: PlanView, progress: Callable[[str], None], ended: Callable[[ApplyView], object]) -> None:
        """Apply a plan; ``progress`` and ``ended`` are called from another thread."""
        self._last = Future()
        # Even if the screen is lost, the process does not end before the apply has ended.
        FinishingThread(target=self._run, args=(self._last, plan, progress, ended), name="lumctl-apply").start()

    def outcome(self) -> ApplyView | None:
        """The outcome of the last apply, after waiting for its end; ``None`` if there was none."""
        return None if self._last is None else self._last.result()

    def _run(
        self,
        outcome: "Future[ApplyView]",
        plan: PlanView,
        progress: Callable[[str], None],
        ended: Callable[[ApplyView], object],
    ) -> None:
        try:
            view = self._apply(plan, progress)
        # Also ``SystemExit`` of a plug-in: without a result, ``outcome`` would wait for ever. It becomes an error,
        # because ``SystemExit`` raised again could end lumctl with code 0.
        except BaseException as raised:  # noqa: BLE001 - every error becomes an outcome, never a traceback
            error = raised if isinstance(raised, Exception) else _interrupted(raised)
            view = ApplyView(f"not done: {one_line(error)}", done=False, error=error)
        self._ended_at = time.monotonic()
        # Before ``ended``, which may lead to the question whether an apply is still under way.
        outcome.set_result(view)
        with suppress(Exception):  # the screen may be gone; the outcome is kept
            ended(view)


def _interrupted(error: BaseException) -> LumctlError:
    return LumctlError(f"the apply was interrupted by {error!r}", hint="see how far it came: lumctl swap list")
