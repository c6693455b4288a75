"""The grammar of SCPI (IEEE 488.2, SCPI-99) as far as a switch needs it: a line into commands, lists into ports."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

SYNTAX, NO_PARAMETER, NO_HEADER, CONFLICT, RANGE, OVERFLOW = -102, -109, -113, -221, -222, -350
TEXTS = {
    SYNTAX: "Syntax error",
    NO_PARAMETER: "Missing parameter",
    NO_HEADER: "Undefined header",
    CONFLICT: "Settings conflict",
    RANGE: "Data out of range",
    OVERFLOW: "Queue overflow",
}

_HEADER = re.compile(r"(\*[A-Za-z]+\??|:?[A-Za-z0-9]+(?::[A-Za-z0-9]+)*\??)(?:\s+(.*))?")
_LIST = re.compile(r"\(@\s*((?:[0-9]{1,6}(?:\s*,\s*[0-9]{1,6})*)?)\s*\)")
_SHORT = {
    "SWITCH": "SWIT",
    "CONNECT": "CONN",
    "DISCONNECT": "DISC",
    "STATE": "STAT",
    "DISABLE": "DIS",
    "ENABLE": "ENAB",
    "PMONITOR": "PMON",
    "POWER": "POW",
    "SYSTEM": "SYST",
    "ERROR": "ERR",
}


class ScpiError(Exception):
    """An entry for the error queue."""

    def __init__(self, code: int, why: str = "") -> None:
        text = TEXTS[code]
        super().__init__(f'{code},"{text}; {why}"' if why else f'{code},"{text}"')


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a line: its whole header in short upper-case words (``:OXC:SWIT:CONN:ADD``), and what follows."""

    header: str
    argument: str


def commands(line: str) -> Iterator[Command | ScpiError]:
    """The commands of a line; a header without a colon in front goes on where the one before it ended its last word."""
    path = ""
    for part in (part.strip() for part in line.split(";")):
        if not part:
            continue
        match = _HEADER.fullmatch(part)
        if match is None:
            yield ScpiError(SYNTAX)
            continue
        header = match[1].upper()
        if not header.startswith("*"):
            whole = header if header.startswith(":") else f"{path}:{header}"
            words = [_SHORT.get(word.rstrip("?"), word.rstrip("?")) for word in whole.split(":")[1:]]
            path = "".join(f":{word}" for word in words[:-1])
            header = f"{path}:{words[-1]}{'?' if header.endswith('?') else ''}"
        yield Command(header, (match[2] or "").strip())


def lists(argument: str, count: int) -> list[list[int]]:
    """So many lists of ports, ``(@1,2),(@17,18)``; the ports count from 0 here.

    Raises:
        ScpiError: something else stands there.
    """
    if not argument:
        raise ScpiError(NO_PARAMETER)
    found = list(_LIST.finditer(argument))
    between = _LIST.sub("", argument).replace(" ", "")
    if len(found) != count or between != "," * (count - 1):
        raise ScpiError(SYNTAX)
    return [[int(port) - 1 for port in match[1].split(",")] if match[1] else [] for match in found]


def written(ports: list[int]) -> str:
    """Ports as a list, counted from 1 again."""
    return f"(@{','.join(str(port + 1) for port in ports)})"
