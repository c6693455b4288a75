"""Serves the dashboard to a browser: textual-serve, kept to this machine.

textual-serve alone fetches a font from elsewhere, answers to any name and lets any page on the web connect. Here only
the address itself is answered, and the browser is told to load nothing from anywhere else. It also waits for pages that
are still open when it is told to stop, and keeps the keys from a page until that is clicked: neither is so here.
"""

import asyncio
import re
import socket
from typing import Any

import jinja2
from aiohttp import WSCloseCode, web
from aiohttp_jinja2 import APP_KEY
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

HEARTBEAT_S = 15.0
"""How often a page is asked whether it is still there."""
SIZE = {"width": 80, "height": 24}
"""What a page is taken for that does not say how much it can show."""

_FROM_ELSEWHERE = re.compile(r"<link\b[^>]*https?://[^>]*>")
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self' data:; img-src 'self' data:; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

# Once the page has its terminal, its keys are the dashboard's: nobody has to click it first.
_FOCUS = '<script>addEventListener("load", () => document.querySelector(".xterm-helper-textarea")?.focus());</script>'


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any that is free.

    Raises:
        OSError: the port is taken, or may not be used.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(16)
    except BaseException:
        listening.close()
        raise
    return listening


class Door(Server):
    """Serves one command, a process of its own for each page, on a socket that already listens."""

    def __init__(self, command: str, listening: socket.socket) -> None:
        host, port = listening.getsockname()
        super().__init__(command, host=host, port=port, title="lumctl top")
        self._socket = listening
        self._own = f"{host}:{port}"
        self._pages: set[web.WebSocketResponse] = set()

    @property
    def address(self) -> str:
        """What is typed into the browser."""
        return f"http://{self._own}/"

    def open(self) -> None:
        """Serve until the process is told to stop."""
        web.run_app(self._make_app(), sock=self._socket, print=None, loop=asyncio.new_event_loop())

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: whoever opened the door has said where it is."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 - as it is called
        """Close the pages that are open; each ends its dashboard."""
        await asyncio.gather(*(page.close(code=WSCloseCode.GOING_AWAY) for page in self._pages))

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a dashboard for as long as its page is open."""
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        await page.prepare(request)

        async def close() -> None:
            await page.close()

        dashboard = _Dashboard(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._pages.add(page)
        try:
            columns, lines = (to_int(request.query.get(side, ""), so_much) for side, so_much in SIZE.items())
            await dashboard.start(columns, lines)
            await self._process_messages(page, dashboard)
        finally:
            self._pages.discard(page)
            await dashboard.stop()
        return page

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        app[APP_KEY].loader = _Own(self.templates_path)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Answer only who asks for this very address, from no page but our own: a name may be made to point here."""
        origin = request.headers.get("Origin")
        if request.headers.get("Host") != self._own or (origin is not None and origin != f"http://{self._own}"):
            return web.Response(status=403, text=f"only {self.address} is served here\n")
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(socket=f"ws://{self._own}")
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response


class _Dashboard(AppService):
    """The process of one page."""

    async def stop(self) -> None:
        """Have it quit, and wait until it has: nobody would hear of its end once the door is shut."""
        await super().stop()
        if self._process is not None:
            await self._process.communicate()


class _Own(jinja2.FileSystemLoader):
    """The templates without what they would load from elsewhere, and with the keys where they belong."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Any]:
        """The text of a template: the font taken out, the focus put in."""
        text, path, is_new = super().get_source(environment, template)
        return _FROM_ELSEWHERE.sub("", text).replace("</head>", f"{_FOCUS}</head>"), path, is_new
