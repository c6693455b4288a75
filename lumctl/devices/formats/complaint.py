"""What a host says when a command fails, fit for a message."""

COMMAND_NOT_FOUND = 127
"""Exit status of a shell that has no such command."""

_DENIALS = (
    "permission denied",
    "insufficient permissions",
    "operation not permitted",
    "password is required",
    "may not run",
    "not allowed to",
)
_LONGEST = 200


def first_line(text: str) -> str:
    """The first line that says something, bounded and printable: a host is not trusted with our terminal."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return "".join(character for character in line if character.isprintable()).strip()[:_LONGEST]


def is_denial(line: str) -> bool:
    """Whether a complaint is about missing rights, from the kernel, a tool or sudo."""
    return any(words in line.lower() for words in _DENIALS)
