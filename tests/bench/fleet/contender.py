"""The inside of a contender's process: it takes orders on stdin, one a line, and says ``done`` after each.

    tick            ask every host once and have every answer
    cold HOST       connect to one host and have its answer
    hangup          end what `cold` has opened
    answers PATH    record what the last tick brought: host, digest, seconds after the tick began ("-": not known)
    quit

Each contender is a process of its own, so that its CPU time and its memory can be told from the others'.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from payload import digest

Settings = Mapping[str, Any]


class Contender(Protocol):
    """A way to read hosts. What can be kept open is opened when it is made."""

    def tick(self) -> None:
        """Ask every host and wait for its answer: all that it printed, and that its exit status was 0."""

    def answers(self) -> Mapping[str, bytes]:
        """The answers of the last tick by host. Taking a tool's output apart is not part of its time."""

    def close(self) -> None:
        """Hang up."""


def serve(make: Callable[[Settings], Contender]) -> None:
    """Be a contender until told to quit."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # What a tool prints by the way must not be taken for an answer to an order.
    orders, replies = sys.stdin, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contender = make(settings)

    def reply(text: str) -> None:
        replies.write(f"{text}\n")
        replies.flush()

    reply("ready")
    for line in orders:
        order, _, about = line.strip().partition(" ")
        if order == "quit":
            break
        try:
            if order == "tick":
                contender.tick()
            elif order == "cold":
                contender.cold(about)
            elif order == "hangup":
                contender.hang_up()
            else:
                _write(contender, Path(about))
        except Exception as error:  # noqa: BLE001 - the harness reports it; another order may succeed
            reply(f"error {type(error).__name__}: {error}".replace("\n", " "))
        else:
            reply("done")
    contender.close()
    # Some of the tools leave threads that would be waited for.
    sys.stdout.flush()
    os._exit(0)


def _write(contender: Contender, path: Path) -> None:
    seconds = getattr(contender, "seconds", {})
    lines = (f"{host}\t{digest(text)}\t{seconds.get(host, '-')}\n" for host, text in contender.answers().items())
    path.write_text("".join(lines), encoding="utf-8")


def unlabelled(output: bytes) -> dict[str, bytes]:
    """The output of a parallel shell, ``HOST: LINE`` each, by host."""
    found: dict[str, list[bytes]] = {}
    for line in output.splitlines(keepends=True):
        host, _, text = line.partition(b": ")
        found.setdefault(host.decode(), []).append(text)
    return {host: b"".join(lines) for host, lines in found.items()}
