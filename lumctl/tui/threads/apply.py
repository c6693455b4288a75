"""An apply in a thread of its own. It outlives the screen on which it was begun, and so does its outcome."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

from lumctl.process_exit import FinishingThread
from lumctl.tui.actions import Applier, ApplyView, PlanView
from lumctl.tui.threads.collector import one_line


class Applying:
    """Applies one plan at a time and keeps how the last one ended."""

    def __init__(self, apply: Applier) -> None:
        self._apply = apply
        self._last: Future[ApplyView] | None = None

    @property
    def under_way(self) -> bool:
        """Whether a plan is being applied now."""
        return self._last is not None and not self._last.done()

    def begin(self, plan: PlanView, progress: Callable[[str], None], ended: Callable[[ApplyView], object]) -> None:
        """Apply a plan; ``progress`` and ``ended`` are called from another thread."""
        self._last = Future()
        # However the screen is lost, the process does not end before the apply has.
        FinishingThread(target=self._run, args=(self._last, plan, progress, ended), name="lumctl-apply").start()

    def outcome(self) -> ApplyView | None:
        """How the last apply ended, once it has; ``None`` if there was none."""
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
        except Exception as error:  # noqa: BLE001 - whatever went wrong is an outcome, never a traceback
            view = ApplyView(f"not done: {one_line(error)}", done=False, error=error)
        outcome.set_result(view)
        with suppress(Exception):  # the screen may be gone; the outcome is kept
            ended(view)
