"""Folded names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.inventory.folded_names import MAX_NAMES, FoldError, expand, expand_numbers, fold


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("h1", ["h1"]),
        ("h[1-3]", ["h1", "h2", "h3"]),
        ("h[08-11]", ["h08", "h09", "h10", "h11"]),
        ("h[8-11]", ["h8", "h9", "h10", "h11"]),
        ("h[0-1,7]x", ["h0x", "h1x", "h7x"]),
        ("lane-[a,b]", ["lane-a", "lane-b"]),
        ("r[1-2]-h[01-02]", ["r1-h01", "r1-h02", "r2-h01", "r2-h02"]),
        ("[fe80::1]:22", ["[fe80::1]:22"]),
    ],
)
def test_expands_in_order_and_keeps_padding(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("h[1-", "without its partner"),
        ("h1]", "without its partner"),
        ("h[1[2]]", "without its partner"),
        ("h[]", "expected a range"),
        ("h[1,]", "expected a range"),
        ("h[a b]", "expected a range"),
        ("h[3-1]", "runs backwards"),
        ("h[01-100]", "different length"),
        ("h[1-010]", "different length"),
        ("h[0-99999999]", "more than"),
        ("h[0-999][0-999]", "more than"),
        ("h[" + "1," * 400 + "1]", "characters"),
    ],
)
def test_says_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(FoldError, match=complaint):
        expand(text)


def test_the_largest_fold_is_allowed() -> None:
    assert len(expand(f"h[0-{MAX_NAMES - 1}]")) == MAX_NAMES


def test_numbers() -> None:
    assert expand_numbers("0-2, 7") == [0, 1, 2, 7]
    with pytest.raises(FoldError, match="expected numbers"):
        expand_numbers("0-2,x")


def test_folds_what_differs_in_numbers_only() -> None:
    names = [f"h{host:02}-gpu{gpu}" for host in range(1, 17) for gpu in range(4)]
    assert fold(names) == ["h[01-16]-gpu[0-3]"]
    assert fold(["s0", "s1", "s3", "mesh"]) == ["s[0-1,3]", "mesh"]
    assert fold(["h9", "h10", "h010"]) == ["h[9-10,010]"]
    assert fold([]) == []


NAME = st.from_regex(r"[a-c]{0,2}[0-9]{1,3}(-[a-c][0-9]{1,2})?", fullmatch=True)


@given(st.lists(NAME, max_size=20))
def test_folding_and_expanding_gives_the_same_names(names: list[str]) -> None:
    expanded = [name for text in fold(names) for name in expand(text)]
    assert len(expanded) == len(set(expanded))
    assert set(expanded) == set(names)


@given(st.text(alphabet="ab019-,[]: ", max_size=20))
def test_any_text_expands_or_is_refused(text: str) -> None:
    try:
        names = expand(text)
    except FoldError:
        return
    assert names
