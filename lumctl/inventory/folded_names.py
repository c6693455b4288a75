"""Folded names: ``r[1-2]-h[01-16]`` means thirty-two hosts, ``[a,b,c]`` three words.

If a name has several brackets, the rightmost changes fastest. Zero padding is kept: ``[08-11]`` is 08, 09, 10, 11.
"""

import re
from collections.abc import Iterable
from itertools import product

MAX_NAMES = 100_000
_MAX_LENGTH = 256
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
"""The name of a component of an inventory."""
_BRACKETS = re.compile(r"(\[[^\[\]]*\])")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")
_WORD = re.compile(r"[A-Za-z0-9._]+")
_BETWEEN = re.compile(r",(?![^\[\]]*\])")
"""A comma outside brackets."""
_DIGITS = re.compile(r"([0-9]+)")


class FoldError(ValueError):
    """A folded name that cannot be expanded."""


def expand(text: str) -> list[str]:
    """All names that ``text`` expands to; a text without brackets is one name.

    Brackets that contain a colon are an IPv6 address and are not expanded.

    Raises:
        FoldError: the brackets or a range in them are wrong, or there are too many names.
    """
    if "[" not in text and "]" not in text:
        return [text]
    if len(text) > _MAX_LENGTH:
        raise FoldError(f"a folded name of {len(text)} characters, expected at most {_MAX_LENGTH}")
    parts: list[list[str]] = []
    count = 1
    for piece in _BRACKETS.split(text):
        if piece.startswith("[") and piece.endswith("]") and ":" not in piece:
            parts.append(_items(piece[1:-1], text))
            # Before the product is made: a short text can stand for billions of names.
            count *= len(parts[-1])
            if count > MAX_NAMES:
                raise FoldError(f"{text!r} expands to more than {MAX_NAMES} names")
        elif not piece.startswith("[") and ("[" in piece or "]" in piece):
            raise FoldError(f"{text!r} has a bracket without its partner, or one inside another")
        else:
            parts.append([piece])
    return ["".join(chosen) for chosen in product(*parts)]


def expand_list(text: str) -> list[str]:
    """All names of a comma-separated list whose items may be folded: ``h[01-02],h07``.

    Raises:
        FoldError: see :func:`expand`.
    """
    return [name for word in _BETWEEN.split(text) if word.strip() for name in expand(word.strip())]


def expand_numbers(text: str) -> list[int]:
    """The numbers of a list such as ``0-3,8``.

    Raises:
        FoldError: the text is not such a list.
    """
    items = _items(text.replace(" ", ""), text)
    if not all(item.isdecimal() for item in items):
        raise FoldError(f"found {text!r}, expected numbers such as 0-3,8")
    return [int(item) for item in items]


def _items(inside: str, text: str) -> list[str]:
    items: list[str] = []
    for item in inside.split(","):
        if bounds := _RANGE.fullmatch(item):
            items.extend(_range(bounds[1], bounds[2], text))
        elif _WORD.fullmatch(item):
            items.append(item)
        else:
            raise FoldError(f"found {item!r} in {text!r}, expected a range such as 01-16 or words such as a,b")
        if len(items) > MAX_NAMES:
            raise FoldError(f"{text!r} expands to more than {MAX_NAMES} names")
    return items


def _range(first: str, last: str, text: str) -> list[str]:
    if len(first) != len(last) and (_padded(first) or _padded(last)):
        raise FoldError(f"the range {first}-{last} in {text!r} has ends of different length")
    low, high = int(first), int(last)
    if low > high:
        raise FoldError(f"the range {first}-{last} in {text!r} runs backwards")
    if high - low >= MAX_NAMES:
        raise FoldError(f"{text!r} expands to more than {MAX_NAMES} names")
    return [str(number).zfill(len(first)) for number in range(low, high + 1)]


def _padded(number: str) -> bool:
    return len(number) > 1 and number.startswith("0")


def fold(names: Iterable[str]) -> list[str]:
    """The same names, folded for tables: the reverse of :func:`expand`, except for order and repetition.

    Names that differ only in one number are merged, number by number from the right.
    """
    split = list(dict.fromkeys(tuple(_DIGITS.split(name)) for name in names))
    numbers = max((len(pieces) // 2 for pieces in split), default=0)
    for place in range(2 * numbers - 1, 0, -2):
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
        for pieces in split:
            number = pieces[place] if place < len(pieces) else ""
            groups.setdefault((pieces[:place], pieces[place + 1 :]), []).append(number)
        split = [
            before if found == [""] else (*before, _folded(found), *after) for (before, after), found in groups.items()
        ]
    return ["".join(pieces) for pieces in split]


def _folded(numbers: list[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    ranges: list[list[str]] = []
    # By length first: among numbers of one width, the order of texts is that of the numbers.
    for number in sorted(numbers, key=lambda text: (len(text), text)):
        if ranges and _follows(ranges[-1][-1], number):
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return f"[{','.join(run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in ranges)}]"


def _follows(before: str, number: str) -> bool:
    """Whether ``number`` continues a range; 9 -> 10 does, 09 -> 010 does not."""
    return int(number) == int(before) + 1 and str(int(number)).zfill(len(before)) == number
