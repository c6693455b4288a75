"""Lanes of a simulated rack: real connections, and real ranks of PyTorch, that have what the light gives them."""

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
from racks import Rack, rack_of
from waiting import until

from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.sim.client import ask
from lumctl.sim.meshes.driver import SimMesh
from lumctl.swap import plan_swap

RANK = Path(__file__).with_name("lanes_rank.py")
WITHIN_S = 40.0


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    yield from rack_of("ring4", tmp_path_factory.mktemp("ring4"))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """A rack whose lanes carry 200 Mbit/s."""
    yield from rack_of("ring4", tmp_path_factory.mktemp("slow"), lane_mbps=200.0)


def lanes(rack: Rack) -> dict[str, Any]:
    return ask(rack.sim.control, "status")["lanes"]


def joined(rack: Rack, source: str, sink: str) -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection over lanes."""
    path = rack.context.endpoints.lanes
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        request = {"from": source, "to": sink, "address": listener.getsockname()}
        asking.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(asking.recv(4096))
        near = socket.create_connection(answer["endpoint"])
        far, _ = listener.accept()
    return near, far


def carriers(rack: Rack) -> list[int]:
    """The processes that carry lanes: children of the simulator."""
    tasks = Path(f"/proc/{rack.sim.process.pid}/task").glob("*/children")
    return [int(pid) for each in tasks for pid in each.read_text().split()]


def test_a_transfer_stalls_without_light_and_is_whole_with_it(slow: Rack) -> None:
    near, far = joined(slow, "h1-gpu0", "h2-gpu0")
    data = os.urandom(16 * 1024 * 1024)
    came = bytearray()

    def take() -> None:
        while chunk := far.recv(1 << 20):
            came.extend(chunk)

    def give() -> None:
        near.sendall(data)
        near.shutdown(socket.SHUT_WR)

    work = [threading.Thread(target=each) for each in (take, give)]
    for each in work:
        each.start()
    until(lambda: len(came) > 2_000_000)
    assert set(lanes(slow)["lanes"]) == {"h1-gpu0-b>h2-gpu0-a"}
    slow.sim.inject("h2-gpu0", "gpu-lost")
    slow.sim.inject("h1-gpu0-b", "dark")
    until(lambda: lanes(slow)["lanes"].get("h4-gpu0-b>h3-gpu0-a") or lanes(slow)["lanes"].get("h3-gpu0-a>h2-gpu0-b"))
    assert lanes(slow)["dark"] == 0, "the other way round the ring, and a NIC works without its GPU"
    slow.sim.inject("h1", "unreachable")
    until(lambda: lanes(slow)["dark"] == 1)
    stalled = lanes(slow)["bytes"]
    assert stalled < len(data)
    work[0].join(0.1)
    assert work[0].is_alive()
    assert lanes(slow)["bytes"] == stalled
    slow.sim.clear()
    for each in work:
        each.join(WITHIN_S)
    near.close()
    far.close()
    assert hashlib.sha256(came).digest() == hashlib.sha256(data).digest()
    until(lambda: lanes(slow)["connections"] == 0)


def test_a_lane_carries_what_it_is_said_to(slow: Rack) -> None:
    near, far = joined(slow, "h3-gpu0", "h4-gpu0")
    began = time.monotonic()
    threading.Thread(target=lambda: (near.sendall(bytes(5_000_000)), near.close())).start()
    count = 0
    while chunk := far.recv(1 << 20):
        count += len(chunk)
    took = time.monotonic() - began
    far.close()
    assert count == 5_000_000
    assert took >= 0.9 * 8 * count / 200e6, f"{8 * count / took / 1e6:.0f} Mbit/s"


def test_what_carries_lanes_is_started_when_asked_for_and_once_more_when_it_was_killed(rack: Rack) -> None:
    for near, far in (joined(rack, "h1-gpu0", "h2-gpu0"), joined(rack, "h2-gpu0", "h3-gpu0")):
        near.sendall(b"lit")
        assert far.recv(3) == b"lit"
        near.close()
        far.close()
    (pid,) = carriers(rack)
    near, far = joined(rack, "h1-gpu0", "h2-gpu0")
    os.kill(pid, signal.SIGKILL)
    assert near.recv(1) == b""
    near.close()
    far.close()
    until(lambda: pid not in carriers(rack))
    near, far = joined(rack, "h1-gpu0", "h2-gpu0")
    near.sendall(b"lit")
    assert far.recv(3) == b"lit"
    near.close()
    far.close()


class Ranks:
    """Ranks that run over lanes, and what they say."""

    def __init__(self, rack: Rack, placement: list[str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            store = free.getsockname()[1]
        order = {"placement": placement, "store": store, "lanes": str(rack.context.endpoints.lanes)}
        self.processes = [
            subprocess.Popen(
                [sys.executable, RANK, json.dumps(order | {"rank": rank})],
                stdout=subprocess.PIPE,
                bufsize=0,  # a line that is read ahead would be missed by select
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
            for rank in range(len(placement))
        ]

    def said(self, rank: int) -> dict[str, Any]:
        """The next that it says."""
        pipe = self.processes[rank].stdout
        assert pipe is not None
        assert select.select([pipe], [], [], WITHIN_S)[0], f"rank {rank} says nothing"
        return json.loads(pipe.readline())

    def silent(self, for_s: float) -> bool:
        return not select.select([each.stdout for each in self.processes], [], [], for_s)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.processes:
            each.kill()
            each.communicate()


def test_no_sum_comes_about_while_the_mesh_lies_and_a_killed_rank_ends_its_connections(rack: Rack) -> None:
    rack.sim.inject("h2-gpu0", "gpu-lost")
    plan = plan_swap(rack.context, "train", ["h2-gpu0"])
    spare = plan.replacements[0].spare
    changes = {change.puc: PucState(change.after) for change in plan.changes}
    mesh = SimMesh(DriverContext(device="mesh", address=f"unix:{rack.sim.control}"))
    rack.sim.inject("mesh", "mesh-lying")
    before = lanes(rack)["bytes"]
    with ExitStack() as ended:
        ended.callback(rack.sim.clear)
        ranks = ended.enter_context(Ranks(rack, ["h1-gpu0", spare, "h3-gpu0"]))
        for rank in range(3):
            assert ranks.said(rank) == {"starts": True}
        assert mesh.commit(mesh.stage(changes)).text, "it says that it has switched"
        until(lambda: lanes(rack)["dark"] == 2)
        assert ranks.silent(0.5)
        rack.sim.clear("mesh")
        assert ranks.silent(0.1), "the fault is gone, and the mesh stands as before"
        mesh.commit(mesh.stage(changes))
        expected = sum(range(100_000)) * 3 + 100_000 * (0 + 1 + 2)
        assert [ranks.said(rank)["sum"] for rank in range(3)] == [expected] * 3
        assert [ranks.said(rank)["part"] for rank in (0, 2)] == [2, 2]
        assert lanes(rack)["bytes"] > before + 1_000_000
        ranks.processes[1].kill()
        for rank in (0, 2):
            assert "Connection" in ranks.said(rank)["broke"], "not by the group's time limit"
    until(lambda: lanes(rack)["connections"] == 0)
