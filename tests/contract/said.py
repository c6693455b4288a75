"""What a program says on one of its streams, line by line as it comes, and waiting for a line of it."""

import threading
from collections.abc import Callable
from typing import IO

PATIENCE_S = 40.0
"""For a loaded machine; what is awaited comes within two beats."""


class Said:
    """Reads a stream to its end in a thread; ``kept`` makes what is kept of each line."""

    def __init__(self, stream: IO[str], kept: Callable[[str], str] = str) -> None:
        self.lines: list[str] = []
        self._stream, self._kept = stream, kept
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def hear(self, *words: str, after: int = 0) -> str:
        """The first line with all these words, once it has been said; ``after`` leaves out so many lines."""

        def heard() -> str | None:
            return next((line for line in self.lines[after:] if all(word in line for word in words)), None)

        with self._news:
            found = self._news.wait_for(heard, PATIENCE_S)
        assert found, f"{words} in {self.lines}"
        return found

    def end(self) -> None:
        """Wait for the end of the stream, which its program closes."""
        self._reader.join()
        self._stream.close()

    def _read(self) -> None:
        for line in self._stream:
            with self._news:
                self.lines.append(self._kept(line.rstrip()))
                self._news.notify()
