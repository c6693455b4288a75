"""What the dashboard asks of the rest of the program to plan a swap and to apply it.

``lumctl.cli.top`` connects these to ``lumctl.swap``. Both calls block; the dashboard makes them in threads of their
own and shows any :class:`~lumctl.errors.LumctlError` they raise as one line with its hint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from lumctl.errors import RefusedError
from lumctl.tui.threads.replay import Replayer
from lumctl.tui.views.light import Receiver
from lumctl.tui.views.meshes import MeshChange
from lumctl.tui.views.steps import StepView


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as it is shown before a person says yes. ``plan`` is handed back to the :class:`Applier` untouched.

    ``steps`` and ``receivers`` are what is followed while it is applied, ``changes`` what it makes of each mesh.
    """

    title: str
    target: str
    lines: tuple[str, ...]
    plan: Any
    steps: tuple[StepView, ...] = ()
    receivers: tuple[Receiver, ...] = ()
    changes: tuple[MeshChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyView:
    """How an apply ended: one line, whether it did what was planned, and where to read on.

    ``error`` is what it failed with, for whoever reports it after the screen is closed; ``run`` is the run that was
    done, as ``RACK/ID``, where there was one.
    """

    outcome: str
    done: bool
    lines: tuple[str, ...] = ()
    error: Exception | None = None
    run: str = ""


class Planner(Protocol):
    """Plans the replacement of one accelerator."""

    def __call__(self, job: str, failed: str, /) -> PlanView:
        """Plan; changes nothing.

        Raises:
            LumctlError: there is no such plan, and why.
        """
        ...


class Applier(Protocol):
    """Applies a plan that a person has confirmed."""

    def __call__(self, plan: PlanView, progress: Callable[[str], None], /) -> ApplyView:
        """Apply; ``progress`` takes a line for each thing done and may be called from any thread.

        Raises:
            LumctlError: it was refused, rolled back, or left half done.
        """
        ...


class Acknowledger(Protocol):
    """Says that the findings of some components are known."""

    def __call__(self, components: Sequence[str], comment: str, /) -> str:
        """Write it down; gives a line that says what was done.

        Raises:
            LumctlError: it was not, and why.
        """
        ...


class TakingBack(Protocol):
    """Plans to take a run back."""

    def __call__(self, run: str, /) -> PlanView:
        """Plan; changes nothing. ``run`` is ``RACK/ID``.

        Raises:
            LumctlError: it cannot be undone, and why.
        """
        ...


class Switch(Protocol):
    """Stops the autopilot of a rack, or lets it act again."""

    def __call__(self, rack: str, comment: str, /) -> ApplyView:
        """Do it, with ``comment`` for everybody to read; gives by which ways it worked.

        Raises:
            LumctlError: by none.
        """
        ...


class Answerer(Protocol):
    """Answers a plan that waits for approval."""

    def __call__(self, rack: str, plan: str, comment: str, /, *, approve: bool) -> ApplyView:
        """Approve or reject it, under the own name of whoever runs the dashboard.

        Raises:
            LumctlError: it was answered before, it is too late, or it is not for this person to say.
        """
        ...


def only_shown(acts: "Acts") -> "Acts":
    """The same where nothing may be changed: whatever asks for a change, by whatever way, is told why not."""
    if not acts.forbidden:
        return acts

    def refuse(*_: object) -> Any:
        raise RefusedError(acts.forbidden)

    # A replay has a simulator of its own and changes nothing else.
    refused = {each.name: refuse for each in fields(acts) if each.name not in {"forbidden", "replay"}}
    return replace(acts, **refused)  # type: ignore[arg-type]


def _not_here(*_: object, **__: object) -> Any:
    raise RefusedError("this dashboard cannot do that", hint="see: lumctl --help")


@dataclass(frozen=True, slots=True)
class Acts:
    """What may be done from the dashboard. ``forbidden`` says why nothing may be changed; empty where it may."""

    plan: Planner
    apply: Applier
    forbidden: str = ""
    acknowledge: Acknowledger = _not_here
    take_back: TakingBack = _not_here
    replay: Replayer = _not_here
    stop_autopilot: Switch = _not_here
    start_autopilot: Switch = _not_here
    answer_plan: Answerer = _not_here
