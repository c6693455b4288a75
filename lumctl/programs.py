"""Programs of the operator's own, such as hooks: run without a shell, ended when they take too long."""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumctl.errors import LumctlError

MOST_SAID_BYTES = 4096
GRACE_S = 2.0
"""Between asking a program to end and ending it."""
_LAST_WORDS_S = 0.2


class NotStartedError(LumctlError):
    """The program is not there, or may not be run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. ``code`` is its exit code, or less than none where a signal ended it.

    ``late``: it was ended by us, with all that it had started. ``said`` is the end of what it printed.
    """

    code: int
    late: bool
    said: str

    @property
    def last_line(self) -> str:
        """The last line that it printed, if any."""
        return next((line.strip() for line in reversed(self.said.splitlines()) if line.strip()), "")


def run_program(
    command: Sequence[str],
    *,
    timeout_s: float,
    given: bytes = b"",
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
    most_said: int = MOST_SAID_BYTES,
    begun: Callable[[subprocess.Popen[bytes]], object] = lambda _: None,
) -> Ended:
    """Run a program to its end. ``given`` is what it reads, ``variables`` are added to our own environment.

    ``begun`` receives the process, so that another thread can end it.

    Of what it prints, the last ``most_said`` bytes are kept.

    What it leaves running in the background is left alone, unless it was late.

    Raises:
        NotStartedError: it could not be started.
    """
    ours, theirs = os.pipe()
    try:
        # The operator's own program, from a command line or the inventory, as a list of words.
        process = subprocess.Popen(  # noqa: S603
            list(command),
            stdin=subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **(variables or {})},
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(ours)
        reason = getattr(error, "strerror", None) or str(error)
        raise NotStartedError(
            f"{command[0]} cannot be run: {reason}", hint="check its path and that it is executable"
        ) from None
    finally:
        os.close(theirs)
    heard = _Heard(ours, most_said)
    begun(process)
    threading.Thread(target=_feed, args=(process, given), name="lumctl-program", daemon=True).start()
    late = False
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        if process.returncode is None:
            end_program(process)
    return Ended(process.returncode, late, heard.text())


def through(prefix: Sequence[str], command: Sequence[str], *, host: str = "") -> list[str]:
    """A command behind a prefix such as ``[ssh, "{host}"]``; what ssh hands on is read by a shell there, and quoted."""
    if not prefix:
        return list(command)
    words = [word.replace("{host}", host) for word in prefix]
    quoted = [shlex.quote(word) for word in command] if Path(words[0]).name == "ssh" else command
    return [*words, *quoted]


def plain(line: str) -> str:
    """A line of somebody else's program, without what would move a terminal's cursor."""
    return "".join(sign for sign in line.strip()[:500] if sign.isprintable())


class _Heard:
    """The end of what is printed. Whatever a program leaves behind may hold its output open: it is not waited for."""

    def __init__(self, pipe: int, most: int) -> None:
        self._pipe, self._most = pipe, most
        self._tail = b""
        self._thread = threading.Thread(target=self._listen, name="lumctl-program", daemon=True)
        self._thread.start()

    def text(self) -> str:
        self._thread.join(_LAST_WORDS_S)
        return self._tail.decode(errors="replace")

    def _listen(self) -> None:
        with os.fdopen(self._pipe, "rb", buffering=0) as pipe:
            while piece := pipe.read(MOST_SAID_BYTES):
                self._tail = (self._tail + piece)[-self._most :]


def _feed(process: subprocess.Popen[bytes], given: bytes) -> None:
    stdin = process.stdin
    if stdin is not None:
        with suppress(OSError), stdin:
            stdin.write(given)


def end_program(process: subprocess.Popen[bytes]) -> None:
    """End a program with its whole group: first asked, then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            break
    # The program has ended; what it started may not have.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
