"""Job control over the Unix socket of a coordinator: the client that the ``workers`` kind of jobs uses, and the server.

Each line of the socket holds a request, ``{"ask": "status" | "pause" | "resume" | "stop"}``, or its answer.
"""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from lumctl.errors import LumctlError, RefusedError, UnreachableError
from lumctl.jobs.control import PAUSED, RUNNING, STOPPED, Facts, JobContext, Placement
from lumctl.sockets import listening
from lumctl.training.job_folder import FINAL_STATES, coordinator_socket
from lumctl.training.protocol import BrokenLineError, Message, MessageLine, Reply, connected

if TYPE_CHECKING:
    from lumctl.inventory.job_entries import JobKindEntry

ANSWER_S = 5.0
"""How long a coordinator may take to report the status of its job."""
LEFT = {"error": "lumctl job run has ended; the job goes on without it"}
"""The answer to requests that are open when a coordinator ends."""


def ask(path: Path, what: str, *, timeout_s: float) -> dict[str, Any] | None:
    """The coordinator's answer to a request; ``None`` if no coordinator runs the job from this machine.

    Raises:
        RefusedError: it refuses.
        UnreachableError: it does not answer in time.
    """
    try:
        line = connected(path, within_s=timeout_s)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        raise UnreachableError(
            f"the job's coordinator at {path} cannot be asked: {error.strerror or error}",
            hint="set $XDG_RUNTIME_DIR to a private folder with a short path, as where the job is run",
        ) from None
    try:
        line.send({"ask": what})
        answer = line.receive()
    except (OSError, BrokenLineError) as error:
        raise UnreachableError(f"the job's coordinator at {path} does not answer ({error})") from None
    finally:
        line.close()
    if answer is None:
        raise UnreachableError(f"the job's coordinator at {path} ended before it answered")
    if "error" in answer:
        raise RefusedError(str(answer["error"]))
    return answer


class WorkersControl:
    """Pauses and resumes a job through the coordinator that runs it."""

    api_version: ClassVar[int] = 1
    entry: ClassVar["type[JobKindEntry] | None"] = None  # a job with `run:` has this kind

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._socket = coordinator_socket(context.inventory, context.target, context.job)

    def status(self) -> str | None:
        """Running, paused (its processes hold), or stopped (no coordinator runs the job from this machine)."""
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
        """The accelerators of the ranks, if all ranks run; a status that cannot be read is ignored."""
        found = None
        with suppress(LumctlError):
            found = ask(self._socket, "status", timeout_s=ANSWER_S)
        if found is None or found["state"] != RUNNING or len(found["ranks"]) != found["of"]:
            return {}
        return {"ranks": ",".join(rank["accelerator"] for rank in found["ranks"])}

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """None: the coordinator is asked over its socket."""
        del settings
        return {}

    @classmethod
    def words(cls, settings: Any) -> str:
        """How the job is controlled."""
        del settings
        return "lumctl job run, which runs it"


_BACKLOG = 16


class ControlSocket:
    """The socket of a coordinator. Calls ``ask`` with each request and the function that sends its answer."""

    def __init__(self, path: Path, ask: Callable[[Message, Reply], None]) -> None:
        self._path = path
        self._ask = ask
        self._unanswered: Counter[MessageLine] = Counter()
        """The number of answers that each connection waits for."""
        self._closed = False
        self._lock = threading.Lock()
        self._listening = listening(path, _BACKLOG, hint="set $XDG_RUNTIME_DIR to a private folder with a short path")
        threading.Thread(target=self._accept, name="lumctl-job-control", daemon=True).start()

    def close(self) -> None:
        """Answer open requests with :data:`LEFT`, and close all connections."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            self._closed = True
            unanswered, self._unanswered = self._unanswered, Counter()
        for line, answers in unanswered.items():
            for _ in range(answers):
                with suppress(OSError):
                    line.send(LEFT)
            line.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            line = MessageLine(connection)
            with self._lock:
                if self._closed:
                    line.close()
                    return
                self._unanswered[line] = 0
            threading.Thread(target=self._serve, args=(line,), name="lumctl-job-ask", daemon=True).start()

    def _serve(self, line: MessageLine) -> None:
        def answer(found: Mapping[str, Any]) -> None:
            with self._lock:
                if self._unanswered[line] == 0:  # answered already: this coordinator ends
                    return
                self._unanswered[line] -= 1
            with suppress(OSError):  # the client disconnected
                line.send(found)

        with suppress(OSError, BrokenLineError):
            while (request := line.receive()) is not None:
                with self._lock:
                    if self._closed:
                        break
                    self._unanswered[line] += 1
                self._ask(request, answer)
        with self._lock:
            self._unanswered.pop(line, None)
        line.close()
