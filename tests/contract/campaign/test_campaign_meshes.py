"""Seeded fault sequences on the drivers of meshes: a sample by default, 2,000 for each with LUMCTL_CAMPAIGN set.

Whatever goes wrong on the way or in the device, what the program believes afterwards is what a fresh reading shows; a
device that cannot be read is unknown until its known state was written again; and nobody else's cells ever change.

The drivers ``sonic`` and ``replay-...`` change nothing, and have no campaign.
"""

import functools
import http.client
import io

import pytest
from lumctl_smartlight import SmartlightMesh, SmartlightObjectMesh, session

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing.campaign import Rig
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.types import PucState
from lumctl.devices.ways import Direct
from lumctl.sim.meshes import object_client
from lumctl.sim.meshes.driver import SimMesh
from lumctl.sim.meshes.object_server import ObjectServer

PUCS = 12


def test_smartlight(serve, make_twin, run_campaign):
    """It has no read-back: an unclear outcome is unknown until the known states are written again."""
    twin = make_twin(PUCS)
    address = serve(twin)
    way = FaultyWay(Direct(address))

    def opened(states):
        known = {puc: PucState(state) for puc, state in states.items()}
        return SmartlightMesh(DriverContext("m1", address, way, puc_count=PUCS, timeout_s=2.0, known_states=known))

    def misbehave(habit):
        twin.is_halving = habit == "half"

    rig = Rig(
        opened,
        lambda: {puc: str(state) for puc, state in twin.states.items()},
        range(3, PUCS),
        ("=", "x"),
        way,
        habits=("half",),
        misbehave=misbehave,
        most_bytes=100,
    )
    run_campaign(rig, "done", "DeviceUnreachableError", "OutcomeUnknownError", "unknown", "undone", "asserted again")


class HttpStream:
    """A stream as ``http.client`` wants a socket: it may be closed while its answer is still read."""

    def __init__(self, stream):
        self._stream = stream

    def sendall(self, data):
        self._stream.sendall(data)

    def makefile(self, _mode):
        return io.BufferedReader(Answer(self._stream))

    def close(self):
        pass


class Answer(io.RawIOBase):
    def __init__(self, stream):
        super().__init__()
        self._stream = stream

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self._stream.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.fixture
def object_way(bench, monkeypatch):
    """The vendor-style object of a simulated mesh connects by itself: here on a way of ours."""
    path = bench.folder / "object"
    server = ObjectServer(bench.world, "object", lambda _seconds: None, path)
    server.service.open()
    way = FaultyWay(type(bench.way._way)(path))
    streams = []

    def connect(connection):
        while streams:
            streams.pop().close()
        streams.append(way.tcp(0, 2.0))
        connection.sock = HttpStream(streams[-1])

    # What is installed stays the same, and is looked for with every new object.
    monkeypatch.setattr(session, "entry_points", functools.cache(session.entry_points))
    monkeypatch.setattr(object_client._UnixConnection, "connect", connect)
    monkeypatch.setattr(http.client.HTTPConnection, "connect", lambda _: pytest.fail("not this way"))
    yield way
    for stream in streams:
        stream.close()
    server.service.close()


def mesh_rig(bench, device, driver, way, habits):
    def truth():
        with bench.plant() as plant:
            return {puc: str(state) for puc, state in plant.chips[device].states().items()}

    count = len(truth())
    context = bench.context(device, puc_count=count, timeout_s=5.0)
    return Rig(
        lambda _: driver(context),
        truth,
        range(4, count),
        ("=", "x"),
        way,
        habits=habits,
        misbehave=bench.misbehaves(device),
        pass_time=bench.pass_time,
    )


def test_smartlight_object(bench, object_way, habits, run_campaign):
    rig = mesh_rig(bench, "object", SmartlightObjectMesh, object_way, habits)
    rig.most_bytes = 9000
    run_campaign(
        rig,
        "done",
        "DeviceUnreachableError",
        "DeviceRefusedError",
        "OutcomeUnknownError",
        "InconsistentError",
        "undone",
    )


def test_sim_mesh(bench, habits, run_campaign):
    """Its revert timers run out, or are confirmed in the midst of trouble."""
    rig = mesh_rig(bench, "whole", SimMesh, bench.way, habits)
    run_campaign(
        rig,
        *("done", "DeviceUnreachableError", "DeviceRefusedError", "OutcomeUnknownError", "InconsistentError", "undone"),
        *("confirmed", "ran out", "confirm: OutcomeUnknownError", "read again"),
    )
