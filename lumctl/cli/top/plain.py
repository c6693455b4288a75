"""``lumctl top --plain``: the dialogue in lines, over the standard streams."""

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lumctl.cli.invocation import Invocation

if TYPE_CHECKING:
    from lumctl.tui.actions import Acts
    from lumctl.tui.sources import Sources
    from lumctl.tui.text_mode.session import TextSession


def plain_session(
    cx: Invocation, sources: "Sources", acts: "Acts", interval_s: float, target: str | None = None
) -> "TextSession":
    """A session that prints to stdout and reads stdin from now on."""
    from lumctl.tui.text_mode.session import END, TextSession

    session = TextSession(
        sources, acts, racks=cx.inventory.racks, target=target or cx.target, say=cx.out.text, interval_s=interval_s
    )

    def listen() -> None:
        for line in lines_of(0):
            session.hear(line)
        session.hear(END)

    # A daemon thread: a read from stdin cannot be cancelled when the session ends.
    threading.Thread(target=listen, name="lumctl-input", daemon=True).start()
    return session


def lines_of(descriptor: int) -> Iterator[str]:
    """The lines that arrive at a descriptor, each as soon as it is complete.

    ``sys.stdin`` is not used: Python reports an error at exit if a thread waits in it.
    """
    rest = b""
    while piece := os.read(descriptor, 4096):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")
