"""The contract of lumctl's drivers on this one: subclass the suite, and give it the driver and its twin."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from lumctl_example_mesh import ExampleMesh
from lumctl_example_mesh.twin import Twin

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import MeshContract, MeshUnderTest
from lumctl.devices.testing.campaign import Rig, TroubleCount, run_sequence
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.types import PucState
from lumctl.devices.ways import Direct

PUCS = 24
PROMPT_S = 2.0


def context(address: str, puc_count: int = PUCS) -> DriverContext:
    """What lumctl would give the driver."""
    return DriverContext("m1", address, Direct(address), puc_count=puc_count, port_count=20, timeout_s=2.0)


def nobody() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class TestExampleMesh(MeshContract):
    """Every promise that lumctl relies on."""

    @pytest.fixture
    def mesh(self) -> Iterator[MeshUnderTest]:
        """Give the driver on its twin."""
        with Twin(PUCS) as twin:
            yield MeshUnderTest(
                driver=ExampleMesh(context(twin.address)),
                puc_count=PUCS,
                truth=lambda: {puc: PucState(mark) for puc, mark in enumerate(twin.states)},
                unreachable=ExampleMesh(context(nobody())),
            )


def test_what_is_believed_after_a_fault_is_true() -> None:
    """Bytes are lost, answers cut: afterwards the truth is known, or known to be unknown."""
    with Twin(PUCS) as twin:
        way = FaultyWay(Direct(twin.address))
        ours = DriverContext("m1", twin.address, way, puc_count=PUCS, port_count=20, timeout_s=2.0)
        rig = Rig(lambda _: ExampleMesh(ours), lambda: dict(enumerate(twin.states)), range(4, PUCS), ("=", "x"), way)
        tally = TroubleCount()
        for seed in range(50):
            run_sequence(rig, seed, tally)
        assert tally.outcomes["done"] > 0


def test_an_answer_that_drips_is_waited_for_no_longer_than_agreed() -> None:
    """The time is for the whole answer, not for each byte of it."""

    def drip(listener: socket.socket, over: threading.Event) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            while not over.wait(0.1):
                connection.sendall(b"=")

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener, over))
        dripping.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        driver = ExampleMesh(DriverContext("m1", address, Direct(address), puc_count=PUCS, timeout_s=0.4))
        started = time.monotonic()
        with pytest.raises(DeviceUnreachableError, match="time"):
            driver.read_states()
        assert time.monotonic() - started < PROMPT_S
        over.set()
        dripping.join()
