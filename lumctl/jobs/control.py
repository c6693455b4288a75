"""The kinds of control over a job: how it is paused before its light moves, and resumed at its new placement.

A kind is a class that a package offers by an entry point of the group ``lumctl.jobs``; ``command``, the operator's
own programs, is one of them. Its ``entry`` describes its settings in an inventory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar, Unpack

from lumctl.api_versions import Misfit
from lumctl.containment import Culprit, MisbehavedError, contained
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.inventory.job_entries import JobKindEntry
from lumctl.inventory.job_kinds import GROUP, UPGRADE, WHAT, fitted
from lumctl.inventory.model import JobHook
from lumctl.offers import the_offer, usable
from lumctl.programs import Ended

T = TypeVar("T")

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
STATES = frozenset({RUNNING, PAUSED, STOPPED})
QUIET = frozenset({PAUSED, STOPPED})
"""States of a job in which its light may move."""
PAUSE, RESUME, STATUS = "pause", "resume", "status"
_METHODS = ("status", "pause", "resume", "programs", "words")


class HookRefusedError(RefusedError):
    """A hook refused: the job is unchanged."""


class HookFailedError(UnreachableError):
    """A hook did not finish, or did not report: the state of the job is uncertain."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The data of a run for a job's control; ``spares[i]`` replaces ``failed[i]``."""

    run: str = ""
    failed: Sequence[str] = ()
    spares: Sequence[str] = ()


NOBODY = Facts()


@dataclass(frozen=True, slots=True)
class Rank:
    """Where one rank of a job is placed; ``index`` is the accelerator's number on its host."""

    rank: int
    accelerator: str
    host: str
    index: int


Placement = Sequence[Rank]


class More(TypedDict, total=False):
    """How many bytes of what a program prints are kept, where that is more than a few lines."""

    most_said: int


class Run(Protocol):
    """Runs a program to its end, without a shell: one at a time for a job, and none that outlives lumctl.

    Its environment describes the run, as that of every hook does.
    """

    def __call__(
        self,
        argv: Sequence[str],
        *,
        act: str,
        timeout_s: float,
        **more: Unpack[More],
    ) -> Ended:
        """Run it.

        Raises:
            LumctlError: it could not be started.
        """
        ...


@dataclass(frozen=True, slots=True)
class JobContext:
    """The construction data of a job's control.

    ``settings`` is the parsed ``entry`` of its kind, ``timeout_s`` the time limit of one act, and ``inventory`` the
    file to whose folder its paths are relative. ``placement`` returns where the job is placed now, ``host_of`` the
    host of an accelerator and ``address_of`` the address of a host on the target. ``now`` (seconds) only grows;
    ``wait`` waits for a number of seconds if no event reports the change.
    """

    job: str
    target: str
    timeout_s: float
    settings: Any
    inventory: Path
    placement: "Callable[[], Placement]"
    host_of: Callable[[str], str]
    address_of: Callable[[str], str]
    run: Run
    now: Callable[[], float]
    wait: Callable[[float], object]


class JobControl(Protocol):
    """One kind of control over a job.

    Its exceptions tell the state of the job: after a ``RefusedError`` the job and everything else is unchanged, after
    any other ``LumctlError`` it is unknown. Evidence is for the journal: ``was`` and ``is`` are the job's states
    before and after; it must not hold secrets.
    """

    api_version: ClassVar[int]
    entry: ClassVar[type[JobKindEntry] | None]

    def __init__(self, context: JobContext) -> None: ...

    def status(self) -> str | None:
        """The state of the job: running, paused or stopped; ``None`` if it cannot be found.

        A job that may start by itself counts as running.
        """
        ...

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Have the job pause, unless it is quiet already. ``placement`` is where it runs."""
        ...

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Resume the job at ``placement``, unless it runs there already.

        A job that runs at other ranks is moved, or the call raises: success means that it runs at ``placement``. The
        evidence has under ``ranks`` where each rank really runs, in the order of ranks, separated by commas: its
        accelerator, or its host if only that is known. Lumctl then compares them with the placement. A control that
        does not know all of them leaves ``ranks`` out, and never copies them from ``placement``.

        It also undoes what a pause of the same run did elsewhere and is no longer needed: after an undone swap the
        failed accelerators are in the placement again.
        """
        ...

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """The programs that it runs, each with its arguments, by what each does; all must be there before it acts."""
        ...

    @classmethod
    def words(cls, settings: Any) -> str:
        """How the job is controlled, in words for a person."""
        ...


@cache
def load(kind: str) -> type[JobControl]:
    """Import the control of that kind and check that this program can use it; a swap does not check again.

    Raises:
        UsageError: there is none of that name, two packages offer it, it does not import, or it is not a control.
    """
    control: type[JobControl] = usable(GROUP, kind, WHAT, _fitted)
    return control


@cache
def culprit(kind: str) -> Culprit:
    """What errors call that kind."""
    return the_offer(GROUP, kind, WHAT).culprit(WHAT)


def _fitted(found: object) -> type | Misfit:
    kind = fitted(found)
    if isinstance(kind, Misfit):
        return kind
    missing = [name for name in _METHODS if not callable(getattr(kind, name, None))]
    return Misfit(f"lacks {', '.join(missing)}", UPGRADE) if missing else kind


ASKED_WITHIN_S = 5.0


def programs_of(hook: JobHook) -> Mapping[str, Sequence[str]]:
    """The programs that a hook runs, by what each does.

    Raises:
        UsageError: its kind is not installed, or does not name its programs.
    """
    kind = load(hook.kind)
    return _asked(hook.kind, "programs", lambda: kind.programs(hook.for_control))


def words_of(hook: JobHook) -> str:
    """A description for operators of how a hook controls its job. Raises as :func:`programs_of`."""
    kind = load(hook.kind)
    return str(_asked(hook.kind, "words", lambda: kind.words(hook.settings)))


def _asked(kind: str, name: str, call: Callable[[], T]) -> T:
    try:
        return contained(culprit(kind), name, call, ASKED_WITHIN_S)
    except MisbehavedError as error:
        raise UsageError(error.message, hint=error.hint) from error
