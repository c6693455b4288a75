"""Asks one controller: HTTP by urllib3, each request sent once, nothing followed that leads to another host.

A certificate that a private authority has signed is accepted if the file with that authority's own certificate is named
in ``$SSL_CERT_FILE``; there is no way to leave certificates unchecked. Connections last for one call of the driver:
controllers have few of them.
"""

import contextlib
import http.client
import json
import math
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import urllib3
from urllib3.connection import HTTPConnection

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl_redfish.document import Json, parsed, path_of
from lumctl_redfish.faults import Judge, not_connected, reason
from lumctl_redfish.sessions import Sessions
from lumctl_redfish.wire import Clock, Deadline, Place, Wire, place_of

if TYPE_CHECKING:
    import socket

ROOT = "/redfish/v1/"
_MOST_REDIRECTS = 3
_FAREWELL_S = 2.0
_UNAUTHORIZED = 401
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BROKEN = (OSError, ValueError, http.client.HTTPException, urllib3.exceptions.HTTPError)
"""What a connection may end in, however hostile the other side is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of the controller."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Lost(Exception):  # noqa: N818 - it is not the error that a caller sees
    """The request was sent, perhaps in part, and no whole answer came; ``stale``: on a connection used before."""

    def __init__(self, why: str, *, stale: bool) -> None:
        super().__init__(why)
        self.stale = stale


class RedfishClient:
    """One controller. Use it inside ``with client.call():``, which has one deadline; calls of threads take turns."""

    def __init__(self, context: DriverContext, *, clock: Clock = time.monotonic) -> None:
        self.name = f"{context.device} at {context.address}"
        self._place: Place = place_of(context)
        self._timeout_s = context.timeout_s
        self._clock = clock
        self._judge = Judge(self.name)
        self._sessions = Sessions(context.login, self.name, self._place.origin)
        self._turn = threading.Lock()
        self._tls: ssl.SSLContext | None = None
        self._deadline = Deadline(context.timeout_s, clock)
        self._wire: Wire | None = None
        self._root: Json | None = None

    @contextlib.contextmanager
    def call(self, most_s: float = math.inf) -> Iterator[None]:
        """Everything that happens inside has one deadline, and the connection is closed at its end.

        Raises:
            DeviceUnreachableError: another call takes all the time; nothing was sent.
        """
        timeout_s = min(self._timeout_s, most_s)
        deadline = Deadline(timeout_s, self._clock)
        if not self._turn.acquire(timeout=timeout_s):
            raise DeviceUnreachableError(f"{self.name}: another call is still under way; nothing was sent")
        try:
            self._deadline = deadline
            yield
        finally:
            self._hang_up()
            self._turn.release()

    def root(self) -> Json:
        """The service root, which any controller shows to anybody; asked for once."""
        if self._root is None:
            self._root = self._document(self._followed(ROOT, {}), ROOT)
        return self._root

    def get(self, path: str) -> Json:
        """The document at a path.

        Raises:
            DeviceUnreachableError: no answer in time, or none that is Redfish.
            DeviceLoginError: not for us.
            DeviceRefusedError: there is no such thing.
        """
        answer = self._followed(path, self._headers())
        if answer.status == _UNAUTHORIZED and self._sessions.expired():
            answer = self._followed(path, self._headers())
        return self._document(answer, path)

    def post(self, path: str, body: Json) -> None:
        """Have something done; it is sent once.

        Raises:
            DeviceUnreachableError: no connection; nothing was sent.
            DeviceLoginError, DeviceRefusedError: the controller said no; nothing was done.
            OutcomeUnknownError: it was sent, and no answer came that says whether it was done.
        """
        headers = self._headers()
        try:
            answer = self._exchange("POST", path, headers, body)
            if answer.status == _UNAUTHORIZED and self._sessions.expired():
                headers = self._headers()
                answer = self._exchange("POST", path, headers, body)
        except Lost as lost:
            raise self._judge.unknown(f"then {lost}") from None
        self._judge.action(answer.status, answer.body)

    def close(self) -> None:
        """End our session with the controller, if there is one; a second call does nothing."""
        with contextlib.suppress(DeviceError, Lost), self.call(_FAREWELL_S):
            path, headers = self._sessions.path, self._sessions.headers()
            self._sessions.expired()
            if path is not None:
                self._exchange("DELETE", path, headers or {})

    def _headers(self) -> dict[str, str]:
        """What shows who we are; logs in first where that is needed."""
        headers = self._sessions.headers()
        if headers is not None:
            return headers
        path, body = self._sessions.login_request(self.root())
        if path is None:
            return self._sessions.by_password()
        try:
            answer = self._exchange("POST", path, {}, body)
        except Lost as lost:
            raise DeviceUnreachableError(f"{self.name}: no answer to our login: {lost}") from None
        return self._sessions.logged_in(answer.status, answer.headers, answer.body)

    def _followed(self, path: str, headers: dict[str, str]) -> Answer:
        """A reading, where redirects within the controller are followed."""
        for _ in range(_MOST_REDIRECTS):
            answer = self._read(path, headers)
            if answer.status not in _REDIRECTS:
                return answer
            there = answer.headers.get("Location", "")
            onwards = path_of(there, self._place.origin)
            if onwards is None:
                raise DeviceRefusedError(
                    f"{self.name} sends us elsewhere: {there[:100]!r}",
                    hint="write the controller's own address into the inventory",
                )
            path = onwards
        raise DeviceRefusedError(f"{self.name} sends us from one place to the next: {path}")

    def _read(self, path: str, headers: dict[str, str]) -> Answer:
        try:
            try:
                return self._exchange("GET", path, headers)
            except Lost as lost:
                if not lost.stale:
                    raise
            # Servers may close a connection at any time between two requests; asking again changes nothing.
            return self._exchange("GET", path, headers)
        except Lost as lost:
            raise DeviceUnreachableError(f"{self.name}: no answer to GET {path}: {lost}") from None

    def _document(self, answer: Answer, path: str) -> Json:
        self._judge.reading(answer.status, answer.body, path)
        document = parsed(answer.body)
        if document is None:
            raise DeviceUnreachableError(
                f"{self.name}: what it says at {path} is no Redfish",
                hint="check the address: it may be another service",
            )
        return document

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], body: Json | None = None) -> Answer:
        """Send one request and read its answer. What changes something goes over a connection of its own."""
        if method != "GET":
            self._hang_up()
        stale = self._wire is not None
        wire = self._wire = self._wire or self._connected()
        wire.renew()
        connection = HTTPConnection(self._place.host, self._place.port)
        connection.auto_open = 0
        connection.sock = cast("socket.socket", wire)  # it has what is used of one
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body).encode(),
                headers={**_ALWAYS, "Host": self._place.origin.partition("://")[2], **headers},
                preload_content=False,
                decode_content=False,
            )
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except _BROKEN as error:
            self._hang_up()
            raise Lost(reason(error), stale=stale and not isinstance(error, TimeoutError)) from None
        if connection.is_closed:
            self._hang_up()
        return answer

    def _connected(self) -> Wire:
        if self._place.secure and self._tls is None:
            self._tls = ssl.create_default_context()
        try:
            return Wire(self._place, self._tls, self._deadline)
        except (OSError, ValueError) as error:
            raise not_connected(self.name, self._place.host, error) from error

    def _hang_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.hang_up()


_ALWAYS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "OData-Version": "4.0",
    "User-Agent": "lumctl",
}
