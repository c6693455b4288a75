"""Every sign is explained where it is seen, or in the help: of states, of light, of marked and folded lines."""

import pytest

SIZES = ((80, 24), (120, 36))


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_column_of_a_circuits_ends_says_which_end_sends(stage, kit, size, ascii_only):
    async def script(pilot):
        await pilot.press("3")
        titles = next(line for line in kit.screen_text(pilot.app).splitlines() if "CIRCUIT" in line and "HEARS" in line)
        assert titles.rstrip().endswith("TX -> RX")

    kit.drive(stage.dashboard(ascii_only=ascii_only), script, size=size)
