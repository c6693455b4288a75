"""Makes text from devices, hosts and files safe to print.

A terminal obeys control characters (an ESC sequence can write to the clipboard or move the cursor), and format
characters hide or reorder text. Text is escaped where it leaves the program: on a terminal or in a pipe, in the
dashboard, in a notification, in a log.
"""

import re
from collections.abc import Iterable
from typing import Any

_OTHER = (
    "\x7f-\x9f"  # DEL and the C1 controls: 8-bit forms of CSI and OSC among them
    "\xad\u061c\u180e\u200b-\u200f\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, and the direction of the text
    "\u2028-\u202e"  # line and paragraph separators, embeddings and overrides of the direction
    "\ud800-\udfff"  # bytes that were not UTF-8
    "\U000e0000-\U000e0fff"  # tags: an invisible alphabet
)
_UNPRINTABLE = re.compile(f"[\x00-\x1f{_OTHER}]")
_UNPRINTABLE_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_OTHER}]")
_LARGEST_BMP = 0xFFFF


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with each control and format character as its escape (``\x1b``, ``\u202e``).

    With ``lines`` line feeds and tabs stay as they are.
    """
    return (_UNPRINTABLE_IN_LINES if lines else _UNPRINTABLE).sub(_escape, text)


def one_line(text: str, most: int) -> str:
    """The text on one line, printable, and shortened to ``most`` characters with an ellipsis at the end."""
    # Cut first, because the text may be megabytes long. The factor leaves room for white space, which is joined.
    line = printable(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1]}…"


def printable_json(text: str) -> str:
    """A JSON document with such characters as JSON's own escapes, so that the values stay the same."""
    # Line feeds that are left are the document's layout: those inside strings were escaped by ``json.dumps``.
    return _UNPRINTABLE_IN_LINES.sub(_json_escape, text)


def printable_values(value: Any) -> Any:
    """Mappings and lists with every text in them printable."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {key: printable_values(item) for key, item in value.items()}
        case list() | tuple():
            return [printable_values(item) for item in value]
        case _:
            return value


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _json_escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number <= _LARGEST_BMP:
        return f"\\u{number:04x}"
    # JSON's escapes have four digits: a larger code point is written as a surrogate pair.
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def counted(number: int, many: str, one: str = "") -> str:
    """A number with its noun: ``1 rack``, ``2 racks``. By default ``one`` is ``many`` without its last letter."""
    return f"{number} {(one or many[:-1]) if number == 1 else many}"


def is_or_are(number: int) -> str:
    """The verb that agrees with a number of things: ``1 rack is``, ``2 racks are``."""
    return "is" if number == 1 else "are"


def stay(number: int, many: str, one: str = "") -> str:
    """A clause with the number of unchanged things: ``2 racks stay as they are``."""
    return f"{counted(number, many, one)} {'stays as it is' if number == 1 else 'stay as they are'}"


def shape_text(shape: Iterable[int]) -> str:
    """The shape of a torus or a slice as it is written: ``4x4x2``."""
    return "x".join(map(str, shape))


def ranks_text(places: Iterable[tuple[str, int]]) -> str:
    """Ranks of jobs in words: ``train-a ranks 2, 4-6 and train-b rank 0``."""
    ranks: dict[str, list[int]] = {}
    for job, rank in places:
        ranks.setdefault(job, []).append(rank)
    return " and ".join(
        f"{job} {'rank' if len(own) == 1 else 'ranks'} {number_ranges(sorted(own))}" for job, own in ranks.items()
    )


def number_ranges(numbers: Iterable[int]) -> str:
    """Numbers in ascending order as ranges: ``0-7, 9``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
