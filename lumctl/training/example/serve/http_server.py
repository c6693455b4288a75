"""The HTTP side: ``POST /generate``, ``GET /health``."""

import json
import math
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from lumctl.errors import UnreachableError
from lumctl.training.example.serve.request_queue import BusyError, RequestQueue
from lumctl.training.torch.addresses import family_of

MOST_BYTES = 64 * 1024
MOST_TOKENS = 1024
SLOW_CLIENT_S = 10


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """What is asked cannot be done."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class HttpServer:
    """Serves a queue from threads of its own, until closed.

    Args:
        address: the interface to listen on.
        port: 0 takes any that is free.
        queue: where requests go.
        patience_s: after which those who are refused should ask again.

    Raises:
        UnreachableError: the address cannot be listened on.
    """

    def __init__(self, address: str, port: int, queue: RequestQueue, *, patience_s: float) -> None:
        handler = type("Handler", (_Handler,), {"queue": queue, "retry_s": math.ceil(patience_s)})
        try:
            self._server = _server_class(address)((address, port), handler)
        except OSError as error:
            raise UnreachableError(
                f"{address}:{port} cannot be listened on: {error.strerror}", hint="choose another --port"
            ) from error
        self._queue = queue
        host = f"[{address}]" if ":" in address else address
        self.url = f"http://{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuse those who wait and listen no more."""
        self._queue.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _server_class(address: str) -> type[ThreadingHTTPServer]:
    return type("Server", (ThreadingHTTPServer,), {"address_family": family_of(address), "daemon_threads": True})


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    queue: ClassVar[RequestQueue]
    retry_s: ClassVar[int]
    timeout = SLOW_CLIENT_S

    def do_GET(self) -> None:
        """Whether turns are being done."""
        if self.path != "/health":
            self._answer(HTTPStatus.NOT_FOUND, {"error": "there is POST /generate and GET /health"})
            return
        status = HTTPStatus.OK if self.queue.well else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, {"turns": self.queue.turns, "silent_s": round(self.queue.silent_s, 3)})

    def do_POST(self) -> None:
        """Go on with a text."""
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
            raise Refusal(HTTPStatus.LENGTH_REQUIRED, "say how long the request is (Content-Length)")
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {MOST_BYTES} bytes")
        try:
            asked = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the request is no JSON") from error
        prompt, wanted = (asked.get("prompt"), asked.get("tokens", 16)) if isinstance(asked, dict) else (None, 0)
        if not isinstance(prompt, str) or not prompt:
            raise Refusal(HTTPStatus.BAD_REQUEST, '"prompt" is a text of at least one character')
        if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= MOST_TOKENS:
            raise Refusal(HTTPStatus.BAD_REQUEST, f'"tokens" is a number from 1 to {MOST_TOKENS}')
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
        """Say nothing: who asked for what is nobody's business here."""
