"""The kinds of job control: how a job is paused before its light moves, and resumed at its new placement.

A kind is a class that a package offers by an entry point of the group ``lumctl.jobs``. One kind is ``command``, which
runs the operator's own programs. The ``entry`` of a kind describes its settings in an inventory.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar, Unpack, runtime_checkable

from lumctl.api_versions import Misfit
from lumctl.containment import Culprit, MisbehavedError, contained
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.inventory.entry import JobKindEntry
from lumctl.inventory.job_kinds import GROUP, UPGRADE, WHAT, fitted
from lumctl.inventory.job_run import JobHook
from lumctl.offers import the_offer, usable
from lumctl.programs import Ended

T = TypeVar("T")

RUNNING, PAUSED, STOPPED = "running", "paused", "stopped"
STATES = frozenset({RUNNING, PAUSED, STOPPED})
QUIET = frozenset({PAUSED, STOPPED})
"""States of a job in which its light paths may change."""
PAUSE, RESUME, STATUS = "pause", "resume", "status"
# ``scheduled`` is optional: see SchedulerView.
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
    """``most_said``: how many bytes of a program's output are read, if it prints more than a few lines."""

    most_said: int


class Run(Protocol):
    """Runs a program to its end, without a shell.

    A job has one running program at a time, and no program outlives lumctl. The program's environment describes the
    run, as for every hook.
    """

    def __call__(
        self,
        argv: Sequence[str],
        *,
        act: str,
        timeout_s: float,
        **more: Unpack[More],
    ) -> Ended:
        """Run a program.

        Raises:
            LumctlError: the program could not be started.
        """
        ...


@dataclass(frozen=True, slots=True)
class JobContext:
    """The construction data of a job's control.

    ``settings`` is the parsed ``entry`` of the kind, and ``timeout_s`` the time limit of one act. Paths in the settings
    are relative to the folder of the file ``inventory``. ``placement`` returns where the job is placed now, ``host_of``
    the host of an accelerator, and ``address_of`` the address of a host on the target. ``now`` is a monotonic clock in
    seconds. ``wait`` waits for a number of seconds: use it where no event reports a change.
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
    """The control of one job by one kind.

    Its exceptions say in which state the job is: after a ``RefusedError`` the job and everything else is unchanged;
    after any other ``LumctlError`` its state is unknown. ``pause`` and ``resume`` return evidence for the journal:
    ``was`` and ``is`` are the job's states before and after. Evidence must not hold secrets.
    """

    api_version: ClassVar[int]
    entry: ClassVar[type[JobKindEntry] | None]

    def __init__(self, context: JobContext) -> None: ...

    def status(self) -> str | None:
        """The state of the job: running, paused or stopped; ``None`` if the state cannot be found.

        A job that may start by itself counts as running.
        """
        ...

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Pause the job, unless it is paused or stopped already. ``placement`` is where it runs."""
        ...

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Resume the job at ``placement``, unless it runs there already.

        Success means that the job runs at ``placement``: if it runs elsewhere, the control moves it or raises. The
        evidence states under ``ranks`` where each rank really runs: its accelerator, or its host if only the host is
        known, in the order of ranks and separated by commas. Lumctl compares ``ranks`` with the placement. A control
        that does not know where every rank runs omits ``ranks``; it never copies them from ``placement``.

        The call also undoes side effects of a pause of the same run that are no longer needed. Example: after a swap
        was undone, the failed accelerators are in the placement again.
        """
        ...

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """The programs that the control runs, with their arguments, by act. All must be installed before it acts."""
        ...

    @classmethod
    def words(cls, settings: Any) -> str:
        """A description for operators of how the job is controlled."""
        ...


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """A job in its scheduler's own words; a field that the scheduler does not report is empty.

    ``elapsed`` is the time that the job has run.
    """

    id: str
    user: str = ""
    state: str = ""
    elapsed: str = ""
    name: str = ""


@runtime_checkable
class SchedulerView(Protocol):
    """An optional part of a :class:`JobControl`: the scheduler's own view of its jobs, read only."""

    def scheduled(self, host: str | None) -> Sequence[Mapping[str, str]]:
        """The scheduler's jobs on a host of the inventory that have not ended; without a host, the job itself.

        Each mapping has the fields of :class:`ScheduledJob` by name.

        Raises:
            LumctlError: the scheduler does not report them.
        """
        ...


@cache
def load(kind: str) -> type[JobControl]:
    """Import a kind of control and check that this program can use it. The result is cached: a swap checks only once.

    Raises:
        UsageError: no package offers the kind, two packages offer it, it does not import, or it is not a control.
    """
    control: type[JobControl] = usable(GROUP, kind, WHAT, _fitted)
    return control


@cache
def culprit(kind: str) -> Culprit:
    """The name of a kind in errors."""
    return the_offer(GROUP, kind, WHAT).culprit(WHAT)


def _fitted(found: object) -> type | Misfit:
    kind = fitted(found)
    if isinstance(kind, Misfit):
        return kind
    missing = [name for name in _METHODS if not callable(getattr(kind, name, None))]
    return Misfit(f"lacks {', '.join(missing)}", UPGRADE) if missing else kind


ASKED_WITHIN_S = 5.0


def programs_of(hook: JobHook) -> Mapping[str, Sequence[str]]:
    """The programs that a hook runs, by act.

    Raises:
        UsageError: the hook's kind is not installed, or does not name its programs.
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
