"""A twin of the controller: its API over a real socket, and what it really holds.

A change is done when the joins were read ``patience`` times after it was taken, as a device takes its time. The tests
use :class:`Twin`; ``lumctl sim up`` and ``lumctl plugin check`` use :func:`twin`, which serves one of their devices.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.twins import SimulatedSwitch


@contextlib.contextmanager
def twin(device: SimulatedSwitch, listen: str) -> Iterator[str]:
    """Serve a switch of the simulated world; ``http://`` means that there is no TLS."""
    with SimulatedTwin(device, listen) as serving:
        yield f"http://{serving.address}"


class Twin(ThreadingHTTPServer):
    """Serves one made-up switch on loopback; use it as a context manager."""

    daemon_threads = True

    def __init__(self, ports: int, inputs: int, patience: int = 1, listen: str = "127.0.0.1") -> None:
        super().__init__((listen, 0), _Request)
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
        """The address at which it answers."""
        return f"127.0.0.1:{self.server_address[1]}"

    def truth(self) -> dict[int, int]:
        """Its joins, including a change in progress: by lumctl's numbers, from 0."""
        with self._lock:
            self._finish()
            return {ingress - 1: egress - 1 for ingress, egress in self.held().items()}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The answer to a request."""
        with self._lock:
            fixed: dict[str, Callable[[], Any]] = {
                "/v1/system": lambda: {"model": "X16", "ports": self.ports, "inputs": self.inputs},
                "/v1/powers": lambda: {"milliwatts": self.powers()},
            }
            if method == "GET" and path in fixed:
                return 200, fixed[path]()
            if (method, path) == ("GET", "/v1/joins"):
                self._left -= 1
                if self._left < 0:
                    self._finish()
                joins = [{"in": ingress, "out": egress} for ingress, egress in sorted(self.held().items())]
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

    def held(self) -> dict[int, int]:
        """Every join, by the controller's numbers, from 1."""
        return self.joins

    def powers(self) -> list[float]:
        """The power at each monitor, in milliwatts."""
        return self.milliwatts

    def change(self, removed: dict[int, int], added: dict[int, int]) -> str:
        """Do a change; why it was not done."""
        after = {a: b for a, b in self.joins.items() if removed.get(a) != b}
        for ingress, egress in added.items():
            if ingress in after or egress in after.values():
                return f"port {ingress} or {egress} is in use"
            after[ingress] = egress
        self.joins = after
        return ""

    def _finish(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            removed, added = ({join["in"]: join["out"] for join in pending[verb]} for verb in ("remove", "add"))
            self.changes[-1] = self.change(removed, added)

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class SimulatedTwin(Twin):
    """The same controller, whose light is a switch of the simulated world."""

    def __init__(self, device: SimulatedSwitch, listen: str) -> None:
        self.device = device
        super().__init__(device.port_count, device.input_count, listen=listen)

    def held(self) -> dict[int, int]:
        """As the simulated switch has them, which numbers ports from 0."""
        return {ingress + 1: egress + 1 for ingress, egress in self.device.read_circuits().items()}

    def powers(self) -> list[float]:
        """The simulated powers, which are in dBm; no light is minus infinity."""
        powers = self.device.read_powers(tuple(range(self.ports)))
        return [10 ** (powers[port] / 10) for port in range(self.ports)]

    def change(self, removed: dict[int, int], added: dict[int, int]) -> str:
        """Do it on the simulated switch; a fault may have that say no."""
        cleared = {ingress - 1: None for ingress in removed}
        try:
            self.device.write(cleared | {ingress - 1: egress - 1 for ingress, egress in added.items()})
        except DeviceRefusedError as error:
            return error.message
        return ""


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
        try:
            status, said = self.server.answer(self.command, self.path, json.loads(text or b"null"))
        except DeviceUnreachableError:  # a fault has the simulated device down: no answer
            self.close_connection = True
            return
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a test's output is not for requests."""
