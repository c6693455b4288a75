"""Runs the operator's own programs, such as hooks: without a shell, and with a time limit."""

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
"""Seconds between SIGTERM and SIGKILL."""
_LAST_WORDS_S = 0.2


class NotStartedError(LumctlError):
    """The program does not exist, or may not be run."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. ``code`` is its exit code, negative if a signal ended it.

    ``late``: lumctl ended it at its time limit, with everything that it had started. ``said`` is the end of its output.
    """

    code: int
    late: bool
    said: str

    @property
    def last_line(self) -> str:
        """The last line that the program printed, if any."""
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
    """Run a program to its end. ``given`` is its standard input; ``variables`` are added to our own environment.

    ``begun`` receives the process, so that another thread can end it.

    The last ``most_said`` bytes of its output are kept.

    Processes that it leaves in the background keep running, unless the program was late.

    Raises:
        NotStartedError: the program could not be started.
    """
    # Not ``communicate()``: it would wait for processes that the program leaves in the background.
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
            # Ctrl-C on the terminal then does not reach the program, and end_program() can end its whole group.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(ours)
        reason = getattr(error, "strerror", None) or str(error)
        raise NotStartedError(
            f"{command[0]} cannot be run: {reason}", hint="check its path and that it is executable"
        ) from None
    finally:
        # Otherwise the reader would never see the end of the output: this process itself would hold it open.
        os.close(theirs)
    heard = _Heard(ours, most_said)
    begun(process)
    # In a thread: a program that does not read its input must not outlast its time limit.
    threading.Thread(target=_feed, args=(process, given), name="lumctl-program", daemon=True).start()
    late = False
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        # Late, or Ctrl-C: in neither case may the program outlive this call.
        if process.returncode is None:
            end_program(process)
    return Ended(process.returncode, late, heard.text())


def through(prefix: Sequence[str], command: Sequence[str], *, host: str = "") -> list[str]:
    """A command after a prefix such as ``[ssh, "{host}"]``; after ssh it is quoted, because a remote shell reads it."""
    if not prefix:
        return list(command)
    words = [word.replace("{host}", host) for word in prefix]
    quoted = [shlex.quote(word) for word in command] if Path(words[0]).name == "ssh" else command
    return [*words, *quoted]


def plain(line: str) -> str:
    """A line of a program's output, without characters that could move a terminal's cursor."""
    return "".join(sign for sign in line.strip()[:500] if sign.isprintable())


class _Heard:
    """The end of a program's output. Processes that it leaves behind may hold the output open; they are not awaited."""

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
    """End a program with its whole process group: with SIGTERM, then with SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            # The program leads its group (``start_new_session``), so its PID is the group's id.
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            break
    # The program has ended; processes that it started may not have.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
