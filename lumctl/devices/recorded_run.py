"""Reads a recording: what the driver was, and its calls in the order in which they ended."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.recorded_calls import MOST_BYTES, SCHEMA, need, signatures
from lumctl.devices.recorded_values import decode, decode_error
from lumctl.devices.types import Capability

_DESCRIBED = 160
"""How many characters of a call an error quotes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One call. ``key`` is the same for the same call; ``line`` is where it stands in its file."""

    call: str
    arguments: Mapping[str, Any]
    key: str
    line: int = 0
    answer: Any = None
    error: Mapping[str, Any] | None = None

    @classmethod
    def asked(cls, call: str, arguments: Mapping[str, Any], **more: Any) -> "Entry":
        """A call with its key."""
        return cls(call, arguments, f"{call} {json.dumps(arguments, sort_keys=True)}", **more)

    def same_call(self, other: "Entry") -> bool:
        """Whether both ask for the same; 60 and 60.0 are."""
        return self.call == other.call and self.arguments == other.arguments

    def result(self) -> Any:
        """Give the answer, or raise the error."""
        if self.error is not None:
            raise decode_error(self.error)
        return decode(self.answer)

    @property
    def described(self) -> str:
        """The call for a message: bounded, and on one line."""
        text = f"{self.call}({', '.join(f'{name}={json.dumps(said)}' for name, said in self.arguments.items())})"
        return text if len(text) <= _DESCRIBED else f"{text[: _DESCRIBED - 1]}…"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What was recorded of one device. ``cut`` says why it ends before the run did, if it does."""

    path: Path = Path()
    capabilities: frozenset[Capability] = frozenset()
    proven: str = ""
    entries: tuple[Entry, ...] = field(default=())
    cut: str = ""


def read_run(path: Path, kind: str, *, most_bytes: int = MOST_BYTES) -> RecordedRun:
    """Read the recording of a driver of one kind. Calls that its capabilities rule out are left out.

    Raises:
        DeviceUnreachableError: it is not there, is no recording, is of another kind, or is too large.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file, kind, most_bytes)
    except OSError as error:
        raise DeviceUnreachableError(f"no recording can be read at {path}: {error.strerror or error}") from error


def _read(path: Path, file: BinaryIO, kind: str, most_bytes: int) -> RecordedRun:
    # A recorder stops at its limit with a short note, which may stand beyond it.
    lines = file.read(most_bytes + 1024).split(b"\n")
    if file.read(1):
        raise DeviceUnreachableError(f"{path} is larger than the {most_bytes} bytes of a recording")
    cut = "its last line is not whole" if lines.pop() else ""
    capabilities: frozenset[Capability] = frozenset()
    proven, entries = "", []
    for number, said in _parsed(path, lines):
        try:
            if "cut" in said:
                cut = str(said["cut"])[:_DESCRIBED]
            elif "schema" in said:
                capabilities, proven = _begun(said, kind)
            elif number == 1:
                raise ValueError("it does not begin as one does")  # noqa: TRY301 - one place says where
            elif need(str(said["call"]), said["arguments"]) in {None, *capabilities}:
                entries.append(_entry(said, kind, number))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise DeviceUnreachableError(f"{path}:{number} is no line of a recording: {error}") from None
    if not lines:
        raise DeviceUnreachableError(f"{path} holds no recording")
    return RecordedRun(path, capabilities, proven, tuple(entries), cut)


def _parsed(path: Path, lines: list[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise DeviceUnreachableError(f"{path}:{number} is no line of a recording")
        yield number, said


def _begun(said: Mapping[str, Any], kind: str) -> tuple[frozenset[Capability], str]:
    if said["schema"] != SCHEMA:
        raise ValueError(f"its schema is {said['schema']!r}, this program reads {SCHEMA!r}")
    if said["kind"] != kind:
        raise ValueError(f"it is of a {said['kind']}, and a {kind} is asked for")
    return frozenset(Capability(each) for each in said["capabilities"]), str(said["proven"])


def _entry(said: Mapping[str, Any], kind: str, line: int) -> Entry:
    """A call that can be played: what does not decode is found now, and not in the middle of a run."""
    call, arguments = str(said["call"]), dict(said["arguments"])
    if call not in signatures(kind):
        raise ValueError(f"a {kind} has no call {call!r}")
    if "error" in said:
        decode_error(said["error"])
        return Entry.asked(call, arguments, line=line, error=said["error"])
    decode(said["answer"])
    return Entry.asked(call, arguments, line=line, answer=said["answer"])
