"""The contract suite over the mesh drivers of this distribution."""

import pytest
from lumctl_smartlight import SmartlightMesh

from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import MeshContract, MeshUnderTest
from lumctl.devices.ways import Direct

PUCS = 29


def context(address: str, puc_count: int = PUCS) -> DriverContext:
    return DriverContext(device="m1", address=address, way=Direct(address), puc_count=puc_count, port_count=24)


class TestSmartlightOnATwin(MeshContract):
    @pytest.fixture(params=[4096, 3], ids=["whole", "in pieces"])
    def mesh(self, request, serve, make_twin, nobody) -> MeshUnderTest:
        twin = make_twin(PUCS, piece=request.param, greeting=f"mesh controller ready, {PUCS} PUCs")
        address = serve(twin)
        return MeshUnderTest(
            driver=SmartlightMesh(context(address)),
            puc_count=PUCS,
            truth=lambda: twin.states,
            unreachable=SmartlightMesh(context(nobody)),
            other=SmartlightMesh(context(address)),
            wrong_size=SmartlightMesh(context(address, PUCS + 1)),
            stops_midway=twin.halving,
        )


class TestSmartlightByItsOwnRecord(MeshContract):
    """As it runs on a rack, where nothing can be seen apart from the driver."""

    @pytest.fixture
    def mesh(self, serve, make_twin) -> MeshUnderTest:
        twin = make_twin(PUCS)
        return MeshUnderTest(SmartlightMesh(context(serve(twin))), puc_count=PUCS, stops_midway=twin.halving)
