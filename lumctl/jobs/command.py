"""The kind of job control that is made of programs of the operator's own."""

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
    from lumctl.inventory.job_entries import JobKindEntry
    from lumctl.inventory.model import JobHook

SAID_LINES = 5
RUNS_AT = "LUMCTL_RUNS_AT="
"""The start of the line in which a status or resume hook reports where the ranks of the job run."""
MOST_SAID = 65_536
"""Bytes of its output: such a line names every rank."""
BY_SIGNAL = range(129, 193)
"""Exit codes that mean a signal ended the hook or its program: the hook did not refuse."""


class CommandControl:
    """Programs that pause a job, resume it, and report its state."""

    api_version: ClassVar[int] = 1
    entry: ClassVar["type[JobKindEntry] | None"] = None  # it is a part of the inventory's own model

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._hook: JobHook = context.settings

    def status(self) -> str | None:
        """The first word that the status hook prints; ``None`` if there is no such hook.

        Raises:
            HookFailedError: it did not report a state.
        """
        return self._status()[0]

    def _status(self) -> tuple[str | None, dict[str, str]]:
        """What the job does, and the evidence of where it runs."""
        if self._hook.status is None:
            return None, {}
        ended = self._call(STATUS, self._hook.status)
        word = (ended.said.split() or [""])[0].lower()
        if ended.late or ended.code or word not in {RUNNING, *QUIET}:
            said = f"its first word is {word[:40]!r}" if word and not ended.code else _how(ended, self._hook.timeout_s)
            raise HookFailedError(
                f"what job {self._context.job} does is not known: its status hook did not tell ({said})",
                hint="its first word must be running, paused or stopped, and its exit code 0",
            )
        return word, _ranks(ended)

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Call the pause hook, unless the job is quiet already."""
        del facts, placement  # its environment has both
        try:
            was = self.status()
        except HookFailedError as error:  # it was only asked
            raise HookRefusedError(error.message, hint=error.hint) from error
        if was in QUIET:
            return {"was": str(was), "is": str(was)}
        ended = self._call(PAUSE, self._hook.pause)
        self._require(ended, PAUSE)
        now = self.status()
        if now == RUNNING:
            raise HookFailedError(
                f"the pause hook of job {self._context.job} ended well, and the job is running all the same"
            )
        return {"was": was or RUNNING, "is": now or PAUSED, **_said(ended)}

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Call the resume hook, unless the job runs already."""
        del facts, placement
        was, ranks = self._status()
        if was == RUNNING:
            return {"was": was, "is": was, **ranks}
        ended = self._call(RESUME, self._hook.resume)
        self._require(ended, RESUME)
        return {"was": was or PAUSED, "is": RUNNING, **_said(ended), **_ranks(ended)}

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """The hooks by what they do."""
        named = ((PAUSE, settings.pause), (RESUME, settings.resume), (STATUS, settings.status))
        return {act: argv for act, argv in named if argv}

    @classmethod
    def words(cls, settings: Any) -> str:
        """That they are programs."""
        del settings
        return "programs of the operator's own"

    def _require(self, ended: Ended, act: str) -> None:
        job = self._context.job
        if ended.late or ended.code < 0 or ended.code in BY_SIGNAL:
            by_signal = "" if ended.late else "was ended by a signal: "
            raise HookFailedError(f"the {act} hook of job {job} {by_signal}{_how(ended, self._hook.timeout_s)}")
        if ended.code:
            raise HookRefusedError(f"the {act} hook of job {job} said no: {_how(ended, self._hook.timeout_s)}")

    def _call(self, act: str, argv: Sequence[str]) -> Ended:
        return self._context.run(argv, act=act, timeout_s=self._hook.timeout_s, most_said=MOST_SAID)


def _how(ended: Ended, timeout_s: float) -> str:
    how = f"did not end within {timeout_s:g} s and was ended" if ended.late else f"exit code {ended.code}"
    return how + (f": {plain(ended.last_line)}" if ended.last_line else "")


def _said(ended: Ended) -> dict[str, str]:
    lines = [plain(line) for line in ended.said.splitlines() if line.strip() and _at(line) is None]
    return {"said": "\n".join(lines[-SAID_LINES:])} if lines else {}


def _ranks(ended: Ended) -> dict[str, str]:
    """Where the ranks of the job run, if a hook reports it: the last such line counts."""
    told = [at for line in ended.said.splitlines() if (at := _at(line)) is not None]
    return {"ranks": ",".join(plain(each) for each in told[-1].split(","))} if told and told[-1] else {}


def _at(line: str) -> str | None:
    """The placement in a line of a hook's output; ``None`` if it is not such a line."""
    return line.strip().removeprefix(RUNS_AT) if line.strip().startswith(RUNS_AT) else None
