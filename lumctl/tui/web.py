"""Serves the dashboard to a browser: textual-serve, kept to this machine.

textual-serve alone fetches a font from elsewhere, answers to any name and lets any page on the web connect. Here only
the address itself is answered, and the browser is told to load nothing from anywhere else.
"""

import asyncio
import re
import socket
from typing import Any

import jinja2
from aiohttp import web
from aiohttp_jinja2 import APP_KEY
from textual_serve.server import Server

_FROM_ELSEWHERE = re.compile(r"<link\b[^>]*https?://[^>]*>")
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "font-src 'self' data:; img-src 'self' data:; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


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

    @property
    def address(self) -> str:
        """What is typed into the browser."""
        return f"http://{self._own}/"

    def open(self) -> None:
        """Serve until the process is told to stop."""
        web.run_app(self._make_app(), sock=self._socket, print=None, loop=asyncio.new_event_loop())

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: whoever opened the door has said where it is."""

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


class _Own(jinja2.FileSystemLoader):
    """The templates without what they would load from elsewhere."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Any]:
        """The text of a template, the font taken out."""
        text, path, is_new = super().get_source(environment, template)
        return _FROM_ELSEWHERE.sub("", text), path, is_new
