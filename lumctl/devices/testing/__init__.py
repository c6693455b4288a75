"""The contract of drivers as a test suite: subclass it, give it your driver, and run it with pytest.

    class TestMyMesh(MeshContract):
        @pytest.fixture
        def mesh(self) -> Iterator[MeshUnderTest]:
            with my_twin(puc_count=24) as twin:
                way = Direct(twin.address)
                driver = MyMesh(DriverContext(device="m1", address=twin.address, way=way, puc_count=24, port_count=20))
                yield MeshUnderTest(driver, puc_count=24, truth=twin.states)

The suite runs against a simulator, a twin or a device on a bench that carries no light: it writes every PUC of a mesh,
connects and disconnects the ports of a switch, and switches a machine off and on. The suite expects that a driver
refuses calls that it does not declare with ``UnsupportedError``, before anything is sent.

:mod:`lumctl.devices.testing.campaign` and :mod:`lumctl.devices.testing.campaign_settings` check that a driver reports
the truth under many faults.
"""

import pytest

pytest.register_assert_rewrite(
    "lumctl.devices.testing.common_contract",
    "lumctl.devices.testing.checks",
    "lumctl.devices.testing.mesh",
    "lumctl.devices.testing.power",
    "lumctl.devices.testing.readings",
    "lumctl.devices.testing.switch",
    "lumctl.devices.testing.transponder",
    "lumctl.devices.testing.writes",
)

from lumctl.devices.testing.mesh import MeshContract  # noqa: E402 - after its asserts were registered
from lumctl.devices.testing.power import PowerContract  # noqa: E402
from lumctl.devices.testing.switch import SwitchContract  # noqa: E402
from lumctl.devices.testing.transponder import TransponderContract  # noqa: E402
from lumctl.devices.testing.under_test import (  # noqa: E402
    MeshUnderTest,
    PowerUnderTest,
    SwitchUnderTest,
    TransponderUnderTest,
)

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
