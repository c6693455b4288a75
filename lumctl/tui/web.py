"""Serves the dashboard to a browser, with textual-serve restricted to this machine.

By default, textual-serve loads a font from another server, answers requests for any host name, and accepts connections
from any web page. This server answers only its own address and forbids the browser to load anything from elsewhere.
Also, textual-serve does not stop while pages are open, and a page gets no keys until it is clicked. This server closes
open pages, and its pages have the focus at once.

Every user of the machine can reach a port on loopback. Each path therefore begins with a secret token, which is only in
the printed address. Each page is a process that reads the rack, so the number of open pages is limited.
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

from lumctl.tui.web_page import with_head

HEARTBEAT_S = 15.0
"""Interval of the checks whether a page is still open."""
MOST_PAGES = 8
"""The most pages that may be open at once; lumctl-top(1) has this number."""
TOKEN_BYTES = 32
FONT_SIZE = 16
SIZE = {"width": 80, "height": 24}
"""The assumed size of a page that does not report its own."""

_REFUSAL = "open the whole address that lumctl top --web printed: it contains a secret token\n"
_FROM_ELSEWHERE = re.compile(r"<link\b[^>]*https?://[^>]*>")
# textual-serve's page has inline scripts and styles. The web socket is named, because not every browser counts it as
# ``'self'``.
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self' data:; img-src 'self' data:; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 chooses a free port.

    Raises:
        OSError: the port is in use, or may not be used.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A port stays blocked for a while after its server has ended, unless the next one asks for it.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(16)
    except BaseException:
        listening.close()
        raise
    return listening


class Door(Server):
    """Serves one command on a listening socket, with a process for each page."""

    def __init__(self, command: str, listening: socket.socket) -> None:
        host, port = listening.getsockname()
        super().__init__(command, host=host, port=port, title="lumctl top")
        self._socket = listening
        self._own = f"{host}:{port}"
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._pages: set[web.WebSocketResponse] = set()
        folder = Path(self.statics_path)
        # A request can name only a file of this list, so no path leads out of the folder.
        self._parts = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}

    @property
    def address(self) -> str:
        """The address to open in the browser. It contains the token: everyone who knows it can use the dashboard."""
        return f"http://{self._own}/{self._token}/"

    def open(self) -> None:
        """Serve until the process gets a signal to stop."""
        web.run_app(self._make_app(), sock=self._socket, print=None, loop=asyncio.new_event_loop())

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the caller has already printed the address."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 - aiohttp's signature
        """Close all open pages; this ends their dashboards."""
        await asyncio.gather(*(page.close(code=WSCloseCode.GOING_AWAY) for page in self._pages if page.prepared))

    async def handle_index(self, request: web.Request) -> web.Response:
        """The page; its parts and its terminal have paths below its own address.

        Raises:
            HTTPServiceUnavailable: :data:`MOST_PAGES` pages are open.
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
        """A static file of the page."""
        file = self._parts.get(request.match_info["path"])
        if file is None:
            raise web.HTTPNotFound
        return web.FileResponse(file)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a dashboard for as long as its page is open.

        Raises:
            HTTPServiceUnavailable: :data:`MOST_PAGES` pages are open.
        """
        self._require_room()
        # Without a heartbeat, a browser that vanished without a word would hold one of the pages for ever.
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S)
        self._pages.add(page)  # before the first await, because other requests run meanwhile
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
        # Not the routes of textual-serve, which have no token and list the static files.
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
        """Answer only requests to this very address and with the token, from no page of another origin.

        The Host header is checked because any name can be made to resolve to this machine.
        """
        origin = request.headers.get("Origin")
        # A browser sends no Origin when a page is opened, but always with a web socket.
        if request.headers.get("Host") != self._own or (origin is not None and origin != f"http://{self._own}"):
            return web.Response(status=403, text=f"this server serves only http://{self._own}/\n")
        token = request.path.lstrip("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(errors="replace"), self._token.encode()):
            return web.Response(status=403, text=_REFUSAL)
        response: web.StreamResponse = await handler(request)
        # A web socket has sent its headers by now.
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(socket=f"ws://{self._own}")
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
        return response


class _Dashboard(AppService):
    """The process of one page."""

    async def stop(self) -> None:
        """Let the process quit, and wait for its end, which could not be reported after the server has closed."""
        await super().stop()
        if self._process is not None:
            await self._process.communicate()


class _Own(jinja2.FileSystemLoader):
    """The templates of textual-serve without links to other servers, and with the additions of :mod:`web_page`."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Any]:
        """The text of a template, with the font's link removed and the focus and the phone's keys added."""
        text, path, is_new = super().get_source(environment, template)
        return with_head(_FROM_ELSEWHERE.sub("", text)), path, is_new
