"""The contract of drivers as a test suite: subclass it, give it your driver, and run it with pytest.

    class TestMyMesh(MeshContract):
        @pytest.fixture
        def mesh(self) -> Iterator[MeshUnderTest]:
            with my_twin(puc_count=24) as twin:
                way = Direct(twin.address)
                driver = MyMesh(DriverContext(device="m1", address=twin.address, way=way, puc_count=24, port_count=20))
                yield MeshUnderTest(driver, puc_count=24, truth=twin.states)

The suite runs against a simulator, a twin or a device on a bench that carries no light: it writes every PUC of a
mesh, joins and parts the ports of a switch, and switches a machine off and on. What a driver does not declare, the
suite expects it to refuse with ``UnsupportedError``, before anything is sent.

:mod:`lumctl.devices.testing.campaign` and :mod:`lumctl.devices.testing.campaign_settings` hold a driver to the truth
while much goes wrong.
"""

import pytest

pytest.register_assert_rewrite(
    "lumctl.devices.testing.common_contract",
    "lumctl.devices.testing.checks",
    "lumctl.devices.testing.mesh",
    "lumctl.devices.testing.power",
    "lumctl.devices.testing.readings",
    "lumctl.devices.testing.settings",
    "lumctl.devices.testing.mesh_doubts",
    "lumctl.devices.testing.switch",
    "lumctl.devices.testing.transponder",
)

from lumctl.devices.testing.mesh import MeshContract  # noqa: E402 - after its asserts were registered
from lumctl.devices.testing.mesh_under_test import MeshUnderTest  # noqa: E402
from lumctl.devices.testing.power import PowerContract  # noqa: E402
from lumctl.devices.testing.power_under_test import PowerUnderTest  # noqa: E402
from lumctl.devices.testing.switch import SwitchContract  # noqa: E402
from lumctl.devices.testing.switch_under_test import SwitchUnderTest  # noqa: E402
from lumctl.devices.testing.transponder import TransponderContract  # noqa: E402
from lumctl.devices.testing.transponder_under_test import TransponderUnderTest  # noqa: E402

__all__ = [
    "MeshContract",
    "MeshUnderTest",
    "PowerContract",
    "PowerUnderTest",
    "SwitchContract",
    "SwitchUnderTest",
    "TransponderContract",
    "TransponderUnderTest",
]
