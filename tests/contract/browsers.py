"""A real browser without a window, driven by its DevTools protocol: it shows a page's terminal, takes keys and clicks.

It has a profile of its own, which goes with it, and finds no address but this machine's.
"""

import asyncio
import base64
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from said import PATIENCE_S, Said

SIZE = (1400, 800)
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root, for whom there is none; the only page is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
    f"--window-size={SIZE[0]},{SIZE[1]}",
)
KEYS: Mapping[str, tuple[int, str]] = {"Enter": (13, "\r"), "Escape": (27, "")}
"""What has no letter of its own: the number by which browsers know the key, and what it types."""

# The terminal is nobody's to reach but its own script's: it is found among all that the page holds.
FIND = """function () {
    return this.find(each => {
        try { return each.element && each.buffer.active && each.onWriteParsed; } catch { return false; }
    });
}"""
READY = """new Promise(ready => {
    const look = () => document.querySelector(".xterm-screen") ? ready() : requestAnimationFrame(look);
    look();
})"""
SEE = """function (words, without, count, patience) {
    const rows = () => Array.from({length: this.rows}, (_, row) =>
        this.buffer.active.getLine(this.buffer.active.viewportY + row).translateToString());
    return new Promise(done => {
        let timer, news;
        const look = late => {
            const shown = rows(), text = shown.join("\\n");
            const lines = shown.filter(line => words.every(each => line.includes(each))).length;
            const held = count === null ? words.every(each => text.includes(each)) : lines === count;
            const seen = held && !without.some(each => text.includes(each));
            if (!seen && late !== true) return;
            clearTimeout(timer);
            news.dispose();
            done([seen, shown]);
        };
        timer = setTimeout(look, patience, true);
        news = this.onWriteParsed(look);
        look();
    });
}"""
PLACE = """function (column, row) {
    const box = this.element.querySelector(".xterm-screen").getBoundingClientRect();
    return [box.x + (column + 0.5) * box.width / this.cols, box.y + (row + 0.5) * box.height / this.rows];
}"""


class Page:
    """The one page of a browser. Every wait is for what its terminal shows, and fails after ``PATIENCE_S``."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.asked: list[str] = []
        """Every address of which the page has asked for anything."""
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reader = asyncio.create_task(self._read())
        self._terminal = ""

    async def open(self, address: str) -> None:
        """Load a page that holds a terminal."""
        await self.do("Network.enable")
        await self.do("Page.enable")
        await self.do("Page.navigate", url=address)
        await self._value("Runtime.evaluate", expression=READY, awaitPromise=True)
        kinds = await self.do("Runtime.evaluate", expression="Object.prototype")
        held = await self.do("Runtime.queryObjects", prototypeObjectId=kinds["result"]["objectId"])
        found = await self.do("Runtime.callFunctionOn", objectId=held["objects"]["objectId"], functionDeclaration=FIND)
        self._terminal = found["result"]["objectId"]

    async def see(self, *words: str, without: Sequence[str] = (), lines: int | None = None) -> list[str]:
        """The lines of the terminal, once it shows each of these, and none of ``without``.

        With ``lines`` so many of them must have all of the words.
        """
        seen, told = await self._call(SEE, list(words), list(without), lines, PATIENCE_S * 1000)
        shown = [line.rstrip() for line in told]
        awaited = f"{words}, without {without}, in {lines or 'any'} lines"
        assert seen, f"not seen in {PATIENCE_S:g} s: {awaited}\n" + "\n".join(shown)
        return shown

    async def press(self, key: str) -> None:
        """Press a key, by a browser's name of it."""
        number, text = KEYS[key] if key in KEYS else (ord(key.upper()), key)
        event = {"key": key, "windowsVirtualKeyCode": number}
        await self.do("Input.dispatchKeyEvent", type="keyDown", **event, **({"text": text} if text else {}))
        await self.do("Input.dispatchKeyEvent", type="keyUp", **event)

    async def click(self, words: str) -> None:
        """Click where these words begin."""
        lines = await self.see(words)
        row = next(row for row, line in enumerate(lines) if words in line)
        x, y = await self._call(PLACE, lines[row].index(words), row)
        for kind in ("mousePressed", "mouseReleased"):
            await self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def picture(self) -> bytes:
        """What is really drawn, as PNG."""
        return base64.b64decode((await self.do("Page.captureScreenshot"))["data"])

    async def close(self) -> None:
        """Close the browser."""
        with suppress(AssertionError, ConnectionError):
            await self.do("Browser.close")
        await self._reader

    async def do(self, what: str, **how: object) -> dict[str, Any]:
        """Have one thing done; gives the answer."""
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": what, "params": how})
        answer = await asyncio.wait_for(self._answers[number], 2 * PATIENCE_S)
        assert "error" not in answer, f"{what}: {answer['error']}"
        return dict(answer["result"])

    async def _call(self, function: str, *arguments: object) -> Any:
        return await self._value(
            "Runtime.callFunctionOn",
            objectId=self._terminal,
            functionDeclaration=function,
            arguments=[{"value": each} for each in arguments],
            awaitPromise=True,
        )

    async def _value(self, what: str, **how: object) -> Any:
        answer = await self.do(what, returnByValue=True, **how)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def _read(self) -> None:
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                self._answers[told["id"]].set_result(told)
            elif told["method"] == "Network.requestWillBeSent":
                self.asked.append(told["params"]["request"]["url"])
            elif told["method"] == "Network.webSocketCreated":
                self.asked.append(told["params"]["url"])
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result({"error": "the browser has ended"})


@contextmanager
def chromium(program: str) -> Iterator[str]:
    """A browser with an empty page, for :func:`page_of`; all of it is ended at the end."""
    folder = Path(tempfile.mkdtemp(prefix="lumctl-browser-"))
    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    said = Said(process.stderr)
    try:
        address = re.search(r"ws://([\d.]+:\d+)/", said.hear("DevTools listening on ws://"))
        assert address, said.lines
        yield address[1]
        process.wait(PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        said.end()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def page_of(address: str) -> AsyncIterator[Page]:
    """The page of a browser, which is closed with it."""
    async with aiohttp.ClientSession() as asking:
        async with asking.get(f"http://{address}/json/list") as answer:
            (socket,) = [each["webSocketDebuggerUrl"] for each in await answer.json() if each["type"] == "page"]
        async with asking.ws_connect(socket, max_msg_size=0) as told:
            page = Page(told)
            try:
                yield page
            finally:
                await page.close()
