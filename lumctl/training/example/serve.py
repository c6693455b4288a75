"""``python -m lumctl.training.example.serve``: a model served over HTTP by the ranks of a job.

Rank 0 takes requests (``POST /generate``, ``GET /health``); all ranks compute one token of each sequence a turn.
"""

import argparse
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor

import lumctl.training.torch as recovery
from lumctl.errors import UnreachableError
from lumctl.training.example.__main__ import exit_code_of
from lumctl.training.example.model import SIZES, Llama
from lumctl.training.example.served_models import SERVED, Served, served
from lumctl.training.torch.stores import family_of

MOST_WAITING = 64
MOST_TOGETHER = 8
"""The maximum number of sequences in one turn; further ones wait."""


class BusyError(Exception):
    """A request cannot be served now: too many requests wait, or the replacement of ranks takes too long."""


@dataclass(eq=False)
class Request:
    """One sequence that is being generated."""

    tokens: list[int]
    wanted: int
    """The number of tokens still to generate."""
    made: list[int] = field(default_factory=list)


class RequestQueue:
    """Requests that wait for the ranks. A request is answered completely or refused; if a turn fails, no token is lost.

    Args:
        patience_s: how long requests wait for ranks that finish no turn.
        now: the time in seconds.
    """

    def __init__(self, *, patience_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._now = now
        self._changed = threading.Condition()
        self._waiting: list[Request] = []
        self._turn_at = now()
        self._closed = False
        self.turns = 0

    def ask(self, tokens: list[int], wanted: int) -> list[int]:
        """Wait for the generated tokens of a request, and return them.

        Raises:
            BusyError: it cannot be served now.
        """
        request = Request(tokens, wanted)
        with self._changed:
            if self._closed or len(self._waiting) >= MOST_WAITING:
                raise BusyError(
                    "too many requests are waiting" if not self._closed else "this rank no longer serves requests"
                )
            self._waiting.append(request)
            self._changed.notify_all()
            asked_at = self._now()
            while request.wanted:
                left = self._patience_s - (self._now() - max(asked_at, self._turn_at))
                if self._closed or left <= 0:
                    self._waiting.remove(request)
                    raise BusyError("the ranks that compute are being replaced")
                self._changed.wait(left)
        return request.made

    def batch(self, *, wait_s: float) -> list[Request]:
        """The requests of this turn; if there are none, wait up to ``wait_s`` for the first."""
        with self._changed:
            if not self._waiting:
                self._changed.wait(wait_s)
            return self._waiting[:MOST_TOGETHER]

    def finish(self, batch: list[Request], made: list[int]) -> None:
        """End a turn: each sequence of the batch gets one token."""
        with self._changed:
            self._turn_at = self._now()
            self.turns += 1
            for request, token in zip(batch, made, strict=True):
                request.made.append(token)
                request.wanted -= 1
            # A request that gave up meanwhile is in the batch, but no longer in the queue.
            self._waiting = [request for request in self._waiting if request.wanted]
            self._changed.notify_all()

    @property
    def silent_s(self) -> float:
        """Seconds since the last turn."""
        return self._now() - self._turn_at

    @property
    def well(self) -> bool:
        """Whether turns are being done."""
        return self.silent_s <= self._patience_s

    def close(self) -> None:
        """Refuse all waiting and all further requests."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


MOST_BYTES = 64 * 1024
MOST_TOKENS = 1024
SLOW_CLIENT_S = 10


class Refusal(Exception):  # noqa: N818 - an answer, not an error
    """A request that cannot be served, with its HTTP status."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class HttpServer:
    """Serves a queue from threads of its own, until closed.

    Args:
        address: the interface to listen on.
        port: 0 selects any free port.
        queue: takes the requests.
        patience_s: the time after which a refused client should ask again.

    Raises:
        UnreachableError: the address cannot be listened on.
    """

    def __init__(self, address: str, port: int, queue: RequestQueue, *, patience_s: float) -> None:
        handler = type("Handler", (_Handler,), {"queue": queue, "retry_s": math.ceil(patience_s)})
        try:
            self._server = _Server((address, port), handler)
        except OSError as error:
            raise UnreachableError(
                f"cannot listen on {address}:{port}: {error.strerror}", hint="choose another --port"
            ) from error
        self._queue = queue
        host = f"[{address}]" if ":" in address else address
        self.url = f"http://{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuse waiting requests, and stop listening."""
        self._queue.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listen: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = family_of(listen[0])
        super().__init__(listen, handler)

    def server_bind(self) -> None:
        """Bind without a reverse look-up of the address, which may hang."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = "lumctl", int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    queue: ClassVar[RequestQueue]
    retry_s: ClassVar[int]
    timeout = SLOW_CLIENT_S

    def do_GET(self) -> None:
        """Answer whether turns are being done."""
        if self.path != "/health":
            self._answer(HTTPStatus.NOT_FOUND, {"error": "there is POST /generate and GET /health"})
            return
        status = HTTPStatus.OK if self.queue.well else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, {"turns": self.queue.turns, "silent_s": round(self.queue.silent_s, 3)})

    def do_POST(self) -> None:
        """Continue a text."""
        try:
            prompt, wanted = self._asked()
            made = self.queue.ask(list(prompt), wanted)
        except Refusal as refusal:
            self._answer(refusal.status, {"error": refusal.reason})
        except BusyError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
        else:
            self._answer(HTTPStatus.OK, {"text": bytes(made).decode(errors="replace"), "tokens": made})

    def _asked(self) -> tuple[bytes, int]:
        if self.path != "/generate":
            raise Refusal(HTTPStatus.NOT_FOUND, "there is POST /generate and GET /health")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "the request must state its length (Content-Length)")
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have at most {MOST_BYTES} bytes")
        try:
            asked = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the request is not JSON") from error
        prompt, wanted = (asked.get("prompt"), asked.get("tokens", 16)) if isinstance(asked, dict) else (None, 0)
        if not isinstance(prompt, str) or not prompt:
            raise Refusal(HTTPStatus.BAD_REQUEST, '"prompt" must be a text of at least one character')
        if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= MOST_TOKENS:
            raise Refusal(HTTPStatus.BAD_REQUEST, f'"tokens" must be a number from 1 to {MOST_TOKENS}')
        return prompt.encode(errors="replace"), wanted

    def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", str(self.retry_s))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by http.server
        """Log nothing: requests are private."""


IDLE_S = 0.05
"""How long rank 0 waits for a request in each turn; short, because a `hold` of the coordinator waits for it."""


def lead(served: Served, queue: RequestQueue, world: int) -> None:
    """Do rank 0's part of a turn.

    Raises:
        RuntimeError: the process group broke; no request was removed from the queue.
    """
    batch = queue.batch(wait_s=IDLE_S)
    tokens = _padded(batch, served.size.context)
    _share(torch.tensor(tokens.shape), world)
    if not batch:
        queue.finish([], [])
        return
    _share(tokens, world)
    logits = served.logits(tokens)
    if logits is None:
        raise AssertionError("the logits are not on rank 0")
    last = torch.tensor([min(len(request.tokens) + len(request.made), tokens.shape[1]) - 1 for request in batch])
    # Always the likeliest token, so that a repeated turn gives the same one.
    queue.finish(batch, [int(token) for token in logits[torch.arange(len(batch)), last].argmax(-1)])


def follow(served: Served, world: int) -> None:
    """Do the part of any other rank.

    Raises:
        RuntimeError: the process group broke.
    """
    shape = torch.zeros(2, dtype=torch.long)
    _share(shape, world)
    sequences, length = (int(number) for number in shape)
    if sequences:
        tokens = torch.zeros(sequences, length, dtype=torch.long)
        _share(tokens, world)
        served.logits(tokens)


def _padded(batch: list[Request], context: int) -> Tensor:
    """The last tokens of each request, padded on the right, where causal attention ignores them."""
    rows = [[*request.tokens, *request.made][-context:] for request in batch]
    length = max(map(len, rows), default=0)
    return torch.tensor([row + [0] * (length - len(row)) for row in rows], dtype=torch.long).reshape(len(rows), length)


def _share(tensor: Tensor, world: int) -> None:
    if world > 1:
        dist.broadcast(tensor, 0)


@dataclass(frozen=True)
class ServeOptions:
    """Command-line options of the server."""

    parallel: str
    size: str
    seed: int
    port: int
    patience: float
    announce: Path | None


def serve(options: ServeOptions) -> None:
    """Do this rank's part of each turn until the job is stopped.

    The weights come from the seed and never change. So no state is transferred: a spare makes its own weights.

    Raises:
        UnreachableError: rank 0 cannot listen.
        UsageError: there are too many ranks.
    """
    torch.set_num_threads(1)
    size = SIZES[options.size]
    ours = served(options.parallel, size, seed=options.seed)
    with torch.no_grad():  # PyTorch's slow first step must not delay a recovery
        Llama(size, seed=0)(torch.zeros(1, size.context, dtype=torch.long))
    front: tuple[HttpServer, RequestQueue] | None = None
    try:
        with recovery.attach(layout=ours.layout, shape=ours.shape, seed=options.seed) as job:
            for step in job.steps(None):
                if job.rank == 0:
                    front = front or _open(options)
                elif front is not None:
                    front[0].close()
                    front = None
                with step:
                    if front is not None:
                        lead(ours, front[1], job.world)
                    else:
                        follow(ours, job.world)
    finally:
        if front is not None:
            front[0].close()


def _open(options: ServeOptions) -> tuple[HttpServer, RequestQueue]:
    address = os.environ.get("LUMCTL_JOB_ADDRESS", "127.0.0.1")
    queue = RequestQueue(patience_s=options.patience)
    front = HttpServer(address, options.port, queue, patience_s=options.patience)
    if options.announce is not None:
        new = options.announce.with_name(f".{options.announce.name}.{os.getpid()}")
        new.write_text(front.url + "\n")
        new.replace(options.announce)
    print(f"serving on {front.url}", flush=True)  # noqa: T201 - the script's own output
    return front, queue


def main() -> int:
    """Serve until the job ends; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lumctl.training.example.serve", description="Serve a small Llama.")
    parser.add_argument("--parallel", choices=SERVED, default="pipeline", help="how ranks hold the weights")
    parser.add_argument("--size", choices=tuple(SIZES), default="tiny")
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--port", type=int, default=8080, help="address that rank 0 listens on; port 0: any free port")
    parser.add_argument(
        "--patience", type=float, default=5.0, help="how long a request waits for a recovery, in seconds"
    )
    parser.add_argument("--announce", type=Path, metavar="FILE", help="write the address to this file")
    try:
        return exit_code_of(lambda: serve(ServeOptions(**vars(parser.parse_args()))))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
