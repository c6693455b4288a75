"""HTTP client for one device. It sends each change once and never follows a redirect to another host.

A connection lasts for one call of a driver, because devices accept only a few.
"""

import base64
import contextlib
import http.client
import json
import math
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lumctl.devices.errors import DeviceLoginError, DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.http.connection import CallDeadline, Clock, HttpConnection, HttpPlace, place_of
from lumctl.devices.http.failures import Failures, reason
from lumctl.devices.http.texts import error_text, is_path, parsed, same_origin_path
from lumctl.devices.logins import Login
from lumctl.devices.permission import require_permission
from lumctl.devices.protocols import DriverContext

if TYPE_CHECKING:
    import socket

__all__ = ["MOST_BYTES", "Clock", "HttpAnswer", "HttpClient", "LostAnswerError", "login_headers"]

MOST_BYTES = 2 * 1024 * 1024
"""Default limit for one answer with its headers, in bytes."""
_MOST_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BROKEN = (OSError, ValueError, http.client.HTTPException)
"""Errors that a connection may raise, even if the other side is hostile."""
# "identity", because http.client does not unpack compressed answers.
_ALWAYS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "lumctl"}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete answer of a device. Names of ``headers`` are in lower case; ``device`` is for messages."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    device: str = ""

    def json(self) -> Any:
        """The JSON value of the body.

        Raises:
            DeviceUnreachableError: it is not JSON.
        """
        try:
            return parsed(self.body)
        except ValueError:
            raise DeviceUnreachableError(
                f"{self.device}: the answer is not JSON", hint="check the address: it may belong to another service"
            ) from None


class LostAnswerError(Exception):
    """The request was sent, perhaps in part, and no complete answer came. ``stale``: the connection was used before."""

    def __init__(self, why: str, *, stale: bool) -> None:
        super().__init__(why)
        self.stale = stale


