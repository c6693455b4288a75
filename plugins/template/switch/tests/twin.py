"""A twin of the controller: its API over a real socket, and what it really holds.

A change is done when the joins were read ``patience`` times after it was taken, as a device takes its time.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Twin(ThreadingHTTPServer):
    """Serves one made-up switch on loopback; use it as a context manager."""

    daemon_threads = True

    def __init__(self, ports: int, inputs: int, patience: int = 1) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.ports, self.inputs, self.patience = ports, inputs, patience
        self.joins: dict[int, int] = {}
        self.milliwatts = [0.0] * ports
        self.changes: list[str] = []
        self.refuses = False
        self._pending: dict[str, Any] | None = None
        self._left = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.server_address[1]}"

    def truth(self) -> dict[int, int]:
        """What it holds, with a change that is under way done: by lumctl's numbers, from 0."""
        with self._lock:
            self._finish()
            return {ingress - 1: egress - 1 for ingress, egress in self.joins.items()}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """What it says to a request."""
        with self._lock:
            fixed = {
                "/v1/system": {"model": "X16", "ports": self.ports, "inputs": self.inputs},
                "/v1/powers": {"milliwatts": self.milliwatts},
            }
            if method == "GET" and path in fixed:
                return 200, fixed[path]
            if (method, path) == ("GET", "/v1/joins"):
                self._left -= 1
                if self._left < 0:
                    self._finish()
                joins = [{"in": ingress, "out": egress} for ingress, egress in sorted(self.joins.items())]
                return 200, {"busy": self._pending is not None, "joins": joins}
            if method == "GET" and path.startswith("/v1/changes/"):
                return 200, {"failed": self.changes[int(path.rpartition("/")[2])]}
            if (method, path) == ("POST", "/v1/changes"):
                if self.refuses or self._pending is not None:
                    return 409, {"message": "not now"}
                self._pending, self._left = body, self.patience
                self.changes.append("")
                return 202, {"id": len(self.changes) - 1}
        return 404, {"message": "no such thing"}

    def _finish(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        after = {a: b for a, b in self.joins.items() if {"in": a, "out": b} not in pending["remove"]}
        for join in pending["add"]:
            if join["in"] in after or join["out"] in after.values():
                self.changes[-1] = f"port {join['in']} or {join['out']} is in use"
                return
            after[join["in"]] = join["out"]
        self.joins = after

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        super().__exit__(*error)


class _Request(BaseHTTPRequestHandler):
    server: Twin
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        text = self.rfile.read(length)
        if len(text) < length:
            self.close_connection = True  # the request was cut off: nothing is done
            return
        status, said = self.server.answer(self.command, self.path, json.loads(text or b"null"))
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a test's output is not for requests."""
