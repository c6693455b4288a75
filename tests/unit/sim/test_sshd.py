"""The SSH server of a simulated host, inside the test's own process."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import paramiko
import pytest

from lumctl.sim import ssh
from lumctl.sim.hosts.host import SimHost
from lumctl.sim.hosts.sshd import HostServer

PROGRAM = b'0) files /no/such/file ;;\n1) run nvidia-smi -q -x ;;\n1) echo "$n $id" >&3 ;;\nmain; exit\n'


@pytest.fixture
def server(bench):
    """Host ``a``, which serves."""
    host_key, client_key = (ssh.loaded(ssh.new_private_key()) for _ in range(2))
    with ThreadPoolExecutor(2) as workers:
        server = HostServer(SimHost(bench.world, "a"), host_key, client_key, workers)
        server.service.open()
        yield server
        server.service.close()


def test_a_client_that_vanishes_takes_its_loop_along(server, bench):
    bench.world.inject("a", "hung-smi")
    connection = socket.create_connection(("127.0.0.1", server.service.port))
    with paramiko.Transport(connection) as transport:
        transport.connect(username="lumctl", pkey=server.client_key)
        channel = transport.open_session()
        channel.exec_command("exec sh")
        channel.sendall(PROGRAM)
        assert channel.recv_stderr(100).startswith(b"lumctl-loop 2 ")
        channel.sendall(b"1 1 0\n")
        assert channel.recv_stderr(100) == b"= 0 1 0 0\n\n"
        (loop,) = server._loops
        assert not loop.ended
        ended = threading.Event()
        close = loop._pipe.close
        loop._pipe.close = lambda status: (close(status), ended.set())
        connection.shutdown(socket.SHUT_RDWR)
        assert ended.wait(20)
    assert loop.ended
