"""The first screen as a picture in each state that an operator meets, on terminals of each size."""

import pytest
from rack_states import STATES

SIZES = ((80, 24), (120, 36), (160, 50), (220, 60))
WORDS = {
    "all-ok": "● nothing is wrong: 64 accelerators, 60 circuits, 16 hosts",
    "lost-gpu": "✖ h03-gpu2 fell off the bus; train-a rank 18 is down; p: swap in h16-gpu2",
    "dark-transmitter": "✖ h05-gpu1-a sends no light; train-a rank 12 is cut off; p: swap in h16-gpu1",
    "dead-host": (
        "✖ h07 does not answer over SSH, but its links carry light; train-a ranks 6, 14, 22, 30 are out of sight; "
        "5: find out whether it is really down"
    ),
    "dark-rack": (
        "✖ rack64 is unreachable: none of its 16 hosts answers; train-a and train-b are out of sight (5: details); "
        "no swap helps: check its power, network, cooling"
    ),
    "swap-under-way": "◐ swap-0008 is in progress; train-a: replace h03-gpu2 by h16-gpu2; 6: steps",
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("state", STATES)
def test_the_first_screen(looks_as_before, rack64, state, size):
    assert looks_as_before(rack64(state), size=size)


@pytest.mark.parametrize("size", [(40, 12), (60, 30), *SIZES], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("state", STATES)
def test_the_fault_and_the_key_are_named_on_every_terminal(rack64, kit, state, size):
    async def script(pilot):
        text = kit.screen_text(pilot.app)
        said = " ".join(text.split())
        words = WORDS[state] if size[0] >= 80 else WORDS[state][:30].rpartition(" ")[0]
        assert words in said
        if size[1] >= 24:
            assert all(f"h{host:02}" in text for host in range(1, 17))
            assert f"spares left rail0 {'unknown' if state == 'dark-rack' else 1}" in text
        for strip in pilot.app.screen._compositor.render_strips():
            assert strip.cell_length <= size[0]

    kit.drive(rack64(state).dashboard(), script, size=size)


@pytest.mark.parametrize("state", STATES)
def test_plain_characters_and_no_colour_say_the_same(rack64, kit, state, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot):
        text = kit.screen_text(pilot.app)
        assert text.isascii()
        assert WORDS[state][2:] in " ".join(text.split())
        assert ("X" in text) == (state != "all-ok")

    kit.drive(rack64(state).dashboard(ascii_only=True), script, size=(120, 36))
