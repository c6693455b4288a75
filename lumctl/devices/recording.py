"""Writes down what a driver is asked and what it answers, for :mod:`lumctl.devices.replay` to answer from.

A recording is a file of JSON lines: what the driver is, then each call with its arguments, its answer or error, and
when it began. The secret of the device's login, wherever a device might repeat it, is left out.
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
from lumctl.devices.recorded_calls import MOST_BYTES, SCHEMA, bound, signatures
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
    """The same driver, each call of which is written to ``path`` (private, made if it is not there) once it has ended.

    A driver that is opened again continues in the same file. A recording that reaches ``most_bytes``, or cannot be
    written any more, ends with a note of it where that fits; the driver continues as if nothing were.

    Raises:
        RefusedError: ``path`` cannot be written, or others may read it.
    """
    about = {
        "api_version": driver.api_version,
        "kind": driver.kind,
        "capabilities": driver.capabilities,
        "proven": driver.proven,
    }
    calls = {name: _call(name) for name in signatures(driver.kind)}
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
    """A driver around a driver. The calls of its kind are put in by :func:`record`."""

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


def _call(name: str) -> Callable[..., Any]:
    def call(self: _Recorder, *args: Any, **kwargs: Any) -> Any:
        return self._recorded(name, args, kwargs)

    return call


class Tape:
    """The file of a recording. Lines are whole, or the last of it."""

    def __init__(self, path: Path, secret: str, most_bytes: int) -> None:
        self._secret = secret
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RefusedError(f"no recording can be written to {path}: {error.strerror}") from error
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
            os.close(self._file)
            raise RefusedError(f"{path} is no file that only you can read", hint="name one that is not there yet")
        self._size = found.st_size
        self._open = True

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line, if the recording still continues."""
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
            # The disk is full, say. What follows would be a recording with a hole in it.
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
