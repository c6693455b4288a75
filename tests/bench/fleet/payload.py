"""The answer that hosts give: text of a known length in which every line is new each time."""

import base64
import hashlib
import os
from pathlib import Path

LINE_BYTES = 80
"""With its end; about what the tools of a host print."""


def fresh(size: int) -> bytes:
    """``size`` bytes, rounded down to whole lines, of random text: no part of it can be known before."""
    lines = max(1, size // LINE_BYTES)
    text = base64.b64encode(os.urandom(lines * LINE_BYTES))
    return b"".join(text[at * (LINE_BYTES - 1) : (at + 1) * (LINE_BYTES - 1)] + b"\n" for at in range(lines))


def put(path: Path, payload: bytes) -> str:
    """Replace the file in one step; returns the digest that answers are held against."""
    beside = path.with_name("next")
    beside.write_bytes(payload)
    beside.replace(path)
    return digest(payload)


def digest(answer: bytes) -> str:
    """SHA-256 without the ends of the last line: some ways to read a host drop them, as a shell does."""
    return hashlib.sha256(answer.rstrip(b"\r\n")).hexdigest()
