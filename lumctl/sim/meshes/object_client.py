"""A Python object for a simulated mesh, with the publicly known methods of the vendor's object.

It is installed under the name ``sim`` among the objects of the driver ``smartlight-object``, which uses it if the
address of a mesh is the path of a socket (``unix:/...``): only for a simulator.
"""

import http.client
import socket
from collections.abc import Mapping
from typing import Any, cast
from xmlrpc.client import ServerProxy, Transport

from lumctl.devices.ways import Way

_SCHEME = "unix:"


class SimMeshObject:
    """One mesh of a running simulator. Calls have no time-out, as in a careless vendor's object.

    Raises the exceptions of the libraries that it uses.
    """

    def __init__(self, address: str, way: Way) -> None:
        del way  # the socket is on this machine
        self._path = address.removeprefix(_SCHEME)
        self._server: ServerProxy | None = None

    def connect(self) -> None:
        """Check that the server answers."""
        self._server = ServerProxy("http://simulator/", transport=_UnixTransport(self._path), allow_none=True)
        self.get_temp()

    def disconnect(self) -> None:
        """Forget the server, and close what its transport may still hold."""
        server, self._server = self._server, None
        if server is not None:
            # ServerProxy takes every attribute for a remote method, so its own close() is reached by a call.
            server("close")()

    def reset(self) -> None:
        """Put every PUC into bar."""
        self._ask("reset")

    def get_puc_states(self) -> dict[int, tuple[float, float]]:
        """Coupling (0 bar, 1 cross) and phase (radians) of every PUC."""
        return {int(puc): (coupling, phase) for puc, coupling, phase in self._ask("get_puc_states")}

    def set_puc_states(self, states: Mapping[int, tuple[float, float]]) -> None:
        """Set the coupling and the phase of some PUCs."""
        self._ask("set_puc_states", [[puc, coupling, phase] for puc, (coupling, phase) in states.items()])

    def get_output_power(self, ports: list[int]) -> list[float]:
        """The power that leaves each port, in dBm."""
        return cast("list[float]", self._ask("get_output_power", list(ports)))

    def get_temp(self) -> float:
        """The temperature of the chip in degrees Celsius."""
        return cast("float", self._ask("get_temp"))

    def _ask(self, method: str, *arguments: Any) -> Any:
        if self._server is None:
            raise ConnectionError("not connected")
        try:
            return getattr(self._server, method)(*arguments)
        except Exception:
            self._server("close")()  # otherwise the next call would read the rest of a broken answer
            raise


class _UnixTransport(Transport):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        self.close()
        connection = _UnixConnection(str(host), self._path)
        self._connection = host, connection  # so that closing the transport closes it
        return connection


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, host: str, path: str) -> None:
        super().__init__(host)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            raise
