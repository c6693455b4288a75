"""The one program that ``sh`` of a simulated host runs: the loop that answers probes. Its text is parsed, not executed.

Only the rows of its table and its lanes are parsed, one line each::

    4) run nvidia-smi -q -x ;;
    4|5) echo "$n $id" >&3 ;;
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_SHELLS = (["sh"], ["/bin/sh"], ["sh", "-s"])
# After this line the input carries requests.
_LAST_LINE = b"main; exit"
_MOST_BYTES = 256 * 1024
_ROW = re.compile(r"\s*([0-9]{1,6})\)\s*(files|run|grow)\s+(.*?)\s*;;\s*")
_LANE = re.compile(r"\s*([0-9]{1,6}(?:\|[0-9]{1,6})*)\)\s*echo\s.*>&([0-9])\s*;;\s*")


class Kind(StrEnum):
    """The kind of a row of the table."""

    FILES = "files"
    RUN = "run"
    GROW = "grow"


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One probe. ``words``: the globs of ``files``, the words of ``run``, or the pattern and the words of ``grow``."""

    kind: Kind
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """The rows by number, and the lane of each number; the loop itself answers a number without a lane."""

    rows: Mapping[str, ProbeRow]
    lanes: Mapping[str, str]


def is_shell(command: str) -> bool:
    """Whether a command line asks for a shell that reads its program from its input."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return (words[1:] if words[:1] == ["exec"] else words) in _SHELLS


def split_program(received: bytes) -> tuple[bytes, bytes] | None:
    """The program and the bytes after it; ``None`` until its last line has arrived.

    Raises:
        ValueError: it is longer than such a program can be.
    """
    start = 0
    while (end := received.find(b"\n", start)) >= 0:
        if received[start:end].strip() == _LAST_LINE:
            return received[:end], received[end + 1 :]
        start = end + 1
    if len(received) > _MOST_BYTES:
        raise ValueError("the program has no end")
    return None


def read_program(text: str) -> Program:
    """Parse the table and the lanes of a program. A line with an unclosed quote is ignored."""
    rows: dict[str, ProbeRow] = {}
    lanes: dict[str, str] = {}
    for line in text.splitlines():
        if row := _ROW.fullmatch(line):
            number, kind, rest = row.groups()
            try:
                rows[number] = ProbeRow(Kind(kind), tuple(shlex.split(rest)))
            except ValueError:
                continue
        elif lane := _LANE.fullmatch(line):
            lanes |= dict.fromkeys(lane[1].split("|"), lane[2])
    return Program(rows, lanes)
