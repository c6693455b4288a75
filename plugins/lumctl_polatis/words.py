"""The words of the switch's SCPI: lists of ports as they are sent, and its answers as values.

Ports are the program's own here, which count from 0; on the line they count from 1. What cannot be read as what it
should be is a ``ValueError``.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence

MOST_POWERS = 256
"""Ports of one query: the switch takes no more at once."""
DARK_DBM = -60.0
"""A monitor that shows this or less sees no light: it is where the switch's own alarm for low power begins."""
QUOTED = 160
"""How many characters of an answer an error quotes."""

_ERROR = r'([-+]?[0-9]{1,6})\s*,\s*"([^"]*)"'
_ERRORS = re.compile(rf"\s*{_ERROR}(\s*[;,]\s*{_ERROR})*\s*")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_LISTS = re.compile(r"\(@([0-9, ]*)\)\s*,\s*\(@([0-9, ]*)\)")


def port_list(ports: Iterable[int]) -> str:
    """Ports as a list: ``(@1,2,3)``."""
    return f"(@{','.join(str(port + 1) for port in ports)})"


def pair_lists(pairs: Sequence[tuple[int, int]]) -> str:
    """Joins as two lists, of their ingress and of their egress ports: ``(@1,2),(@17,18)``."""
    return f"{port_list(ingress for ingress, _ in pairs)},{port_list(egress for _, egress in pairs)}"


def read_joins(answer: str) -> dict[int, int]:
    """Joins from two lists; ``(@),(@)`` is none."""
    match = _LISTS.fullmatch(answer)
    if match is None:
        raise ValueError(answer)
    ingress, egress = (_ports(text) for text in match.groups())
    joins = dict(zip(ingress, egress, strict=True))
    if len({*ingress, *egress}) != 2 * len(ingress):
        raise ValueError("a port is joined twice")
    return joins


def read_size(answer: str) -> tuple[int, int]:
    """How many ports there are, and how many of them are inputs: of ``N,0``, any-to-any, all."""
    inputs, outputs = (int(part) if part.strip().isdecimal() else -1 for part in answer.split(","))
    if inputs < 1 or outputs < 0:
        raise ValueError(answer)
    return inputs + outputs, inputs


def read_identity(answer: str) -> str:
    """The four fields of ``*IDN?`` as one line."""
    maker, model, serial, version = (part.strip() for part in answer.split(","))
    return f"{maker} {model}, serial {serial}, firmware {version}"


def read_states(count: int) -> Callable[[str], list[str]]:
    """Reads ``(D,E,F)`` for so many ports: disabled, enabled, failed."""

    def read(answer: str) -> list[str]:
        states = _items(answer, count)
        if not set(states) <= set("DEF"):
            raise ValueError(answer)
        return states

    return read


def read_powers(count: int) -> Callable[[str], list[float]]:
    """Reads ``(-3.2,-60.0)`` for so many ports, in dBm; what is as good as nothing is ``-inf``."""

    def read(answer: str) -> list[float]:
        items = _items(answer, count)
        if not all(_NUMBER.fullmatch(item) for item in items):
            raise ValueError(answer)
        return [power if (power := float(item)) > DARK_DBM else -math.inf for item in items]

    return read


def complaint(answer: str) -> str:
    """What the error queue holds, as text; empty for ``0,"No error"``."""
    if _ERRORS.fullmatch(answer) is None:
        raise ValueError(answer)
    found = ((int(code), text) for code, text in re.findall(_ERROR, answer))
    return quoted("; ".join(f"{code} {text}" for code, text in found if code != 0))


def without_done(answer: str) -> str | None:
    """What stands before the ``1`` by which ``*OPC?`` is answered; ``None`` if there is no such end."""
    before, _, last = answer.rpartition(";")
    return before if last.strip() in {"1", "+1"} else None


def quoted(text: str, *, most: int = QUOTED) -> str:
    """Text as an error quotes it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _ports(text: str) -> list[int]:
    ports = [int(part) - 1 for part in text.split(",")] if text.strip() else []
    if any(port < 0 for port in ports):
        raise ValueError(text)
    return ports


def _items(answer: str, count: int) -> list[str]:
    items = [item.strip() for item in answer.removeprefix("(").removesuffix(")").split(",")]
    if len(items) != count:
        raise ValueError(answer)
    return items
