"""The text of the switch's SCPI: builds port lists for commands, and parses answers into values.

Functions take and return lumctl's ports, which count from 0; in SCPI they count from 1. An invalid answer raises
``ValueError``.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence

MOST_POWERS = 256
"""Most ports that the switch accepts in one query."""
DARK_DBM = -60.0
"""A monitor that shows this or less sees no light; the switch's own low-power alarm begins here."""
QUOTED = 160
"""Most characters of an answer that an error quotes."""

_ERROR = r'([-+]?[0-9]{1,6})\s*,\s*"([^"]*)"'
_ERRORS = re.compile(rf"\s*{_ERROR}(\s*[;,]\s*{_ERROR})*\s*")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_LISTS = re.compile(r"\(@([0-9, ]*)\)\s*,\s*\(@([0-9, ]*)\)")


def port_list(ports: Iterable[int]) -> str:
    """Ports as a list: ``(@1,2,3)``."""
    return f"(@{','.join(str(port + 1) for port in ports)})"


def pair_lists(pairs: Sequence[tuple[int, int]]) -> str:
    """Joins as two lists, the ingress ports and the egress ports: ``(@1,2),(@17,18)``."""
    return f"{port_list(ingress for ingress, _ in pairs)},{port_list(egress for _, egress in pairs)}"


def read_joins(answer: str) -> dict[int, int]:
    """Parse joins from two lists; ``(@),(@)`` means no join."""
    match = _LISTS.fullmatch(answer)
    if match is None:
        raise ValueError(answer)
    ingress, egress = (_ports(text) for text in match.groups())
    joins = dict(zip(ingress, egress, strict=True))
    if len({*ingress, *egress}) != 2 * len(ingress):
        raise ValueError("a port is connected twice")
    return joins


def read_size(answer: str) -> tuple[int, int]:
    """The number of ports, and how many of them are inputs; ``N,0`` is an any-to-any switch: all ports are inputs."""
    inputs, outputs = (int(part) if part.strip().isdecimal() else -1 for part in answer.split(","))
    if inputs < 1 or outputs < 0:
        raise ValueError(answer)
    return inputs + outputs, inputs


def read_identity(answer: str) -> str:
    """The four fields of ``*IDN?`` as one line."""
    maker, model, serial, version = (part.strip() for part in answer.split(","))
    return f"{maker} {model}, serial {serial}, firmware {version}"


def read_states(count: int) -> Callable[[str], list[str]]:
    """Make a parser of ``(D,E,F)`` for ``count`` ports: disabled, enabled, failed."""

    def read(answer: str) -> list[str]:
        states = _items(answer, count)
        if not set(states) <= set("DEF"):
            raise ValueError(answer)
        return states

    return read


def read_powers(count: int) -> Callable[[str], list[float]]:
    """Make a parser of ``(-3.2,-60.0)`` for ``count`` ports, in dBm; ``-inf`` for no light."""

    def read(answer: str) -> list[float]:
        items = _items(answer, count)
        if not all(_NUMBER.fullmatch(item) for item in items):
            raise ValueError(answer)
        return [power if (power := float(item)) > DARK_DBM else -math.inf for item in items]

    return read


def complaint(answer: str) -> str:
    """The contents of the error queue, as text; empty for ``0,"No error"``."""
    if _ERRORS.fullmatch(answer) is None:
        raise ValueError(answer)
    found = ((int(code), text) for code, text in re.findall(_ERROR, answer))
    return quoted("; ".join(f"{code} {text}" for code, text in found if code != 0))


def without_done(answer: str) -> str | None:
    """The answer without the ``1`` that answers ``*OPC?`` at its end; ``None`` if it does not end so."""
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
