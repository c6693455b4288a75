"""A command on a pseudo terminal of its own, used as a person does: by keys, and by what the screen shows."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from emulated import Emulated
from said import PATIENCE_S


class Terminal:
    """Where the command runs. Every wait is for what is shown, and ends in failure after ``PATIENCE_S``."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], size: tuple[int, int]) -> None:
        columns, lines = size
        self.shown = Emulated(columns, lines)
        self.pressed: list[str] = []
        """Every key that was pressed."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(slave)

    @property
    def lines(self) -> list[str]:
        """What the screen shows."""
        return self.shown.lines

    @property
    def foot(self) -> str:
        """Its last line."""
        return self.lines[-1]

    def see(self, *words: str, without: Sequence[str] = ()) -> None:
        """Wait until the screen shows each of these, and none of ``without``."""

        def are_seen() -> bool:
            text = "\n".join(self.lines)
            return all(word in text for word in words) and not any(word in text for word in without)

        self._until(are_seen, f"{words}, without {without}")

    def see_lines(self, count: int, *words: str) -> None:
        """Wait until so many lines of the screen have each all of these words."""

        def are_seen() -> bool:
            return sum(all(word in line for word in words) for line in self.lines) == count

        self._until(are_seen, f"{count} lines with {words}")

    def press(self, key: str, offered: str, *, anywhere: bool = False) -> None:
        """Press a key, once these words offer it: in the last line of the screen, or ``anywhere`` on it."""

        def is_offered() -> bool:
            return offered in ("\n".join(self.lines) if anywhere else self.foot)

        self._until(is_offered, f"{offered!r}, by which the key is offered")
        os.write(self._master, key.encode())
        self.pressed.append(key)

    def code(self) -> int:
        """The exit code of the command, once it has ended by itself; what it has left behind may keep the terminal."""
        deadline, ended = time.monotonic() + PATIENCE_S, os.pidfd_open(self.process.pid)
        try:
            while True:
                ready = select.select([self._master, ended], [], [], max(0.0, deadline - time.monotonic()))[0]
                assert ready, f"not ended in {PATIENCE_S:g} s:\n" + "\n".join(self.lines)
                if self._master not in ready or not self._read():
                    break
        finally:
            os.close(ended)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """End the command, however far it is."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _until(self, condition: Callable[[], bool], awaited: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            left = deadline - time.monotonic()
            is_ready = left > 0 and select.select([self._master], [], [], left)[0]
            assert is_ready, f"not seen in {PATIENCE_S:g} s: {awaited}\n" + "\n".join(self.lines)
            assert self._read(), f"it has ended; not seen: {awaited}\n" + "\n".join(self.lines)

    def _read(self) -> bool:
        """Take what the terminal shows; whether anybody has its other end."""
        try:
            self.shown.feed(os.read(self._master, 65536))
        except OSError:
            return False
        return True


@contextmanager
def terminal(
    command: Sequence[str], environment: Mapping[str, str], size: tuple[int, int] = (120, 36)
) -> Iterator[Terminal]:
    """A command on a terminal of its own; it is ended at the end, if it has not ended by itself."""
    running = Terminal(command, environment, size)
    try:
        yield running
    finally:
        running.close()
