"""A host that does not say how a command ended."""

import pytest

from lumctl.devices.errors import DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import CommandResult

LOST = CommandResult(-1, "", "")


def test_whether_the_mark_is_said_is_then_not_known(sonic):
    with pytest.raises(OutcomeUnknownError, match="may have taken effect"):
        sonic(lldpcli=LOST)[0].announce("0a0b")


@pytest.mark.parametrize("tool", ["sfputil", "lldpctl"])
def test_and_a_reading_was_not_taken(sonic, tool):
    driver, _ = sonic(**{tool: LOST})
    with pytest.raises(DeviceUnreachableError, match="could not be read"):
        driver.neighbours() if tool == "lldpctl" else driver.read_optics()
