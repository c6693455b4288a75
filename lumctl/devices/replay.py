"""Drivers that answer from a recording: ``replay-mesh``, ``replay-switch``, ``replay-transponder``, ``replay-power``.

The recording is the file in the context's address (``replay:PATH``) or, with ``$LUMCTL_RECORDINGS``, the device's file
in that folder. Calls that change the device must come in the recorded order. Between two of them there may be any
number of reads: each gets the next answer recorded there, or the last one again if there is no next one. A call that
was not recorded is refused; the error names the first difference.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recorded_calls import (
    MOST_BYTES,
    SCHEMA,
    WRITES,
    bound,
    forwarding,
    need,
    recording_path,
    signatures,
)
from lumctl.devices.recorded_values import decode, decode_error, encode
from lumctl.devices.types import Capability

_DESCRIBED = 160
"""Maximum length of a call that an error quotes, in characters."""


@dataclass(frozen=True, slots=True)
class ReplayEntry:
    """One call. ``key`` is equal for equal calls; ``line`` is its line in the file."""

    call: str
    arguments: Mapping[str, Any]
    key: str
    line: int = 0
    answer: Any = None
    error: Mapping[str, Any] | None = None

    @classmethod
    def asked(cls, call: str, arguments: Mapping[str, Any], **more: Any) -> "ReplayEntry":
        """A call with its key."""
        return cls(call, arguments, f"{call} {json.dumps(arguments, sort_keys=True)}", **more)

    def same_call(self, other: "ReplayEntry") -> bool:
        """Whether both are the same call with equal arguments; 60 equals 60.0."""
        return self.call == other.call and self.arguments == other.arguments

    def result(self) -> Any:
        """Return the recorded answer, or raise the recorded error."""
        if self.error is not None:
            raise decode_error(self.error)
        return decode(self.answer)

    @property
    def described(self) -> str:
        """The call as text for a message: shortened, and on one line."""
        text = f"{self.call}({', '.join(f'{name}={json.dumps(said)}' for name, said in self.arguments.items())})"
        return text if len(text) <= _DESCRIBED else f"{text[: _DESCRIBED - 1]}…"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The recording of one device. ``cut`` is the reason if it ends before the run did; otherwise empty."""

    path: Path = Path()
    capabilities: frozenset[Capability] = frozenset()
    proven: str = ""
    entries: tuple[ReplayEntry, ...] = field(default=())
    cut: str = ""


