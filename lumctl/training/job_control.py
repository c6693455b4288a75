"""Job control for jobs that ``lumctl job run`` runs: it asks their coordinator over its socket."""

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lumctl.errors import LumctlError, RefusedError, UnreachableError
from lumctl.jobs.control import PAUSED, RUNNING, STOPPED, Facts, JobContext, Placement
from lumctl.training.job_folder import FINAL_STATES, coordinator_socket
from lumctl.training.wire import BrokenLineError, MessageLine

if TYPE_CHECKING:
    from lumctl.inventory.job_entries import JobKindEntry

ANSWER_S = 5.0
"""How long a coordinator may take to say what its job does."""


def ask(path: Path, what: str, *, timeout_s: float) -> dict[str, Any] | None:
    """Ask the coordinator of a job; ``None`` if there is none: nobody runs the job from this machine.

    Raises:
        RefusedError: it refuses.
        UnreachableError: it does not answer in time.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise UnreachableError(
                f"the job's coordinator at {path} cannot be asked: {error.strerror or error}",
                hint="set $XDG_RUNTIME_DIR to a private folder with a short path, as where the job is run",
            ) from None
        line = MessageLine(connection)
        try:
            line.send({"ask": what})
            answer = line.receive()
        except (OSError, BrokenLineError) as error:
            raise UnreachableError(f"the job's coordinator at {path} does not answer ({error})") from None
    finally:
        connection.close()
    if answer is None:
        raise UnreachableError(f"the job's coordinator at {path} ended before it answered")
    if "error" in answer:
        raise RefusedError(str(answer["error"]))
    return answer


class WorkersControl:
    """Pauses and resumes a job by way of the coordinator that runs it."""

    api_version: ClassVar[int] = 1
    entry: ClassVar["type[JobKindEntry] | None"] = None  # a job has it by its `run:`

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._socket = coordinator_socket(context.inventory, context.target, context.job)

    def status(self) -> str | None:
        """Running, paused (its processes hold), or stopped (no coordinator runs it from this machine)."""
        found = ask(self._socket, "status", timeout_s=ANSWER_S)
        if found is None or found["state"] in FINAL_STATES:
            return STOPPED
        return PAUSED if found["state"] in {"paused", "recovering", "waiting"} and found["parked"] else RUNNING

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Have all processes leave their group and hold; the interrupted step is repeated afterwards."""
        del facts, placement
        if ask(self._socket, "pause", timeout_s=self._context.timeout_s) is None:
            return {"was": STOPPED, "is": STOPPED}
        return {"was": RUNNING, "is": PAUSED}

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Have the ranks go on where the store places them now; the coordinator reads the placement itself."""
        del facts, placement
        answer = ask(self._socket, "resume", timeout_s=self._context.timeout_s)
        if answer is None:
            return {"was": STOPPED, "is": STOPPED}
        if answer["state"] != RUNNING:
            return {"was": PAUSED, "is": PAUSED}
        return {"was": PAUSED, "is": RUNNING, **self._ranks()}

    def _ranks(self) -> dict[str, str]:
        """Where its ranks run, if all of them do at this moment; the job goes on whether that is answered or not."""
        found = None
        with suppress(LumctlError):
            found = ask(self._socket, "status", timeout_s=ANSWER_S)
        if found is None or found["state"] != RUNNING or len(found["ranks"]) != found["of"]:
            return {}
        return {"ranks": ",".join(rank["accelerator"] for rank in found["ranks"])}

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """None: what runs the job is asked."""
        del settings
        return {}

    @classmethod
    def words(cls, settings: Any) -> str:
        """How the job is controlled."""
        del settings
        return "lumctl job run, which runs it"
