"""Metrics over HTTP for Prometheus, and whether the daemon does its work for who watches the watcher."""

import gzip
import socket
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Self

from prometheus_client.exposition import choose_encoder, gzip_accepted

from lumctl.daemon.bounded import POLL_S, Bounded
from lumctl.daemon.vitals import Vitals
from lumctl.errors import UsageError

DEFAULT_LISTEN = "127.0.0.1:9469"
_HIGHEST_PORT = 65535
_PATIENCE_S = 10.0


def parse_listen(text: str) -> tuple[str, int] | None:
    """``HOST:PORT`` or ``[IPV6]:PORT``; ``None`` for ``none``. Port 0 takes one that is free.

    Raises:
        UsageError: it is neither.
    """
    if text == "none":
        return None
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise UsageError(f"{text!r} is no place to listen at", hint=f"HOST:PORT such as {DEFAULT_LISTEN}, or none")
    return host, int(port)


class Exporter:
    """Serves ``/metrics`` and ``/healthz`` until it is closed."""

    def __init__(self, listen: tuple[str, int], vitals: Vitals) -> None:
        """Begin to serve.

        Raises:
            UsageError: the address is not ours or the port is taken.
        """
        host, port = listen
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
            self._server = _Server(listen, family, vitals)
        except OSError as error:
            raise UsageError(
                f"cannot listen at {host}:{port}: {error.strerror or error}", hint="name another place with --listen"
            ) from error
        self.port = int(self._server.server_address[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="lumctl-exporter", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(Bounded, HTTPServer):
    def __init__(self, listen: tuple[str, int], family: socket.AddressFamily, vitals: Vitals) -> None:
        self.address_family = family
        self.vitals = vitals
        super().__init__(listen, _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server what this address is called."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = "lumctl", int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    server: _Server

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._metrics()
        elif path == "/healthz":
            well = self.server.vitals.well()
            said = "ok" if well else f"no look within {self.server.vitals.limit_s:g} s"
            self._say(HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE, said)
        else:
            self._say(HTTPStatus.NOT_FOUND, "there are /metrics and /healthz")

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def version_string(self) -> str:
        """Who answers."""
        return "lumctl"

    def log_message(self, *_: object) -> None:
        """Scrapes are no news."""

    def _metrics(self) -> None:
        encode, kind = choose_encoder(self.headers.get("Accept", ""))
        body = encode(self.server.vitals.registry)
        headers = {"Content-Type": kind}
        if gzip_accepted(self.headers.get("Accept-Encoding", "")):
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        self._answer(HTTPStatus.OK, body, headers)

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._answer(status, f"{text}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})

    def _answer(self, status: HTTPStatus, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
