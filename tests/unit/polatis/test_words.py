"""The words of a switch's SCPI: what is sent, and what its answers are taken for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lumctl_polatis import words


def test_ports_count_from_one_on_the_line():
    assert words.port_list([0, 1, 30]) == "(@1,2,31)"
    assert words.pair_lists([(0, 16), (1, 20)]) == "(@1,2),(@17,21)"


def test_joins_are_read_as_they_are_printed():
    assert words.read_joins("(@),(@)") == {}
    assert words.read_joins("(@1,2,3),(@19,18,22)") == {0: 18, 1: 17, 2: 21}
    assert words.read_joins("(@1, 2) , (@19, 18)") == {0: 18, 1: 17}


@given(st.permutations(range(40)), st.integers(0, 20))
def test_what_is_written_is_read_back(ports, count):
    pairs = dict(zip(ports[:count], ports[20 : 20 + count], strict=True))
    assert words.read_joins(words.pair_lists(list(pairs.items()))) == pairs


@given(st.text(alphabet='(@),0129- ;"E', max_size=24))
def test_no_text_gives_another_error(text):
    for read in (words.read_joins, words.read_size, words.read_identity, words.complaint):
        try:
            read(text)
        except ValueError:
            continue
    for read in (words.read_powers(2), words.read_states(2)):
        try:
            assert len(read(text)) == 2
        except ValueError:
            continue


@pytest.mark.parametrize(("answer", "size"), [("16,16", (32, 16)), ("8, 24", (32, 8)), ("32,0", (32, 32))], ids=str)
def test_sizes(answer, size):
    assert words.read_size(answer) == size


def test_states_are_one_for_each_port_that_was_asked():
    assert words.read_states(3)("(D,E,F)") == ["D", "E", "F"]
    for wrong in ("(D,E)", "(D,E,X)", "(D,E,F,E)", ""):
        with pytest.raises(ValueError, match=r".*"):
            words.read_states(3)(wrong)


def test_as_little_light_as_a_monitor_shows_is_none():
    assert words.read_powers(4)("(-3.25,+1.5e0,-60.0,-100)") == [-3.25, 1.5, -math.inf, -math.inf]
    for wrong in ("(nan,1,1,1)", "(inf,1,1,1)", "(1_0,1,1,1)", "(1,1,1)", "(,,,)"):
        with pytest.raises(ValueError, match=r".*"):
            words.read_powers(4)(wrong)


def test_complaints_are_one_line():
    assert words.complaint('0,"No error"') == ""
    assert words.complaint('+0, "No error"') == ""
    assert words.complaint('-221,"Settings conflict; port 1";-113,"Undefined header"') == (
        "-221 Settings conflict; port 1; -113 Undefined header"
    )
    assert len(words.complaint(",".join(f'-221,"number {n}"' for n in range(100)))) == words.QUOTED
    with pytest.raises(ValueError, match="oops"):
        words.complaint("oops")


def test_the_end_of_an_answer_says_that_it_is_done():
    assert words.without_done("1") == ""
    assert words.without_done("(E,D);1") == "(E,D)"
    assert words.without_done("(E,D)") is None
