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
    """A plan as it is shown before the operator's yes. The :class:`Applier` gets ``plan`` unchanged.

    ``steps`` and ``receivers`` are followed while it is applied, ``changes`` are those of each mesh.
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
    """How an apply ended: one line, whether it succeeded, and where to read on.

    ``error`` is the failure, to be reported after the screen is closed; ``run`` is the run that was done, as
    ``RACK/ID``, if there was one.
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
        """Apply; ``progress`` gets a line for each step and may be called from any thread.

        Raises:
            LumctlError: it was refused, rolled back, or left half done.
        """
        ...


class Acknowledger(Protocol):
    """Acknowledges the findings of some components."""

    def __call__(self, components: Sequence[str], comment: str, /) -> str:
        """Record it; return a line with the result.

        Raises:
            LumctlError: it was not recorded, and why.
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
        """Do it, with ``comment`` visible to all users; return the ways that worked.

        Raises:
            LumctlError: no way worked.
        """
        ...


class Answerer(Protocol):
    """Answers a plan that waits for approval."""

    def __call__(self, rack: str, plan: str, comment: str, /, *, approve: bool) -> ApplyView:
        """Approve or reject it, under the name of the dashboard's user.

        Raises:
            LumctlError: it was answered before, it has expired, or this user may not answer it.
        """
        ...


def only_shown(acts: "Acts") -> "Acts":
    """The same actions in read-only mode: each request for a change is refused with the reason."""
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
    """The actions of the dashboard. ``forbidden`` is the reason for read-only mode; empty if changes are allowed."""

    plan: Planner
    apply: Applier
    forbidden: str = ""
    acknowledge: Acknowledger = _not_here
    take_back: TakingBack = _not_here
    replay: Replayer = _not_here
    stop_autopilot: Switch = _not_here
    start_autopilot: Switch = _not_here
    answer_plan: Answerer = _not_here
