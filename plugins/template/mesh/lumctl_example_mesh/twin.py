"""A twin of the controller: it speaks the protocol over a real socket, and reports its real states.

The tests use :class:`Twin`; ``lumctl sim up`` and ``lumctl plugin check`` use :func:`twin`, which serves one of their
devices.
"""

import contextlib
import socketserver
import threading
from collections.abc import Iterator

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.twins import SimulatedMesh
from lumctl.devices.types import PucState


@contextlib.contextmanager
def twin(device: SimulatedMesh, listen: str) -> Iterator[int]:
    """Serve a mesh of the simulated world; gives the port."""
    with SimulatedTwin(device, listen) as serving:
        yield int(serving.server_address[1])


class Twin(socketserver.ThreadingTCPServer):
    """Serves one made-up mesh on loopback; use it as a context manager."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, puc_count: int, listen: str = "127.0.0.1") -> None:
        super().__init__((listen, 0), _Line)
        self.states = ["="] * puc_count
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self) -> str:
        """The address at which it answers."""
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, line: str) -> str:
        """The answer to a line."""
        states = self.held()
        if line == "size":
            return f"size {len(states)}"
        if line == "states":
            return f"states {''.join(states)}"
        wanted = [word.split("=", 1) for word in line.removeprefix("set ").split()]
        if not all(puc.isdecimal() and int(puc) < len(states) and mark in {"=", "x"} for puc, mark in wanted):
            return "no such thing"
        complaint = self.change({int(puc): mark for puc, mark in wanted})
        return f"no {complaint}" if complaint else "ok"

    def held(self) -> list[str]:
        """The mark of every PUC."""
        return self.states

    def change(self, wanted: dict[int, str]) -> str:
        """Make a change; why it was refused, or nothing."""
        for puc, mark in wanted.items():
            self.states[puc] = mark
        return ""

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class SimulatedTwin(Twin):
    """The same controller, whose PUCs are those of a mesh of the simulated world."""

    def __init__(self, device: SimulatedMesh, listen: str) -> None:
        self.device = device
        super().__init__(device.puc_count, listen)

    def held(self) -> list[str]:
        """As the simulated mesh has them."""
        return [str(state) for _, state in sorted(self.device.read_states().items())]

    def change(self, wanted: dict[int, str]) -> str:
        """Make the change on the simulated mesh, which refuses it if a fault requires that."""
        try:
            self.device.write({puc: PucState(mark) for puc, mark in wanted.items()})
        except DeviceRefusedError as error:
            return error.message
        return ""


class _Line(socketserver.StreamRequestHandler):
    server: Twin

    def handle(self) -> None:
        line = self.rfile.readline(65536)
        if line.endswith(b"\n"):
            with contextlib.suppress(DeviceUnreachableError):  # a fault has the simulated device down: no answer
                self.wfile.write(f"{self.server.answer(line.decode().strip())}\n".encode())
