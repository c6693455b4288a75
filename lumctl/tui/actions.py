"""The actions that the dashboard calls in the rest of the program: plan, apply, undo, acknowledge and others.

``lumctl.cli.top`` connects these to ``lumctl.swap`` and others. Each call blocks, so the dashboard makes it in a thread
of its own, and shows a :class:`~lumctl.errors.LumctlError` as one line with its hint.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from lumctl.devices.errors import DeviceError
from lumctl.errors import RefusedError, RolledBackError, UnreachableError
from lumctl.tui.threads.replay import Replayer
from lumctl.tui.views.light import Receiver
from lumctl.tui.views.meshes import MeshChange
from lumctl.tui.views.steps import StepView


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as displayed before the operator confirms it.

    The screen shows ``warnings`` first, then the ``summary``, the steps, and the ``lines`` with the details. It updates
    ``steps`` and ``receivers`` while the plan is applied. ``changes`` are the changes of each mesh.
    """

    title: str
    target: str
    lines: tuple[str, ...]
    plan: Any
    steps: tuple[StepView, ...] = ()
    receivers: tuple[Receiver, ...] = ()
    changes: tuple[MeshChange, ...] = ()
    warnings: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApplyView:
    """The result of an apply: one line, whether it succeeded, and further lines.

    ``error`` is the failure, to be reported after the screen is closed. ``run`` is the run as ``RACK/ID``, empty if
    there was none. ``proved`` has the evidence of the proof of light for each receiver, in words.
    """

    outcome: str
    done: bool
    lines: tuple[str, ...] = ()
    error: Exception | None = None
    run: str = ""
    proved: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing of the plan is in force: it was refused before it changed anything, or all was undone."""
        return isinstance(self.error, RefusedError | RolledBackError | UnreachableError | DeviceError)


class Planner(Protocol):
    """Plans the replacement of accelerators."""

    def __call__(self, job: str | None, /, *failed: str) -> PlanView:
        """Plan to replace all these accelerators together, without changing anything.

        ``job`` is ``None`` if they run ranks of several jobs.

        Raises:
            LumctlError: no such plan is possible; the message has the reason.
        """
        ...


class Applier(Protocol):
    """Applies a plan that an operator has confirmed."""

    def __call__(self, plan: PlanView, progress: Callable[[str], None], /) -> ApplyView:
        """Apply; ``progress`` gets a line for each step and may be called from any thread.

        Raises:
            LumctlError: it was refused, rolled back, or left half done.
        """
        ...


class Acknowledger(Protocol):
    """Acknowledges the findings of some components."""

    def __call__(self, components: Sequence[str], comment: str, /) -> str:
        """Record the acknowledgement; return a line with the result.

        Raises:
            LumctlError: it was not recorded; the message has the reason.
        """
        ...


class Maintainer(Protocol):
    """Opens maintenance windows."""

    def __call__(self, components: Sequence[str], for_s: float, comment: str, /) -> str:
        """Open a window of ``for_s`` seconds on each component; return a line with the result.

        Raises:
            LumctlError: no window was opened; the message has the reason.
        """
        ...


class SlicePlacer(Protocol):
    """Plans a slice."""

    def __call__(self, shape: str, name: str, /) -> PlanView:
        """Plan to place a slice of this shape under this name, without changing anything.

        Raises:
            LumctlError: there is no place for it, or none was found; the message has the reason.
        """
        ...


class Undoer(Protocol):
    """Plans to undo a run."""

    def __call__(self, run: str, /) -> PlanView:
        """Plan to undo ``run`` (``RACK/ID``), without changing anything.

        Raises:
            LumctlError: the run cannot be undone; the message has the reason.
        """
        ...


class Switch(Protocol):
    """Stops the autopilot of a rack, or lets it act again."""

    def __call__(self, rack: str, comment: str, /) -> ApplyView:
        """Stop or start the autopilot, with ``comment`` visible to all users; return the ways that worked.

        Raises:
            LumctlError: no way worked.
        """
        ...


class Answerer(Protocol):
    """Answers a plan that waits for approval."""

    def __call__(self, rack: str, plan: str, comment: str, /, *, approve: bool) -> ApplyView:
        """Approve or reject the plan as the dashboard's user.

        Raises:
            LumctlError: the request was answered or has expired, or this user may not answer it.
        """
        ...


def only_shown(acts: "Acts") -> "Acts":
    """The actions for read-only mode: if ``acts.forbidden`` is set, each change is refused with that reason."""
    if not acts.forbidden:
        return acts

    def refuse(*_: object) -> Any:
        raise RefusedError(acts.forbidden)

    # A replay is allowed: it changes only its own simulator.
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
    maintain: Maintainer = _not_here
    drain: Planner = _not_here
    """As ``plan``, but the accelerators may be healthy."""
    undo: Undoer = _not_here
    place_slice: SlicePlacer = _not_here
    release_slice: Callable[[str], PlanView] = _not_here
    """Plans the release of a slice by its name, as ``place_slice`` plans its placing."""
    replay: Replayer = _not_here
    stop_autopilot: Switch = _not_here
    start_autopilot: Switch = _not_here
    answer_plan: Answerer = _not_here
