"""A twin of the power strip: its API over a real socket, and which outlets are really on."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Twin(ThreadingHTTPServer):
    """Serves a strip of two outlets on loopback; use it as a context manager."""

    daemon_threads = True

    def __init__(self, user: str, secret: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.login = "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()
        self.on = {"1": True, "2": True}
        self.orders = 0
        self.sticks = False
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, method: str, path: str, body: dict[str, bool] | None) -> tuple[int, object]:
        """What it says to a request."""
        _, _, rest = path.partition("/outlets/")
        outlet, _, act = rest.partition("/")
        if outlet not in self.on:
            return 404, {"message": "no such outlet"}
        if method == "GET":
            return 200, {"on": self.on[outlet], "watts": 412.5 if self.on[outlet] else 0.0}
        self.orders += 1
        if not self.sticks:
            self.on[outlet] = True if act else bool(body and body["on"])
        return 200, {}

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
        status, said = 401, {"message": "who are you?"}
        if self.headers.get("Authorization") == self.server.login:
            status, said = self.server.answer(self.command, self.path, json.loads(text or b"null"))
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a test's output is not for requests."""
