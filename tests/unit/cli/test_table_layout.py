"""Column widths: no word is broken, long text wraps first, then unimportant columns give way."""

from lumctl.cli.output import ColumnText, lay_out

ID = ColumnText("ID", ["h03-gpu2", "h16-gpu0"])
AGE = ColumnText("AGE", ["0.4s", "12m"], gives_way=2, whole=True)
POWER = ColumnText("POWER W", ["401", "77"], gives_way=1, whole=True)
TEXT = ColumnText("FINDING", ["fell off the bus, and the kernel log of the host says so"])


def test_with_room_nothing_wraps():
    assert lay_out([ID, AGE, POWER, TEXT], 200, 2) == {0: 8, 1: 4, 2: 5, 3: 56}


def test_long_text_wraps_before_a_column_is_left_out():
    assert lay_out([ID, AGE, POWER, TEXT], 60, 2) == {0: 8, 1: 4, 2: 5, 3: 37}


def test_the_least_important_columns_give_way_in_their_order():
    assert sorted(lay_out([ID, AGE, POWER, TEXT], 42, 2)) == [0, 2, 3]
    assert sorted(lay_out([ID, AGE, POWER, TEXT], 38, 2)) == [0, 3]


def test_words_are_whole_even_if_the_screen_is_too_narrow():
    assert lay_out([ID, AGE, POWER, TEXT], 10, 2) == {0: 8, 3: 7}


def test_cells_of_whole_columns_do_not_wrap_but_their_headings_may():
    column = ColumnText("RX dBm", ["-2.0 / -2.0"], whole=True)
    assert lay_out([column, TEXT], 20, 2)[0] == 11
    assert lay_out([POWER], 5, 2) == {0: 5}


def test_wide_characters_take_two_columns():
    assert lay_out([ColumnText("X", ["架架"])], 80, 2) == {0: 4}
