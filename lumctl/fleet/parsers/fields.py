"""Read numbers from cells such as ``81559 MiB``, ``-2 C``, ``16x`` or ``N/A``, and PCI addresses and complaints."""

import re

from lumctl.devices.formats.complaint import COMMAND_NOT_FOUND, first_line, is_denial

# The length is bounded because a damaged answer may hold any number of digits, which may overflow to infinity.
_LEADING_NUMBER = re.compile(r"\s*(-?[0-9]{1,18}(?:\.[0-9]{1,9})?)(?![0-9])")
_WHOLE_COUNT = re.compile(r"\s*([0-9]{1,20})\s*")
_MOST_COUNTED = 2**64 - 1


def leading_float(cell: str | None) -> float | None:
    """The number at the start of a cell, without the unit; ``None`` for ``N/A`` and the like."""
    found = _LEADING_NUMBER.match(cell) if cell else None
    return float(found[1]) if found else None


def leading_int(cell: str | None) -> int | None:
    """The number at the start of a cell, without its fraction; ``None`` if there is none."""
    found = _LEADING_NUMBER.match(cell) if cell else None
    return int(found[1].partition(".")[0]) if found else None


def whole_count(cell: str | None) -> int | None:
    """A counter of the kernel; ``None`` unless the cell is only digits and fits into 64 bits."""
    found = _WHOLE_COUNT.fullmatch(cell) if cell else None
    count = int(found[1]) if found else _MOST_COUNTED + 1
    return count if count <= _MOST_COUNTED else None


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    return [line.removesuffix("\r") for line in text.split("\n")]


_ADDRESS = re.compile(
    r"(?<![0-9a-f])(?P<domain>[0-9a-f]{8}|[0-9a-f]{4,5}):(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})"
    r"(?:\.(?P<function>[0-7]))?(?![0-9a-f])",
    re.IGNORECASE,
)


def find_pci(text: str) -> str | None:
    """The first PCI address in a text, in lumctl's form ``0000:9b:00.0``; ``None`` if there is none."""
    return _written(_ADDRESS.search(text))


def whole_pci(text: str) -> str | None:
    """A text that is nothing but a PCI address, in lumctl's form; ``None`` for any other text."""
    return _written(_ADDRESS.fullmatch(text.strip()))


def _written(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    domain = f"{int(found['domain'], 16):04x}"
    return f"{domain}:{found['bus']}:{found['device']}.{found['function'] or 0}".lower()


_NO_MATTER = re.compile(
    r"\s*(?:sudo: unable to resolve host|sudo: .*: (?:Name or service not known|Temporary failure)"
    r"|\S*sh: warning: setlocale|perl: warning|WARNING:|\S+ \[(?:WARN|INFO|DEBUG)/)",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"(?:sudo|env|\S{0,100}sh): .*(?:not found|no such file or directory)\s*$", re.IGNORECASE)


def said_in(text: str) -> str:
    """The line of a failed answer that states the reason: a refusal if any, a warning only if there is no other line.

    The line is bounded and printable.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    denial = next((line for line in lines if is_denial(line)), None)
    telling = next((line for line in lines if not _NO_MATTER.match(line)), None)
    return first_line(denial or telling or text)


def is_harmless(text: str) -> bool:
    """Whether a text is empty, or has only warnings."""
    return all(not line.strip() or _NO_MATTER.match(line) for line in text.splitlines())


def is_missing_tool(status: int, said: str) -> bool:
    """Whether a host lacks the tool, judged by the shell's exit status or by the message of the shell or sudo."""
    return status == COMMAND_NOT_FOUND or _NOT_FOUND.match(said) is not None
