"""A NETCONF server: the ``netconf`` subsystem of an SSH server on loopback."""

import hmac
import itertools
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from xml.etree.ElementTree import Element

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL

from lumctl.sim.netconf.datastore import CANDIDATE, Datastore
from lumctl.sim.netconf.operations import Operations
from lumctl.sim.netconf.session import ServerSession
from lumctl.sim.netconf.tree import NetconfDevice
from lumctl.sim.service import SimulatedService
from lumctl.sim.ssh import SshLogin, ssh_transport, start_server
from lumctl.sim.world.misbehaviour import Misbehaviour

_MOST_CONNECTIONS = 16
_ENDS_WITHIN_S = 5.0


class NetconfServer:
    """Serves one device.

    ``client_key`` logs in with any user name, and ``password`` too if there is one. ``candidate`` is false for a
    device that only accepts changes of its running configuration. ``operations`` are those of the device's own model,
    by full name.
    """

    def __init__(
        self,
        name: str,
        device: NetconfDevice,
        *,
        key: paramiko.PKey,
        client_key: paramiko.PKey,
        password: str | None = None,
        candidate: bool = True,
        conduct: Callable[[], Misbehaviour] = Misbehaviour,
        operations: Mapping[str, Callable[[Element], None]] | None = None,
    ) -> None:
        self.name = name
        self.key = key
        self.client_key = client_key
        self.password = password
        self._own_operations = operations
        self._conduct = conduct
        self.datastore = Datastore(device, candidate=candidate, conduct=conduct)
        self.service = SimulatedService(f"netconf {name}", self._serve, most=_MOST_CONNECTIONS)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._sessions: dict[int, ServerSession] = {}
        self._threads: list[threading.Thread] = []
        self._ended = threading.Event()

    def open_session(self, channel: paramiko.Channel) -> None:
        """Serve a channel in a thread of its own."""
        number = next(self._numbers)
        session = ServerSession(
            number,
            channel,
            Operations(self.datastore, number, self._kill, self._own_operations),
            candidate=CANDIDATE in self.datastore.targets,
            conduct=self._conduct,
            spoil=self.spoil,
            ended=self._ended,
        )
        thread = threading.Thread(target=self._run, args=(session,), name=f"netconf {self.name}", daemon=True)
        with self._lock:
            self._sessions[number] = session
            self._threads = [*(each for each in self._threads if each.is_alive()), thread]
            # Under the lock, because close() joins every thread of the list and cannot join one that was never started.
            thread.start()

    def spoil(self, operation: str, answer: bytes) -> bytes:  # noqa: ARG002 - for a test that overrides this
        """The bytes to send for an operation's answer; if they differ from it, the session is cut afterwards."""
        return answer

    def sessions(self) -> int:
        """The number of open sessions."""
        with self._lock:
            return len(self._sessions)

    def close(self) -> None:
        """Close the port, end every session, and wait until they have ended."""
        self._ended.set()
        self.service.close()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(_ENDS_WITHIN_S)
        self.datastore.close()

    def _run(self, session: ServerSession) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                del self._sessions[session.number]
            self.datastore.left(session.number)

    def _kill(self, number: int) -> bool:
        with self._lock:
            session = self._sessions.get(number)
        if session is None:
            return False
        # First, so that the locks are free when the answer arrives.
        self.datastore.left(number)
        session.hang_up()
        return True

    def _serve(self, connection: socket.socket) -> None:
        login = _Login(self)
        closed = partial(self.service.done_with, connection)
        transport = ssh_transport(connection, login, key=self.key, name=f"netconf ssh {self.name}", closed=closed)
        with self._lock:
            self._threads.append(transport)
        start_server(transport, login)


class _Login(SshLogin):
    """What one connection may do: log in, and open the subsystem."""

    def __init__(self, server: NetconfServer) -> None:
        super().__init__(server.client_key)
        self._server = server
        self._waiting: list[paramiko.Channel] = []

    def dispatch(self) -> None:
        """Begin the requested sessions; their requests have been granted by now, as clients expect."""
        waiting, self._waiting = self._waiting, []
        for channel in waiting:
            self._take_channel()
            self._server.open_session(channel)

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002 - the signature is paramiko's
        return "publickey" if self._server.password is None else "publickey,password"

    def check_auth_password(self, username: str, password: str) -> int:  # noqa: ARG002
        expected = self._server.password
        right = expected is not None and hmac.compare_digest(password.encode(), expected.encode())
        return AUTH_SUCCESSFUL if right else AUTH_FAILED

    def check_channel_subsystem_request(self, channel: paramiko.Channel, name: str) -> bool:
        self._open_channels()
        if name != "netconf":
            return False
        self._hold(channel)
        self._waiting.append(channel)
        return True