def login_headers(login: Login) -> dict[str, str]:
    """HTTP Basic for a user with a secret, a bearer token for a secret without a user, nothing if neither is set.

    Raises:
        DeviceLoginError: the secret is missing, other users may read it, or it is not a valid token.
    """
    if login.user:
        pair = base64.b64encode(f"{login.user}:{login.secret()}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    if not login.has_secret:
        return {}
    token = login.secret()
    if not all("!" <= each <= "~" for each in token):
        raise DeviceLoginError("the login's secret is not a valid token: it contains spaces or non-ASCII characters")
    return {"Authorization": f"Bearer {token}"}


class HttpClient:
    """One device over HTTP. A block ``with client.call():`` has one deadline; threads enter it one at a time.

    The address is ``HOST:PORT`` (TLS) or ``http://HOST:PORT``. ``authorization`` returns the login headers of each
    request, by default from the device's login. ``explain`` extracts the device's message from the body of an error.
    ``ca_file`` contains the authorities to trust instead of this machine's (``$SSL_CERT_FILE``); certificates are
    always checked. ``most_bytes`` limits one answer. The attribute ``failures`` (:class:`Failures`) makes the error for
    a status, for drivers that call :meth:`read` or :meth:`exchange`.
    """

    def __init__(
        self,
        context: DriverContext,
        *,
        authorization: Callable[[], Mapping[str, str]] | None = None,
        explain: Callable[[bytes], str] = error_text,
        ca_file: Path | None = None,
        most_bytes: int = MOST_BYTES,
        clock: Clock = time.monotonic,
    ) -> None:
        self.name = f"{context.device} at {context.address}"
        self._place: HttpPlace = place_of(context)
        self._authorization = authorization or (lambda: login_headers(context.login))
        self._timeout_s, self._clock = context.timeout_s, clock
        self.failures = Failures(self.name, explain)
        self._ca_file, self._most_bytes = ca_file, most_bytes
        self._turn = threading.Lock()
        self._holder: int | None = None
        self._tls: ssl.SSLContext | None = None
        self._deadline = CallDeadline(context.timeout_s, clock)
        self._connection: HttpConnection | None = None

    @property
    def origin(self) -> str:
        """The origin of the device's URLs: scheme, host and port."""
        return self._place.origin

    @contextlib.contextmanager
    def call(self, most_s: float = math.inf) -> Iterator[None]:
        """Set one deadline for the block, and close the connection at its end.

        The deadline is ``context.timeout_s`` from now, or ``most_s`` if that is less. A nested call belongs to the
        outer one.

        Raises:
            DeviceUnreachableError: another call used up the time; nothing was sent.
        """
        if self._holder == threading.get_ident():
            yield
            return
        timeout_s = min(self._timeout_s, most_s)
        # Set before the turn is awaited, so that the wait for other threads counts too.
        deadline = CallDeadline(timeout_s, self._clock)
        if not self._turn.acquire(timeout=timeout_s):
            raise DeviceUnreachableError(f"{self.name}: another call is still in progress; nothing was sent")
        try:
            self._holder, self._deadline = threading.get_ident(), deadline
            yield
        finally:
            self.close()
            self._holder = None
            self._turn.release()

    def left_s(self) -> float:
        """Seconds left of the call; 0 after its deadline."""
        try:
            return self._deadline.left()
        except TimeoutError:
            return 0.0

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """The answer to a reading, with status 2xx. Redirects within the device are followed.

        Raises:
            DeviceUnreachableError: no complete answer in time, or a status of 5xx.
            DeviceLoginError: 401 or 403.
            DeviceRefusedError: any other status, or a redirect to another host.
        """
        with self.call():
            answer = self.read(path, headers=self._authorization() if headers is None else headers)
        self.failures.require_read(answer.status, answer.body, path)
        return answer

    def get_json(self, path: str) -> Any:
        """The JSON value at a path.

        Raises:
            DeviceUnreachableError: as :meth:`get`, or the answer is not JSON.
            DeviceRefusedError: as :meth:`get`.
        """
        return self.get(path).json()

    def send(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Send a change with a JSON body, once, on a new connection; the answer has status 2xx.

        Raises:
            DeviceUnreachableError: no connection; nothing was sent.
            DeviceLoginError: 401 or 403; nothing was done.
            DeviceBusyError: 423 or 429; nothing was done.
            DeviceRefusedError: any other 4xx, 3xx or 501; nothing was done.
            OutcomeUnknownError: it was sent, and no answer says whether it was done (5xx included).
        """
        with self.call():
            try:
                shown = self._authorization() if headers is None else headers
                answer = self.exchange(method, path, body, headers=shown)
            except LostAnswerError as lost:
                raise self.failures.unknown(f"then {lost}") from None
        self.failures.require_done(answer.status, answer.body)
        return answer

    def read(self, path: str, *, headers: Mapping[str, str]) -> HttpAnswer:
        """The answer to a reading, whatever its status; redirects within the device are followed.

        Raises: as :meth:`get`, except for the status.
        """
        for _ in range(_MOST_REDIRECTS):
            answer = self._read_once(path, headers)
            if answer.status not in _REDIRECTS:
                return answer
            there = answer.headers.get("location", "")
            onwards = same_origin_path(there, self.origin)
            if onwards is None:
                raise DeviceRefusedError(
                    f"{self.name} redirects to another host: {there[:100]!r}",
                    hint="write the device's own address into the inventory",
                )
            path = onwards
        raise DeviceRefusedError(f"{self.name} redirects too many times: {path}")

    def exchange(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str]) -> HttpAnswer:
        """Send one request and return its answer, whatever its status; inside :meth:`call` only.

        Raises:
            DeviceUnreachableError: no connection; nothing was sent.
            DeviceRefusedError: the path is not valid; nothing was sent.
            LostAnswerError: no complete answer came. It is not a DeviceError: raise ``failures.unknown(...)`` for a
                change, DeviceUnreachableError for anything else.
        """
        if not is_path(path):
            raise DeviceRefusedError(f"{self.name}: {path[:100]!r} is not a path; nothing was sent")
        content = None if body is None else json.dumps(body).encode()
        if method != "GET":  # the device may close a reused connection at any moment
            self.close()
        stale = self._connection is not None
        connection = self._connection = self._connection or self._connected()
        connection.renew()
        try:
            require_permission()
            answer, ended = self._asked(connection, method, path, content, headers)
        except _BROKEN as error:
            self.close()
            # A timeout is not a sign of a stale connection, and it leaves no time to ask again.
            raise LostAnswerError(reason(error), stale=stale and not isinstance(error, TimeoutError)) from None
        except BaseException:
            self.close()
            raise
        if ended:
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.hang_up()

    def _asked(
        self, connection: HttpConnection, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HttpAnswer, bool]:
        spoken = http.client.HTTPConnection(self._place.host, self._place.port)
        # Otherwise http.client would connect by itself, past the device's way, when it finds no socket.
        spoken.auto_open = 0
        spoken.sock = cast("socket.socket", connection)  # it has the methods used here
        # http.client takes this for plain HTTP, and would add the port to the name of a host with TLS.
        shown = {**_ALWAYS, "Host": self.origin.partition("://")[2], **headers}
        if content is not None:
            shown["Content-Type"] = "application/json"
        spoken.request(method, path, content, shown)
        with spoken.getresponse() as response:
            # http.client gives up its socket if the answer says that the server closes the connection.
            ended = spoken.sock is None
            names = {name.lower(): value for name, value in response.headers.items()}
            return HttpAnswer(response.status, names, response.read(), self.name), ended

    def _read_once(self, path: str, headers: Mapping[str, str]) -> HttpAnswer:
        try:
            try:
                return self.exchange("GET", path, headers=headers)
            except LostAnswerError as lost:
                if not lost.stale:
                    raise
            # A server may close an idle connection at any time; repeating a reading changes nothing.
            return self.exchange("GET", path, headers=headers)
        except LostAnswerError as lost:
            raise DeviceUnreachableError(f"{self.name}: no answer to GET {path}: {lost}") from None

    def _connected(self) -> HttpConnection:
        try:
            if self._place.secure and self._tls is None:
                self._tls = ssl.create_default_context(cafile=self._ca_file)
            return HttpConnection(self._place, self._tls, self._deadline, self._most_bytes)
        except (OSError, ValueError) as error:
            raise self.failures.not_connected(self._place.host, error) from error
