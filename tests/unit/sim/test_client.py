"""What the client of a simulator knows of a request that failed."""

import socket
import threading
from contextlib import contextmanager

import pytest

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.sim.client import ask

MORE_THAN_A_SOCKET_HOLDS = "x" * 8_000_000


@contextmanager
def simulator(folder, behave):
    """Something that treats its only connection as it is told."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "s"))
        listener.listen()

        def serve():
            connection, _ = listener.accept()
            with connection:
                behave(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield folder / "s"
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("behave", [lambda _: None, lambda connection: connection.recv(100_000)])
def test_a_request_that_was_not_sent_whole_did_nothing(tmp_path, behave):
    with (
        simulator(tmp_path, behave) as control,
        pytest.raises(DeviceUnreachableError, match=r"mesh-write could not be sent.*nothing was done"),
    ):
        ask(control, "mesh-write", changes=MORE_THAN_A_SOCKET_HOLDS)


def test_a_request_that_the_simulator_does_not_take_in_time_did_nothing(tmp_path):
    asked = threading.Event()
    with simulator(tmp_path, lambda _: asked.wait(20)) as control:
        with pytest.raises(DeviceUnreachableError, match="nothing was done"):
            ask(control, "mesh-write", timeout_s=0.01, changes=MORE_THAN_A_SOCKET_HOLDS)
        asked.set()


def test_the_outcome_of_a_request_without_an_answer_is_not_known(tmp_path):
    with (
        simulator(tmp_path, lambda connection: connection.makefile().readline()) as control,
        pytest.raises(OutcomeUnknownError, match="did not answer"),
    ):
        ask(control, "mesh-write", changes="x")
