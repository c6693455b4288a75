"""The contract of drivers as a test suite: subclass it, give it your driver, and run it with pytest.

    class TestMyMesh(MeshContract):
        @pytest.fixture
        def mesh(self) -> Iterator[MeshUnderTest]:
            with my_twin(puc_count=24) as twin:
                driver = MyMesh(DriverContext(device="m1", address=twin.address, puc_count=24, port_count=20))
                yield MeshUnderTest(driver, puc_count=24, truth=twin.states)

The suite runs against a simulator, a twin or a device on a bench that carries no light: it writes every PUC. What a
driver does not declare, the suite expects it to refuse with ``UnsupportedError``, before anything is sent.
"""

import pytest

pytest.register_assert_rewrite("lumctl.devices.testing.mesh", "lumctl.devices.testing.transponder")

from lumctl.devices.testing.mesh import MeshContract, MeshUnderTest  # noqa: E402 - after its asserts were registered
from lumctl.devices.testing.transponder import TransponderContract, TransponderUnderTest  # noqa: E402

__all__ = ["MeshContract", "MeshUnderTest", "TransponderContract", "TransponderUnderTest"]
