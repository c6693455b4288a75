"""Error output of commands on a host, made suitable for a message."""

COMMAND_NOT_FOUND = 127
"""Exit status of a shell if the command does not exist."""

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
    """The first line that is not empty, shortened and made printable: a host must not control our terminal."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return "".join(character for character in line if character.isprintable()).strip()[:_LONGEST]


def is_denial(line: str) -> bool:
    """Whether an error line of the kernel, a tool or sudo is about missing rights."""
    return any(words in line.lower() for words in _DENIALS)
