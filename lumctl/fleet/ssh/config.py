"""The SSH client configuration as OpenSSH reads it, with what its ``Include`` lines bring in."""

import re
from collections.abc import Iterator
from pathlib import Path

from lumctl.errors import UsageError

_USER_CONFIG = Path("~/.ssh/config")
_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_DEEPEST = 16
_INCLUDE = re.compile(r"\s*include(?:\s*=\s*|\s+)(.+?)\s*$", re.IGNORECASE)
_BLOCK = re.compile(r"\s*(?:host|match)(?:\s*=\s*|\s+)", re.IGNORECASE)
_EVERYTHING = "Host *"


def where(config_file: Path | None) -> Path:
    """The file to name in a message."""
    return config_file or _USER_CONFIG


def read_config(config_file: Path | None) -> str:
    """The text of one named file, or of the user's and then the system's.

    Raises:
        UsageError: a named file does not exist, a file cannot be read, or files include each other.
    """
    named = [config_file] if config_file else [_USER_CONFIG, _SYSTEM_CONFIG]
    lines: list[str] = []
    for path in named:
        # A block ends with its file, not with the next file's first block.
        lines.append(_EVERYTHING)
        try:
            lines += _expanded(path.expanduser(), 0, _EVERYTHING)
        except FileNotFoundError:
            if config_file:
                raise UsageError(f"SSH client configuration {config_file} does not exist") from None
    return "\n".join(lines) + "\n"


def _expanded(path: Path, depth: int, block: str) -> Iterator[str]:
    """The lines of a file; ``block`` is the line that opened the block in which it is included."""
    if depth > _DEEPEST:
        raise UsageError(f"SSH client configuration {path}: included more than {_DEEPEST} files deep")
    for line in _lines(path):
        if _BLOCK.match(line):
            block = line
        include = _INCLUDE.match(line)
        if include is None:
            yield line
            continue
        for pattern in include[1].split():
            for each in _matching(pattern.strip('"'), path):
                yield from _expanded(each, depth + 1, block)
                # What the included file opened ends with it.
                yield block


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"SSH client configuration {path} cannot be read: {error.strerror}") from None


def _matching(pattern: str, includer: Path) -> list[Path]:
    """The files that a pattern names, as ssh finds them: relative ones beside the user's or the system's file."""
    base = _SYSTEM_CONFIG.parent if includer.is_relative_to(_SYSTEM_CONFIG.parent) else _USER_CONFIG.parent.expanduser()
    full = base / Path(pattern).expanduser()
    return sorted(path for path in Path(full.anchor).glob(str(full.relative_to(full.anchor))) if path.is_file())