def read_run(path: Path, kind: str, *, most_bytes: int = MOST_BYTES) -> RecordedRun:
    """Read the recording of a driver of one kind. Calls that need an undeclared capability are omitted.

    Raises:
        DeviceUnreachableError: the file does not exist, is not a recording, is of another kind, or is too large.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file, kind, most_bytes)
    except OSError as error:
        raise DeviceUnreachableError(f"cannot read a recording at {path}: {error.strerror or error}") from error


def _read(path: Path, file: BinaryIO, kind: str, most_bytes: int) -> RecordedRun:
    # A recorder stops at its limit with a short note, which may be beyond it.
    lines = file.read(most_bytes + 1024).split(b"\n")
    if file.read(1):
        raise DeviceUnreachableError(f"{path} exceeds the {most_bytes} bytes of a recording")
    # Each line ends with a line break, so the last piece is empty unless the recording was cut off.
    cut = "its last line is incomplete" if lines.pop() else ""
    capabilities: frozenset[Capability] = frozenset()
    proven, entries = "", []
    for number, said in _parsed(path, lines):
        try:
            if "cut" in said:
                cut = str(said["cut"])[:_DESCRIBED]
            # On any line, because a driver that is opened again describes itself again in the same file.
            elif "schema" in said:
                capabilities, proven = _begun(said, kind)
            elif number == 1:
                raise ValueError("its first line is not the header of a recording")  # noqa: TRY301 - one place says where
            elif need(str(said["call"]), said["arguments"]) in {None, *capabilities}:
                entries.append(_entry(said, kind, number))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise DeviceUnreachableError(f"{path}:{number} is not a line of a recording: {error}") from None
    if not lines:
        raise DeviceUnreachableError(f"{path} contains no recording")
    return RecordedRun(path, capabilities, proven, tuple(entries), cut)


def _parsed(path: Path, lines: list[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise DeviceUnreachableError(f"{path}:{number} is not a line of a recording")
        yield number, said


def _begun(said: Mapping[str, Any], kind: str) -> tuple[frozenset[Capability], str]:
    if said["schema"] != SCHEMA:
        raise ValueError(f"its schema is {said['schema']!r}, but this program reads {SCHEMA!r}")
    if said["kind"] != kind:
        raise ValueError(f"it recorded a {said['kind']}, but a {kind} is needed")
    return frozenset(Capability(each) for each in said["capabilities"]), str(said["proven"])


def _entry(said: Mapping[str, Any], kind: str, line: int) -> ReplayEntry:
    """A call from its line; decoding is tried now, so that an error is not found in the middle of a run."""
    call, arguments = str(said["call"]), dict(said["arguments"])
    if call not in signatures(kind):
        raise ValueError(f"a {kind} has no call {call!r}")
    if "error" in said:
        decode_error(said["error"])
        return ReplayEntry.asked(call, arguments, line=line, error=said["error"])
    decode(said["answer"])
    return ReplayEntry.asked(call, arguments, line=line, answer=said["answer"])


SCHEME = "replay:"
FOLDER = "LUMCTL_RECORDINGS"


class _Replay:
    """One device as it was recorded. A recording that cannot be read is reported by the first call."""

    api_version: ClassVar[int] = 1
    kind: ClassVar[str]
    capabilities: frozenset[Capability] = frozenset()
    proven: str = "replay of a recording"

    def __init_subclass__(cls) -> None:
        calls = forwarding(cls.kind, lambda self, name, args, kwargs: self._play(name, args, kwargs))
        for name, call in calls.items():
            setattr(cls, name, call)

    def __init__(self, context: DriverContext) -> None:
        """Read the recording; no device is contacted."""
        self.context = context
        self._lock = threading.Lock()
        self._at = 0
        self._newest: dict[str, ReplayEntry] = {}
        self._unread: DeviceError | None = None
        try:
            self._run = read_run(_place(self.kind, context), self.kind)
        except DeviceError as error:
            self._unread, self._run = error, RecordedRun()
        self.capabilities = self._run.capabilities
        self.proven = f"replay of: {self._run.proven}" if self._run.proven else type(self).proven

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _play(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        arguments = bound(self.kind, name, args, kwargs)
        if self._unread is not None:
            # A new error each time: one that is raised again would gather the tracebacks of all calls.
            raise type(self._unread)(self._unread.message, hint=self._unread.hint)
        needed = need(name, arguments)
        if needed is not None and needed not in self.capabilities:
            raise UnsupportedError(f"{self.context.device}: the driver in its recording lacks {needed}")
        asked = ReplayEntry.asked(name, {key: encode(value) for key, value in arguments.items()})
        with self._lock:
            found = self._written(asked) if name in WRITES else self._read(asked)
        return found.result()

    def _written(self, asked: ReplayEntry) -> ReplayEntry:
        """The next recorded change, which must be this call; earlier readings are not used after it."""
        at = self._next_write()
        if at == len(self._run.entries) or not self._run.entries[at].same_call(asked):
            raise self._differs(asked, at)
        self._at = at + 1
        self._newest.clear()
        return self._run.entries[at]

    def _read(self, asked: ReplayEntry) -> ReplayEntry:
        # Not beyond the next change: the answers after it are about another state.
        for at in range(self._at, self._next_write()):
            entry = self._run.entries[at]
            if entry.same_call(asked):
                for passed in self._run.entries[self._at : at + 1]:
                    self._newest[passed.key] = passed
                self._at = at + 1
                return entry
        if asked.key not in self._newest:
            raise self._differs(asked, self._at)
        return self._newest[asked.key]

    def _next_write(self) -> int:
        entries = self._run.entries
        return next((at for at in range(self._at, len(entries)) if entries[at].call in WRITES), len(entries))

    def _differs(self, asked: ReplayEntry, at: int) -> DeviceRefusedError:
        """The error for a call that differs from the call recorded at this place."""
        if at < len(self._run.entries):
            entry = self._run.entries[at]
            instead = f"line {entry.line} has {entry.described}"
        else:
            instead = f"the recording ends there{f' ({self._run.cut})' if self._run.cut else ''}"
        return DeviceRefusedError(
            f"{self.context.device}: replay was called with {asked.described}, but {instead}",
            hint=f"a replay answers only the calls that were made when {self._run.path} was recorded",
        )


class ReplayMesh(_Replay):
    """A mesh as it was recorded."""

    kind: ClassVar[str] = "mesh"


class ReplaySwitch(_Replay):
    """A switch as it was recorded."""

    kind: ClassVar[str] = "switch"


class ReplayTransponder(_Replay):
    """A transponder as it was recorded."""

    kind: ClassVar[str] = "transponder"


class ReplayPower(_Replay):
    """A machine's electrical power as it was recorded."""

    kind: ClassVar[str] = "power"


def _place(kind: str, context: DriverContext) -> Path:
    if context.address.startswith(SCHEME):
        return recording_path(kind, Path(context.address.removeprefix(SCHEME)), context)
    folder = os.environ.get(FOLDER)
    if not folder:
        raise DeviceUnreachableError(
            f"{context.device}: the path of its recording is not set",
            hint=f"name the folder of recordings: ${FOLDER}",
        )
    return recording_path(kind, Path(folder), context)
