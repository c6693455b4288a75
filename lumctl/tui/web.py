"""Serves the dashboard to a browser: textual-serve, kept to this machine.

textual-serve alone fetches a font from elsewhere, answers to any name and lets any page on the web connect. Here only
the address itself is answered, and the browser is told to load nothing from anywhere else. It also waits for pages that
are still open when it is told to stop, and keeps the keys from a page until that is clicked: neither is so here.

Every user of the machine can reach a port on loopback. So each path begins with a secret token, which only the address
holds that is printed; without it there is no page and no dashboard. Each page is a process that reads the rack, so only
so many are open at once.
"""

import asyncio
import hmac
import re
import secrets
import socket
from pathlib import Path
from typing import Any

import aiohttp_jinja2
import jinja2
from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

HEARTBEAT_S = 15.0
"""How often a page is asked whether it is still there."""
MOST_PAGES = 8
"""How many pages may be open at once; lumctl-top(1) has this number."""
TOKEN_BYTES = 32
FONT_SIZE = 16
SIZE = {"width": 80, "height": 24}
"""The assumed size of a page that does not report its own."""

_REFUSAL = "open the whole address that lumctl top --web printed: it holds a secret token\n"
_FROM_ELSEWHERE = re.compile(r"<link\b[^>]*https?://[^>]*>")
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self' data:; img-src 'self' data:; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

# Once the page has its terminal, its keys go to the dashboard without a click.
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
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._pages: set[web.WebSocketResponse] = set()
        folder = Path(self.statics_path)
        self._parts = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}

    @property
    def address(self) -> str:
        """What is typed into the browser. It holds the token: anyone who knows it may look."""
        return f"http://{self._own}/{self._token}/"

    def open(self) -> None:
        """Serve until the process is told to stop."""
        web.run_app(self._make_app(), sock=self._socket, print=None, loop=asyncio.new_event_loop())

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the caller has already printed the address."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 - as it is called
        """Close the pages that are open; each ends its dashboard."""
        await asyncio.gather(*(page.close(code=WSCloseCode.GOING_AWAY) for page in self._pages if page.prepared))

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page, whose parts and whose terminal are below its own address.

        Raises:
            HTTPServiceUnavailable: as many are open as may be.
        """
        self._require_room()
        context = {
            "font_size": to_int(request.query.get("fontsize", ""), FONT_SIZE),
            "app_websocket_url": f"{self.address.replace('http:', 'ws:', 1)}ws",
            "config": {"static": {"url": f"{self.address}static/"}},
            "application": {"name": self.title},
        }
        return aiohttp_jinja2.render_template("app_index.html", request, context)

    async def handle_static(self, request: web.Request) -> web.FileResponse:
        """A part of the page."""
        file = self._parts.get(request.match_info["path"])
        if file is None:
            raise web.HTTPNotFound
        return web.FileResponse(file)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a dashboard for as long as its page is open.

        Raises:
            HTTPServiceUnavailable: as many are open as may be.
        """
        self._require_room()
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        self._pages.add(page)  # before anything is waited for: others ask at the same time
        try:
            await page.prepare(request)
            await self._show(page, request)
        finally:
            self._pages.discard(page)
        return page

    def _require_room(self) -> None:
        if len(self._pages) >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(text=f"{MOST_PAGES} pages are open: close one of them\n")

    async def _show(self, page: web.WebSocketResponse, request: web.Request) -> None:
        async def close() -> None:
            await page.close()

        dashboard = _Dashboard(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        try:
            columns, lines = (to_int(request.query.get(side, ""), so_much) for side, so_much in SIZE.items())
            await dashboard.start(columns, lines)
            await self._process_messages(page, dashboard)
        finally:
            await dashboard.stop()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        aiohttp_jinja2.setup(app, loader=_Own(self.templates_path))
        app.add_routes(
            [
                web.get("/{token}/", self.handle_index),
                web.get("/{token}/ws", self.handle_websocket),
                web.get("/{token}/static/{path:.+}", self.handle_static),
            ]
        )
        app.on_startup.append(self.on_startup)
        app.on_shutdown.append(self.on_shutdown)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Answer only who knows this very address, from no page but our own: a name may be made to point here."""
        origin = request.headers.get("Origin")
        if request.headers.get("Host") != self._own or (origin is not None and origin != f"http://{self._own}"):
            return web.Response(status=403, text=f"only http://{self._own}/ is served here\n")
        token = request.path.lstrip("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(errors="replace"), self._token.encode()):
            return web.Response(status=403, text=_REFUSAL)
        response: web.StreamResponse = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(socket=f"ws://{self._own}")
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response


class _Dashboard(AppService):
    """The process of one page."""

    async def stop(self) -> None:
        """Let it quit, and wait for that: its end could not be reported after the server has closed."""
        await super().stop()
        if self._process is not None:
            await self._process.communicate()


class _Own(jinja2.FileSystemLoader):
    """The templates without what they would load from elsewhere, and with the keys where they belong."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Any]:
        """The text of a template: the font taken out, the focus put in."""
        text, path, is_new = super().get_source(environment, template)
        return _FROM_ELSEWHERE.sub("", text).replace("</head>", f"{_FOCUS}</head>"), path, is_new
