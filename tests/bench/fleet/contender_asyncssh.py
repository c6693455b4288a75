"""asyncssh with its connections kept: one command per tick and host, or the same loop on the host that lumctl runs."""

import asyncio
import secrets
import threading
import time
from collections.abc import Coroutine, Mapping
from typing import Any

import asyncssh
from contender import Settings, serve

_CONNECT_AT_ONCE = 16
_TIMES = 3
_TOKEN = secrets.token_hex(8).encode()
_END = b"\n" + _TOKEN + b" "
_LONGEST_END = 100


class AsyncSsh:
    """The event loop has a thread of its own, so that connections are looked after between ticks as well."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._connections: dict[str, asyncssh.SSHClientConnection] = {}
        self._loops: dict[str, Loop] = {}
        self._answers: dict[str, bytes] = {}
        self.seconds: dict[str, float] = {}
        self._ticks = 0
        if settings["variant"] != "cold":
            self._run(self._connect_all())

    def tick(self) -> None:
        self._answers = {}
        self._run(self._ask_all() if self._loops else self._execute_all())

    def cold(self, host: str) -> None:
        self._answers = {}
        self._run(self._read_once(host))

    def hang_up(self) -> None:
        self._run(self._close_all())

    def answers(self) -> Mapping[str, bytes]:
        return self._answers

    def close(self) -> None:
        pass

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _connect(self, host: str) -> Any:
        said = self._settings
        return asyncssh.connect(
            host,
            said["ports"][host],
            username=said["user"],
            client_keys=[said["key"]],
            known_hosts=said["known_hosts"],
        )

    async def _connect_all(self) -> None:
        gate = asyncio.Semaphore(_CONNECT_AT_ONCE)

        async def connect(host: str) -> None:
            async with gate:
                self._connections[host] = connection = await self._connect(host)
                if self._settings["variant"] == "loop":
                    _, self._loops[host] = await connection.create_session(Loop, "exec sh", encoding=None)
                    await self._loops[host].begin(self._settings["program"].encode())

        await asyncio.gather(*map(connect, self._settings["hosts"]))

    async def _execute_all(self) -> None:
        async def execute(host: str, connection: asyncssh.SSHClientConnection) -> None:
            ended = await connection.run(self._settings["command"], encoding=None, check=True)
            self._answers[host] = bytes(ended.stdout)

        await asyncio.gather(*(execute(host, kept) for host, kept in self._connections.items()))

    async def _ask_all(self) -> None:
        self._ticks += 1
        started = time.perf_counter()
        waiting = {host: loop.ask(self._ticks) for host, loop in self._loops.items()}
        for host, answer in waiting.items():
            self._answers[host], at = await answer
            self.seconds[host] = at - started

    async def _read_once(self, host: str) -> None:
        connection = await self._connect(host)
        ended = await connection.run(self._settings["command"], encoding=None, check=True)
        self._answers[host] = bytes(ended.stdout)
        self._connections[host] = connection

    async def _close_all(self) -> None:
        while self._connections:
            _, connection = self._connections.popitem()
            connection.close()
            await connection.wait_closed()


class Loop(asyncssh.SSHClientSession[bytes]):
    """The near end of the loop on one host: requests out, the answers of one probe in.

    It asks as lumctl does: once answers have been new three times running, straight from the tool.
    """

    def __init__(self) -> None:
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._received = bytearray()
        self._wanted: int | None = None
        self._hello: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[tuple[bytes, float]] | None = None
        self._last = b""
        self._direct = bytearray()
        self._new_ones = 0

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    async def begin(self, program: bytes) -> None:
        self._channel.write(program)
        await self._hello

    def ask(self, number: int) -> asyncio.Future[tuple[bytes, float]]:
        self._answer = asyncio.get_running_loop().create_future()
        self._channel.write(b"%d 0%s\n" % (number, b">" + _TOKEN if self._new_ones >= _TIMES else b""))
        return self._answer

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is None:
            self._take_direct(data)
            return
        received = self._received
        received += data
        while True:
            if self._wanted is None:
                end = received.find(b"\n")
                if end < 0:
                    return
                words = bytes(received[:end]).split()
                del received[: end + 1]
                if not words:
                    continue
                if words[0] == b"=":
                    _check(words[3])
                    self._wanted = int(words[4])
                    self._new_ones += 1
                elif words[0] == b"~":
                    _check(words[3])
                    self._new_ones = 0
                    self._answered(self._last)
                elif not self._hello.done():
                    self._hello.set_result(None)
            elif len(received) > self._wanted:
                self._last = bytes(received[: self._wanted])
                del received[: self._wanted + 1]
                self._wanted = None
                self._answered(self._last)
            else:
                return

    def _take_direct(self, data: bytes) -> None:
        self._direct += data
        end = self._direct.rfind(_END, -_LONGEST_END)
        if end >= 0 and self._direct.endswith(b"\n"):
            _check(bytes(self._direct[end:]).split()[-1])
            last, self._last = self._last, bytes(self._direct[:end]).rstrip(b"\n")
            self._direct.clear()
            self._new_ones = 0 if last == self._last else self._new_ones
            self._answered(self._last)

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in (self._hello, self._answer):
            if waiting is not None and not waiting.done():
                waiting.set_exception(exc or ConnectionError("the loop on the host has ended"))

    def _answered(self, text: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((text, time.perf_counter()))


def _check(status: bytes) -> None:
    """Fail with a tool that failed."""
    if status != b"0":
        raise ValueError(f"exit status {status.decode()}")


if __name__ == "__main__":
    serve(AsyncSsh)
