"""Long output on a terminal goes through a pager, as in git: ``$PAGER``, else ``less`` if it is installed.

No pager is used if a program reads the output, if the output fits the screen, or if ``PAGER`` is empty or ``cat``.
"""

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress

LESS = "FRX"
"""Options of ``less`` unless ``$LESS`` is set: quit if the text fits, show colours, keep the screen's content."""


class TerminalText(io.StringIO):
    """Collects text that is formatted as for a terminal."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the terminal itself."""
        return self._encoding

    def isatty(self) -> bool:
        """True, so that colours and widths are those of a terminal."""
        return True


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """The words of the pager's command; empty if no pager is usable or the terminal cannot show colours.

    A ``$PAGER`` that cannot be parsed or is not installed is ignored, so that the output is still printed.
    """
    if environment.get("TERM", "dumb") == "dumb":
        return []
    try:
        words = shlex.split(environment.get("PAGER", "less"))
    except ValueError:
        return []
    if not words or words == ["cat"] or shutil.which(words[0]) is None:
        return []
    return words


@contextmanager
def paged() -> Iterator[None]:
    """Collect what the block prints on stdout, and show it through the pager if it is longer than the screen.

    Output on stderr appears at once. The block's errors and exit codes are kept.
    """
    command = pager_command(os.environ) if sys.stdout.isatty() and sys.stdin.isatty() else []
    if not command:
        yield
        return
    collected = TerminalText(sys.stdout.encoding)
    try:
        with redirect_stdout(collected):
            yield
    finally:
        # Also after an error: what the command printed before it failed is shown.
        text = collected.getvalue()
        if fits(text, *shutil.get_terminal_size()) or not _shown(command, text):
            sys.stdout.write(text)
            sys.stdout.flush()


def fits(text: str, columns: int, lines: int) -> bool:
    """Whether the text and a prompt below it fit the screen."""
    from rich.text import Text

    return sum(max(1, -(-len(line.plain) // columns)) for line in Text.from_ansi(text).split("\n")) < lines


def _shown(command: list[str], text: str) -> bool:
    """Show the text in the pager; return whether the pager started. The user may quit before it has read everything."""
    import subprocess

    # ``LV`` does the same for the pager lv; both give way to the user's own setting.
    environment = {"LESS": LESS, "LV": "-c", **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603 - the user's own choice
    except OSError:
        return False
    with suppress(OSError):
        pager.communicate(text.encode(sys.stdout.encoding, "replace"))
    while True:
        with suppress(KeyboardInterrupt):  # the pager handles Ctrl-C: `less` continues after it
            pager.wait()
            return True
