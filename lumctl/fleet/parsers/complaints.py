"""What a tool says against what it was asked, found among warnings that are none of its business."""

import re

from lumctl.devices.formats.complaint import COMMAND_NOT_FOUND, first_line, is_denial

_NO_MATTER = re.compile(
    r"\s*(?:sudo: unable to resolve host|sudo: .*: (?:Name or service not known|Temporary failure)"
    r"|\S*sh: warning: setlocale|perl: warning|WARNING:|\S+ \[(?:WARN|INFO|DEBUG)/)",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"(?:sudo|env|\S{0,100}sh): .*(?:not found|no such file or directory)\s*$", re.IGNORECASE)


def said_in(text: str) -> str:
    """The line of a failed answer that tells why: a refusal before all else, and a warning only if there is no other.

    It is bounded and printable.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    denial = next((line for line in lines if is_denial(line)), None)
    telling = next((line for line in lines if not _NO_MATTER.match(line)), None)
    return first_line(denial or telling or text)


def is_harmless(text: str) -> bool:
    """Whether a text says nothing at all, or only warns."""
    return all(not line.strip() or _NO_MATTER.match(line) for line in text.splitlines())


def is_missing_tool(status: int, said: str) -> bool:
    """Whether a host does not have the tool: by the exit status of its shell, or by the words of shell or sudo."""
    return status == COMMAND_NOT_FOUND or _NOT_FOUND.match(said) is not None
