"""Records the calls and answers of a driver; :mod:`lumctl.devices.replay` answers from a recording.

A recording is a file of JSON lines: a description of the driver, then each call with its arguments, its answer or
error, and its start time. The secret of the device's login is removed, even if a device repeats it.
"""

import json
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from lumctl.devices.errors import DeviceLoginError
from lumctl.devices.logins import Login
from lumctl.devices.protocols import Driver
from lumctl.devices.recorded_calls import MOST_BYTES, SCHEMA, bound, forwarding
from lumctl.devices.recorded_values import encode, encode_error
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError

D = TypeVar("D", bound=Driver)
_HIDDEN = "(secret)"


def record(
    driver: D,
    path: Path,
    *,
    device: str = "",
    login: Login | None = None,
    most_bytes: int = MOST_BYTES,
    now: Callable[[], float] = time.time,
    clock: Callable[[], float] = time.monotonic,
) -> D:
    """The same driver, with each call written to ``path`` when it ends; a new file is readable by its owner only.

    A driver that is opened again continues in the same file. A recording that reaches ``most_bytes``, or can no longer
    be written, ends, if possible with a note of the reason; the driver continues to work.

    Raises:
        RefusedError: ``path`` cannot be written, or other users may read it.
    """
    about = {
        "api_version": driver.api_version,
        "kind": driver.kind,
        "capabilities": driver.capabilities,
        "proven": driver.proven,
    }
    calls = forwarding(driver.kind, lambda self, name, args, kwargs: self._recorded(name, args, kwargs))
    tape = Tape(path, _secret(login), min(most_bytes, MOST_BYTES))
    tape.write(
        {
            "schema": SCHEMA,
            **about,
            "capabilities": sorted(driver.capabilities),
            "device": device,
            "started_at": now(),
        }
    )
    made = type(f"Recorded{type(driver).__name__}", (_Recorder,), about | calls)
    return cast("D", made(driver, tape, clock))


class _Recorder:
    """A driver that wraps another. :func:`record` adds the calls of its kind."""

    kind: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]

    def __init__(self, driver: Driver, tape: "Tape", clock: Callable[[], float]) -> None:
        self._driver = driver
        self._tape = tape
        self._clock = clock
        self._started = clock()

    def close(self) -> None:
        """Close the driver and the recording; a second call does nothing."""
        self._driver.close()
        self._tape.close()

    def _recorded(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        asked = {key: encode(value) for key, value in bound(self.kind, name, args, kwargs).items()}
        began = self._clock()
        line = {"at": round(began - self._started, 6), "call": name, "arguments": asked}
        try:
            answer = getattr(self._driver, name)(*args, **kwargs)
        except Exception as error:
            self._tape.write(line | self._took(began) | {"error": encode_error(error)})
            raise
        self._tape.write(line | self._took(began) | {"answer": encode(answer)})
        return answer

    def _took(self, began: float) -> dict[str, float]:
        return {"took": round(self._clock() - began, 6)}


class Tape:
    """The file of a recording. Only its last line may be incomplete."""

    def __init__(self, path: Path, secret: str, most_bytes: int) -> None:
        self._secret = secret
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        try:
            # No link is followed: in a folder of several users it could lead to another file of ours.
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RefusedError(f"cannot write a recording to {path}: {error.strerror}") from error
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
            os.close(self._file)
            raise RefusedError(
                f"{path} is not a file that only you can read", hint="use a path that does not exist yet"
            )
        self._size = found.st_size
        self._open = True

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line, unless the recording has ended."""
        # The secret is removed before encoding, because JSON may escape its characters.
        text = json.dumps(_without(self._secret, line), separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if not self._open:
                return
            if self._size + len(text) > self._most_bytes:
                text = json.dumps({"cut": f"the recording has reached {self._most_bytes} bytes"}).encode() + b"\n"
                self._put(text)
                self._end()
                return
            self._put(text)

    def close(self) -> None:
        """End the recording; a second call does nothing."""
        with self._lock:
            self._end()

    def _put(self, text: bytes) -> None:
        try:
            written = os.write(self._file, text)
        except OSError:
            written = 0
        self._size += written
        if written < len(text):
            # For example, the disk is full. Further lines would make a recording with a gap.
            self._end()

    def _end(self) -> None:
        if self._open:
            self._open = False
            os.close(self._file)


def _secret(login: Login | None) -> str:
    if login is None or not login.has_secret:
        return ""
    try:
        return login.secret()
    # A secret that we cannot read cannot occur in a call either.
    except DeviceLoginError:
        return ""


def _without(secret: str, said: Any) -> Any:
    if not secret:
        return said
    if isinstance(said, str):
        return said.replace(secret, _HIDDEN)
    if isinstance(said, Mapping):
        return {key: _without(secret, item) for key, item in said.items()}
    return [_without(secret, item) for item in said] if isinstance(said, list | tuple) else said
