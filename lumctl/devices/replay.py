"""Drivers that answer from a recording: ``replay-mesh``, ``replay-switch``, ``replay-transponder``, ``replay-power``.

Their recording is the file of ``replay:PATH`` in the context's address, or, with ``$LUMCTL_RECORDINGS``, the device's
own in that folder. Calls that change the device must come as they were recorded, one after the other. Between two of
them, reads may come in any number: each gets the next answer that was recorded there, and the newest again where there
is no next one. What was not recorded is refused with the first difference.
"""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.recorded_calls import WRITES, bound, need, recording_path, signatures
from lumctl.devices.recorded_run import Entry, RecordedRun, read_run
from lumctl.devices.recorded_values import encode
from lumctl.devices.types import Capability

SCHEME = "replay:"
FOLDER = "LUMCTL_RECORDINGS"


class _Replay:
    """One device as it was recorded. A recording that cannot be read is reported by the first call."""

    api_version: ClassVar[int] = 1
    kind: ClassVar[str]
    capabilities: frozenset[Capability] = frozenset()
    proven: str = "replay of a recording"

    def __init_subclass__(cls) -> None:
        for name in signatures(cls.kind):
            setattr(cls, name, _call(name))

    def __init__(self, context: DriverContext) -> None:
        """Read the recording; there is no device to be contacted."""
        self.context = context
        self._lock = threading.Lock()
        self._at = 0
        self._newest: dict[str, Entry] = {}
        self._unread: DeviceError | None = None
        try:
            self._run = read_run(_place(self.kind, context), self.kind)
        except DeviceError as error:
            self._unread, self._run = error, RecordedRun()
        self.capabilities = self._run.capabilities
        self.proven = f"replay of: {self._run.proven}" if self._run.proven else type(self).proven

    def close(self) -> None:
        """Do nothing: nothing is held."""

    def _play(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        arguments = bound(self.kind, name, args, kwargs)
        if self._unread is not None:
            raise type(self._unread)(self._unread.message, hint=self._unread.hint)
        needed = need(name, arguments)
        if needed is not None and needed not in self.capabilities:
            raise UnsupportedError(f"{self.context.device}: its recording is of a driver without {needed}")
        asked = Entry.asked(name, {key: encode(value) for key, value in arguments.items()})
        with self._lock:
            found = self._written(asked) if name in WRITES else self._read(asked)
        return found.result()

    def _written(self, asked: Entry) -> Entry:
        """The next change that was recorded, if it is this one; it makes every earlier reading an old one."""
        at = self._next_write()
        if at == len(self._run.entries) or not self._run.entries[at].same_call(asked):
            raise self._differs(asked, at)
        self._at = at + 1
        self._newest.clear()
        return self._run.entries[at]

    def _read(self, asked: Entry) -> Entry:
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

    def _differs(self, asked: Entry, at: int) -> DeviceRefusedError:
        """The error of a call that is not the recorded one at this place."""
        if at < len(self._run.entries):
            entry = self._run.entries[at]
            instead = f"line {entry.line} has {entry.described}"
        else:
            instead = f"there the recording ends{f' ({self._run.cut})' if self._run.cut else ''}"
        return DeviceRefusedError(
            f"{self.context.device}: asked for {asked.described}, and {instead}",
            hint=f"a replay answers only what was asked when {self._run.path} was recorded",
        )


def _call(name: str) -> Callable[..., Any]:
    def call(self: _Replay, *args: Any, **kwargs: Any) -> Any:
        return self._play(name, args, kwargs)

    return call


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
            f"{context.device}: it is not said where its recording lies",
            hint=f"name the folder of recordings: ${FOLDER}",
        )
    return recording_path(kind, Path(folder), context)
