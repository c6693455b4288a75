"""The kind of job control ``command``: it runs the operator's own programs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from lumctl.jobs.control import (
    PAUSE,
    PAUSED,
    QUIET,
    RESUME,
    RUNNING,
    STATUS,
    Facts,
    HookFailedError,
    HookRefusedError,
    JobContext,
    Placement,
)
from lumctl.programs import Ended, plain

if TYPE_CHECKING:
    from lumctl.inventory.entry import JobKindEntry
    from lumctl.inventory.job_run import JobHook

SAID_LINES = 5
RUNS_AT = "LUMCTL_RUNS_AT="
"""The start of the line in which a status or resume hook reports where the ranks of the job run."""
MOST_SAID = 65_536
"""Bytes of a hook's output that are read: the line that starts with ``RUNS_AT`` names every rank."""
BY_SIGNAL = range(129, 193)
"""Exit codes that mean a signal ended the hook or its program: the hook did not refuse."""


class CommandControl:
    """Programs that pause a job, resume it, and report its state."""

    api_version: ClassVar[int] = 1
    entry: ClassVar["type[JobKindEntry] | None"] = None  # the inventory's own model describes it

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._hook: JobHook = context.settings

    def status(self) -> str | None:
        """The first word that the status hook prints; ``None`` if there is no such hook.

        Raises:
            HookFailedError: the hook did not report a state.
        """
        return self._status()[0]

    def _status(self) -> tuple[str | None, dict[str, str]]:
        """The state of the job, and the evidence of where it runs."""
        if self._hook.status is None:
            return None, {}
        ended = self._call(STATUS, self._hook.status)
        word = (ended.said.split() or [""])[0].lower()
        if ended.late or ended.code or word not in {RUNNING, *QUIET}:
            said = f"its first word is {word[:40]!r}" if word and not ended.code else _how(ended, self._hook.timeout_s)
            raise HookFailedError(
                f"the state of job {self._context.job} is unknown: its status hook did not report it ({said})",
                hint="its first word must be running, paused or stopped, and its exit code 0",
            )
        return word, _ranks(ended)

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Call the pause hook, unless the job is quiet already."""
        del facts, placement  # the environment of the hook has both
        try:
            was = self.status()
        except HookFailedError as error:  # the status hook only reads, so the job is unchanged
            raise HookRefusedError(error.message, hint=error.hint) from error
        if was in QUIET:
            return {"was": str(was), "is": str(was)}
        ended = self._call(PAUSE, self._hook.pause)
        self._require(ended, PAUSE)
        # The exit code alone is not believed: light must not move under a job that runs.
        now = self.status()
        if now == RUNNING:
            raise HookFailedError(f"the pause hook of job {self._context.job} succeeded, but the job is still running")
        return {"was": was or RUNNING, "is": now or PAUSED, **_said(ended)}

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Call the resume hook, unless the job runs already."""
        del facts, placement
        # Unlike in pause(), a status that fails is no refusal: the job may be paused for a change that is already done.
        was, ranks = self._status()
        if was == RUNNING:
            return {"was": was, "is": was, **ranks}
        ended = self._call(RESUME, self._hook.resume)
        self._require(ended, RESUME)
        return {"was": was or PAUSED, "is": RUNNING, **_said(ended), **_ranks(ended)}

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """The hooks, by act (pause, resume, status)."""
        named = ((PAUSE, settings.pause), (RESUME, settings.resume), (STATUS, settings.status))
        return {act: argv for act, argv in named if argv}

    @classmethod
    def words(cls, settings: Any) -> str:
        """A description for operators: the hooks are programs."""
        del settings
        return "programs of the operator's own"

    def _require(self, ended: Ended, act: str) -> None:
        job = self._context.job
        # By the contract of hooks, an exit code of the hook's own means that the job is unchanged. A hook that was cut
        # may have done half of its work.
        if ended.late or ended.code < 0 or ended.code in BY_SIGNAL:
            by_signal = "" if ended.late else "was ended by a signal: "
            raise HookFailedError(f"the {act} hook of job {job} {by_signal}{_how(ended, self._hook.timeout_s)}")
        if ended.code:
            raise HookRefusedError(f"the {act} hook of job {job} failed: {_how(ended, self._hook.timeout_s)}")

    def _call(self, act: str, argv: Sequence[str]) -> Ended:
        return self._context.run(argv, act=act, timeout_s=self._hook.timeout_s, most_said=MOST_SAID)


def _how(ended: Ended, timeout_s: float) -> str:
    how = f"did not end within {timeout_s:g} s and was killed" if ended.late else f"exit code {ended.code}"
    return how + (f": {plain(ended.last_line)}" if ended.last_line else "")


def _said(ended: Ended) -> dict[str, str]:
    lines = [plain(line) for line in ended.said.splitlines() if line.strip() and _at(line) is None]
    return {"said": "\n".join(lines[-SAID_LINES:])} if lines else {}


def _ranks(ended: Ended) -> dict[str, str]:
    """Where the ranks of the job run, if a hook reports it; the last such line of its output counts."""
    told = [at for line in ended.said.splitlines() if (at := _at(line)) is not None]
    return {"ranks": ",".join(plain(each) for each in told[-1].split(","))} if told and told[-1] else {}


def _at(line: str) -> str | None:
    """The placement in a line of a hook's output; ``None`` if it is not such a line."""
    return line.strip().removeprefix(RUNS_AT) if line.strip().startswith(RUNS_AT) else None
