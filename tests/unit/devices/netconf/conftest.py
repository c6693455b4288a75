"""NETCONF servers over a socket pair that say what a test wants them to say."""

import contextlib
import re
import socket
import threading

import pytest

from lumctl.devices.netconf import NetconfClient
from lumctl.devices.protocols import DriverContext

NS = "urn:ietf:params:xml:ns:netconf:base:1.0"
CAPABILITY = "urn:ietf:params:netconf:capability:"
FULL = ("candidate:1.0", "confirmed-commit:1.1", "confirmed-commit:1.0", "validate:1.1", "rollback-on-error:1.0")
OK = "<ok/>"


class Near(socket.socket):
    """An end that wakes whoever waits in it when it is closed, as streams do."""

    def close(self):
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)
        super().close()


class Server:
    """Is its own way. ``answer`` gives what stands in the reply to an operation; bytes are sent as they are.

    After bytes, and after ``None``, it hangs up.
    """

    def __init__(self, answer=lambda _: OK, offers=FULL, *, version="1.1", hello=None):
        self.answer = answer
        self.chunked = version == "1.1"
        uris = [f"urn:ietf:params:netconf:base:{v}" for v in ("1.0", "1.1")[: 2 if self.chunked else 1]]
        said = "".join(f"<capability>\n {uri}</capability>" for uri in (*uris, *(CAPABILITY + each for each in offers)))
        text = f'<hello xmlns="{NS}"><capabilities>{said}</capabilities><session-id>4</session-id></hello>]]>]]>'
        self.hello = text.encode() if hello is None else hello
        self.sessions = 0
        self.operations = []
        self._open, self._threads = [], []

    def subsystem(self, name, default_port, timeout_s):
        assert (name, default_port) == ("netconf", 830)
        assert timeout_s > 0
        near, far = socket.socketpair()
        self.sessions += 1
        self._open.append(far)
        self._threads.append(threading.Thread(target=self._serve, args=(far,)))
        self._threads[-1].start()
        return Near(fileno=near.detach())

    def _serve(self, far):
        with contextlib.suppress(OSError), far:
            far.sendall(self.hello)
            asked, end, rest = _until(far, b"", b"]]>]]>")
            if not end:
                return  # it has hung up before that: its time was over
            assert b"hello" in asked
            while True:
                asked, end, rest = _until(far, rest, b"\n##\n" if self.chunked else b"]]>]]>")
                if not end:
                    return
                message_id, operation = re.search(rb'message-id="(\d+)">(.*)</rpc>', asked, re.DOTALL).groups()
                self.operations.append(operation.decode())
                said = self.answer(operation.decode())
                if said is None:
                    return
                if isinstance(said, bytes):
                    far.sendall(said)
                    return
                far.sendall(self.reply(said, int(message_id)))

    def reply(self, content, message_id=1):
        return self.framed(f'<rpc-reply xmlns="{NS}" message-id="{message_id}">{content}</rpc-reply>')

    def framed(self, text):
        data = text.encode()
        return b"\n#%d\n%b\n##\n" % (len(data), data) if self.chunked else data + b"]]>]]>"

    def hang_up(self):
        for far in self._open:
            with contextlib.suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


def _until(far, rest, end):
    while end not in rest:
        piece = far.recv(65536)
        if not piece:
            return rest, b"", b""
        rest += piece
    return rest.partition(end)


@pytest.fixture
def opened():
    """A client of a server; ``answer``, ``offers`` and the like are the server's."""
    clients, servers = [], []

    def open_one(*, timeout_s=5.0, server=None, clock=None, **about):
        servers.append(server or Server(**about))
        context = DriverContext(device="d1", address="d1.example:830", way=servers[-1], timeout_s=timeout_s)
        clients.append(NetconfClient(context, **({"clock": clock} if clock else {})))
        return clients[-1], servers[-1]

    yield open_one
    for client in clients:
        client.close()
    for server in servers:
        server.hang_up()


@pytest.fixture
def server_class():
    return Server


def _error(tag, *, path="", message="", severity="error", info=""):
    return (
        f"<rpc-error><error-type>application</error-type><error-tag>{tag}</error-tag>"
        f"<error-severity>{severity}</error-severity><error-path>{path}</error-path>"
        f"<error-message>{message}</error-message><error-info>{info}</error-info></rpc-error>"
    )


@pytest.fixture
def rpc_error():
    return _error
