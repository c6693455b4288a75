"""The contract suite over the mesh drivers of this distribution."""

import pytest
from lumctl_smartlight import SmartlightMesh

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import MeshContract, MeshUnderTest

PUCS = 29


def context(address: str) -> DriverContext:
    return DriverContext(device="m1", address=address, puc_count=PUCS, port_count=24)


class TestSmartlightOnATwin(MeshContract):
    @pytest.fixture(params=[4096, 3], ids=["whole", "in pieces"])
    def mesh(self, request, serve, make_twin, nobody) -> MeshUnderTest:
        twin = make_twin(PUCS, piece=request.param)
        return MeshUnderTest(
            driver=SmartlightMesh(context(serve(twin))),
            puc_count=PUCS,
            truth=lambda: twin.states,
            unreachable=SmartlightMesh(context(nobody)),
        )


class TestSmartlightByItsOwnRecord(MeshContract):
    """As it runs on a rack, where nothing can be seen apart from the driver."""

    @pytest.fixture
    def mesh(self, serve, make_twin) -> MeshUnderTest:
        return MeshUnderTest(driver=SmartlightMesh(context(serve(make_twin(PUCS)))), puc_count=PUCS)
