"""The control: a command line program holds a job, releases it, and reports its state.

The program, made up: ``exq show ID`` prints ``running`` or ``held``; ``exq hold ID`` checkpoints the job and ends its
processes; ``exq release ID h1,h2`` starts it on these hosts; ``exq where ID`` prints the hosts of
a running job. Exit code 1 is a refusal, with a reason; the job is as it
was. After any other code the state of the job is unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from lumctl.errors import RefusedError, UnreachableError
from lumctl.inventory.entry import JobKindEntry, Text
from lumctl.inventory.job_entries import Command
from lumctl.jobs.control import PAUSED, RUNNING, Facts, JobContext, Placement
from lumctl.programs import plain

STATES = {"running": RUNNING, "held": PAUSED}
REFUSED = 1


class ExampleHookEntry(JobKindEntry):
    """The settings under ``hook:`` of a job in an inventory."""

    kind: Literal["example"] = Field(description="The job is run by the scheduler of Example & Co.")
    id: Text = Field(description="The job's number in that scheduler.")
    program: Command = Field(["exq"], description="The scheduler's program, and arguments that always come first.")


class ExampleJob:
    """Holds a job while its light paths change, and releases it at its new placement."""

    api_version: ClassVar[int] = 1
    entry: ClassVar[type[JobKindEntry] | None] = ExampleHookEntry

    def __init__(self, context: JobContext) -> None:
        """Store the context; no program runs before the first call."""
        self._context = context
        self._settings: ExampleHookEntry = context.settings

    def status(self) -> str:
        """The state of the job."""
        said = self._ask("show", "status")
        if said not in STATES:
            raise UnreachableError(f"job {self._context.job}: exq show printed {said[:40]!r}, which is not a state")
        return STATES[said]

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Hold the job, and check that it is held."""
        del facts, placement  # the scheduler knows where the job runs
        was = self.status()
        if was == RUNNING:
            self._ask("hold", "pause")
        now = self._status_after("hold")
        if now == RUNNING:
            raise UnreachableError(f"job {self._context.job} was held, but is still running")
        return {"was": was, "is": now}

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Release the job on the hosts of its placement, and see that it runs."""
        del facts
        was = self.status()
        hosts = ",".join(dict.fromkeys(rank.host for rank in placement))
        if was != RUNNING:
            self._ask("release", "resume", hosts)
        elif (there := self._ask("where", "resume")) != hosts:  # somebody started it, with its old hosts
            raise RefusedError(
                f"job {self._context.job} already runs on {there}, but is placed on {hosts}",
                hint=f"exq hold {self._settings.id}, then resume it",
            )
        now = self._status_after("release")
        if now != RUNNING:
            raise UnreachableError(f"job {self._context.job} was released, but is not running")
        return {"was": was, "is": now, "said": f"on {hosts}"}

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """The scheduler's program."""
        return {"exq": settings.program}

    @classmethod
    def words(cls, settings: Any) -> str:
        """Which job it is there."""
        return f"exq job {settings.id}"

    def _status_after(self, verb: str) -> str:
        """The present state of the job: a refusal to report it does not mean that the job is as it was."""
        try:
            return self.status()
        except RefusedError as error:
            raise UnreachableError(f"{error.message}; exq {verb} was run before") from error

    def _ask(self, verb: str, act: str, *more: str) -> str:
        """Run the program; its last line."""
        argv = [*self._settings.program, verb, self._settings.id, *more]
        ended = self._context.run(argv, act=act, timeout_s=self._context.timeout_s)
        said = plain(ended.last_line)
        if ended.late or ended.code not in {0, REFUSED}:
            how = "did not end in time" if ended.late else f"ended with exit code {ended.code}"
            raise UnreachableError(f"job {self._context.job}: exq {verb} {how}: {said}")
        if ended.code == REFUSED:
            raise RefusedError(f"job {self._context.job}: exq refused to {verb}: {said}")
        return said
