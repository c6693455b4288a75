"""The kinds of control over a job: how it is paused before its light moves, and continues where it is placed then.

A kind is a class that a package offers by an entry point of the group ``lumctl.jobs``; ``command``, programs of the
operator's own, is one among them. Its ``entry`` says what it needs in an inventory.
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
    """A hook said no: the job is as it was."""


class HookFailedError(UnreachableError):
    """A hook did not come to its end, or did not tell: what the job does is not certain."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a job's control is told of the run that calls it; ``spares[i]`` takes the place of ``failed[i]``."""

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
    """Runs a program to its end, without a shell: no other of this job beside it, and none that outlives lumctl.

    Its environment tells of the run, as that of every hook does.
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
    """What a job's control is made from.

    ``settings`` is the ``entry`` of its kind as it was read, ``timeout_s`` the most that one act may take, and
    ``inventory`` the file, to whose folder its paths are relative. ``placement`` gives where the job is placed now,
    ``host_of`` the host of an accelerator and ``address_of`` where a host answers on the target. ``now`` (seconds) only
    ever grows; ``wait`` waits for so many seconds where nothing tells that something has happened.
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

    What it raises says what became of the job: a ``RefusedError`` that it is as it was and so is all else, any other
    ``LumctlError`` that nobody knows. Evidence is for the journal: ``was`` and ``is`` are the job's states before and
    after; no secret belongs there.
    """

    api_version: ClassVar[int]
    entry: ClassVar[type[JobKindEntry] | None]

    def __init__(self, context: JobContext) -> None: ...

    def status(self) -> str | None:
        """What the job does: running, paused or stopped; ``None`` where nothing tells.

        One that may begin to run without being asked is running.
        """
        ...

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Have the job pause, unless it is quiet already. ``placement`` is where it runs."""
        ...

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Have the job continue at ``placement``, unless it runs there already.

        A job that runs at other ranks is moved, or the call raises: success means that it runs at ``placement``. The
        evidence names under ``ranks`` where each rank really runs, in the order of ranks, with commas between them: its
        accelerator, or its host where only that is known. Lumctl then compares them with the placement. A control that
        does not know all of them leaves ``ranks`` out, and never copies them from ``placement``.

        What a pause of the same run did elsewhere and is not needed any more is undone: the failed accelerators
        are in the placement again where the swap was.
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
    """Import the control of that kind and check that this program can use it; a swap does not wait for a second look.

    Raises:
        UsageError: there is none of that name, two packages offer it, it does not import, or it is none.
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
