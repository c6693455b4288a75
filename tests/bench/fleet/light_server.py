"""A light stand-in for a thousand hosts: real SSH, and behind it the loop's answers from memory instead of a shell.

    python light_server.py SETTINGS.json

Orders come on stdin, one a line: ``load PATH`` (the answer from now on), ``stall`` (from now on stop half-way through
each answer). A host tells an answer that it has given before by ``~``, as the loop does.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import asyncssh

_REQUEST = re.compile(rb"(\d+)((?: \d+(?:>[0-9a-f]+)?)+)")
"""No line of the program that comes first looks like this."""


class Content:
    """What all hosts answer."""

    def __init__(self) -> None:
        self.generation = 0
        self.text = b""
        self.stalls = False

    def load(self, path: Path) -> None:
        self.text = path.read_bytes().rstrip(b"\n")
        self.generation += 1


class Server(asyncssh.SSHServer):
    def __init__(self, content: Content) -> None:
        self._content = content

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        if not str(conn.get_extra_info("peername")[0]).startswith("127."):
            conn.abort()

    def session_requested(self) -> "Session":
        return Session(self._content)


class Session(asyncssh.SSHServerSession[bytes]):
    """One host's loop."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._channel: Any = None
        self._rest = b""
        self._greeted = False
        self._told: dict[bytes, int] = {}

    def connection_made(self, chan: Any) -> None:
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        return command == "exec sh"

    def data_received(self, data: bytes, _datatype: int | None) -> None:
        if not self._greeted:
            self._greeted = True
            self._channel.write_stderr(b"lumctl-loop 2 00000000-0000-4000-8000-000000000000 100.00\n")
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            asked = _REQUEST.fullmatch(line)
            if asked:
                for word in asked[2].split():
                    self._answer(asked[1], *word.partition(b">")[::2])

    def eof_received(self) -> bool:
        return False

    def _answer(self, number: bytes, probe: bytes, token: bytes) -> None:
        content = self._content
        if token:
            self._told.pop(probe, None)
            answer = b"%s\n%s %s %s 0\n" % (content.text, token, probe, number)
            self._channel.write(answer[: len(answer) // 2] if content.stalls else answer)
            return
        if self._told.get(probe) == content.generation:
            self._channel.write_stderr(b"~ %s %s 0\n" % (probe, number))
            return
        self._told[probe] = content.generation
        text = content.text
        answer = b"= %s %s 0 %d\n%s\n" % (probe, number, len(text), text)
        self._channel.write_stderr(answer[: len(answer) // 2] if content.stalls else answer)


async def serve(settings: dict[str, Any]) -> None:
    content = Content()
    folder = Path(settings["folder"])
    await asyncssh.listen(
        "0.0.0.0",  # noqa: S104 - all of 127/8; others are turned away
        settings["light_port"],
        server_factory=lambda: Server(content),
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=str(folder / "client_key.pub"),
        encoding=None,
        backlog=4096,
        login_timeout=120,
    )
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        order, _, about = line.partition(" ")
        if order == "load":
            content.load(Path(about))
        else:
            content.stalls = True
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
