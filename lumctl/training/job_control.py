"""Job control over the Unix socket of a coordinator: the server, and the client for jobs of the kind ``workers``.

Each line holds a request, ``{"ask": "status" | "collectives" | "profiles" | "schedule" | "pause" | "resume" |
"stop"}``, or an answer. A request for a schedule has the late ``rank``, or ``null`` to use none.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar

from lumctl.context.job_files import coordinator_socket
from lumctl.errors import LumctlError, RefusedError, UnreachableError
from lumctl.jobs.control import PAUSED, RUNNING, STOPPED, Facts, JobContext, Placement
from lumctl.json_lines import JsonLines, connect
from lumctl.sockets import LineServer, Peer
from lumctl.training.job_folder import FINAL_STATES
from lumctl.training.protocol import Message, Reply

if TYPE_CHECKING:
    from lumctl.inventory.entry import JobKindEntry

ANSWER_S = 5.0
"""How long a coordinator may take to report the status of its job."""
POLL_S = 1.0
"""How soon the server notices that a waiting client has disconnected."""
MAX_REQUESTS = 64
LEFT = {"error": "lumctl job run has ended; the job continues without it"}
"""The answer to requests that are open when a coordinator ends."""


def ask(path: Path, what: str, *, timeout_s: float, **more: Any) -> dict[str, Any] | None:
    """The coordinator's answer to a request; ``None`` if no coordinator runs the job from this machine.

    ``more`` are fields of the request.

    Raises:
        RefusedError: the coordinator refuses.
        UnreachableError: the coordinator does not answer in time.
    """
    try:
        connection = connect(path, timeout_s)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        raise UnreachableError(
            f"the job's coordinator at {path} cannot be reached: {error.strerror or error}",
            hint="set $XDG_RUNTIME_DIR to a private folder with a short path, the same as for lumctl job run",
        ) from None
    try:
        with JsonLines(connection) as lines:
            lines.send({"ask": what, **more}, timeout_s)
            answer = lines.receive(timeout_s)
    except (OSError, ValueError) as error:
        raise UnreachableError(f"the job's coordinator at {path} does not answer ({error})") from None
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
        """The state: running, paused (its processes hold), or stopped (no coordinator runs it on this machine)."""
        found = ask(self._socket, "status", timeout_s=ANSWER_S)
        if found is None or found["state"] in FINAL_STATES:
            return STOPPED
        return PAUSED if found["state"] in {"paused", "recovering", "waiting"} and found["parked"] else RUNNING

    def pause(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Make all ranks leave their process group and wait; the interrupted step is repeated afterwards."""
        del facts, placement
        if ask(self._socket, "pause", timeout_s=self._context.timeout_s) is None:
            return {"was": STOPPED, "is": STOPPED}
        return {"was": RUNNING, "is": PAUSED}

    def resume(self, facts: Facts, placement: Placement) -> dict[str, str]:
        """Let the ranks continue at their present placement in the store."""
        del facts, placement
        answer = ask(self._socket, "resume", timeout_s=self._context.timeout_s)
        if answer is None:
            return {"was": STOPPED, "is": STOPPED}
        if answer["state"] != RUNNING:
            return {"was": PAUSED, "is": PAUSED}
        return {"was": PAUSED, "is": RUNNING, **self._ranks()}

    def _ranks(self) -> dict[str, str]:
        """The accelerators of the ranks, if all ranks run. A status that cannot be read is ignored."""
        found = None
        with suppress(LumctlError):
            found = ask(self._socket, "status", timeout_s=ANSWER_S)
        if found is None or found["state"] != RUNNING or len(found["ranks"]) != found["of"]:
            return {}
        return {"ranks": ",".join(rank["accelerator"] for rank in found["ranks"])}

    @classmethod
    def programs(cls, settings: Any) -> Mapping[str, Sequence[str]]:
        """No programs: requests go to the coordinator over its socket."""
        del settings
        return {}

    @classmethod
    def words(cls, settings: Any) -> str:
        """How the job is controlled."""
        del settings
        return "lumctl job run, which runs it"


class ControlSocket:
    """The control socket of a coordinator. Calls ``ask`` with each request and a function that sends the answer."""

    def __init__(self, path: Path, ask: Callable[[Message, Reply], None]) -> None:
        self._ask = ask
        self._waiting: set[SimpleQueue[Mapping[str, Any]]] = set()
        """One queue for each open request; the answer is put into it."""
        self._closed = False
        self._lock = threading.Lock()
        hint = "set $XDG_RUNTIME_DIR to a private folder with a short path"
        self._server = LineServer(
            path, self._answer, name="lumctl-job-control", hint=hint, max_connections=MAX_REQUESTS, drain_s=ANSWER_S
        )

    def close(self) -> None:
        """Answer open requests with :data:`LEFT`, and close all connections."""
        with self._lock:
            self._closed = True
            for answer in self._waiting:
                answer.put(LEFT)
        self._server.close()

    def _answer(self, request: Message, peer: Peer) -> tuple[Mapping[str, Any], bytes]:
        answer: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        with self._lock:
            if self._closed:
                return LEFT, b""
            self._waiting.add(answer)
        self._ask(request, answer.put)
        try:
            while True:
                with suppress(Empty):
                    return answer.get(timeout=POLL_S), b""
                if not peer.waits():  # a pause may take long: a disconnected client must not occupy a connection
                    return LEFT, b""
        finally:
            with self._lock:
                self._waiting.discard(answer)
