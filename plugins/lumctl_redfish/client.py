"""Asks one controller by Redfish: lumctl's HTTP client with the sessions and documents that Redfish has."""

import base64
import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from lumctl.devices.errors import DeviceError, DeviceLoginError, DeviceUnreachableError
from lumctl.devices.http import Clock, HttpAnswer, HttpClient, LostAnswerError
from lumctl.devices.logins import Login
from lumctl.devices.protocols import DriverContext
from lumctl_redfish.document import Json, complaint, link, parsed, path_of

_TOKEN = "X-Auth-Token"  # noqa: S105 - the name of a header
_MOST_TOKEN = 4096
_WRONG = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class Sessions:
    """The headers that show who we are, and how they are come by. ``path`` is where our session can be ended."""

    def __init__(self, login: Login, name: str, origin: str) -> None:
        self._login = login
        self._name = name
        self._origin = origin
        self._headers: dict[str, str] | None = None
        self.path: str | None = None

    def headers(self) -> dict[str, str] | None:
        """The headers; ``None`` if we must log in first."""
        return self._headers if self._login.user else {}

    def login_request(self, root: Json) -> tuple[str | None, dict[str, Any]]:
        """Where to log in, and with what; nowhere if the controller has no sessions.

        Raises:
            DeviceLoginError: there is no secret.
        """
        return link(root, "Links", "Sessions"), {"UserName": self._login.user, "Password": self._login.secret()}

    def logged_in(self, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Take the answer to our login.

        Raises:
            DeviceLoginError: the controller does not let us in.
        """
        if status in _WRONG:
            said = complaint(parsed(body))
            raise DeviceLoginError(
                f"{self._name} does not let in {self._login.user}: {status}{f' {said}' if said else ''}",
                hint="check the user and the secret in the device's login: lumctl-inventory(5)",
            )
        token = headers.get(_TOKEN.lower(), "")
        fit = 0 < len(token) <= _MOST_TOKEN and all("!" <= each <= "~" for each in token)
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES or not fit:
            return self.by_password()
        self.path = path_of(headers.get("location"), self._origin) or link(parsed(body))
        self._headers = {_TOKEN: token}
        return self._headers

    def by_password(self) -> dict[str, str]:
        """Show the password with each request.

        Raises:
            DeviceLoginError: there is none.
        """
        pair = f"{self._login.user}:{self._login.secret()}".encode()
        self._headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return self._headers

    def expired(self) -> bool:
        """Forget our session; false if there was none that could have expired."""
        held, self._headers, self.path = self._headers, None, None
        return bool(held and _TOKEN in held)


ROOT = "/redfish/v1/"
_FAREWELL_S = 2.0
_UNAUTHORIZED = 401
_ALWAYS = {"OData-Version": "4.0"}


class RedfishClient:
    """One controller. Use it inside ``with client.call():``, which has one deadline; calls of threads take turns."""

    def __init__(self, context: DriverContext, *, clock: Clock = time.monotonic) -> None:
        self._http = HttpClient(context, explain=lambda body: complaint(parsed(body)), clock=clock)
        self.name = self._http.name
        self._sessions = Sessions(context.login, self.name, self._http.origin)
        self._root: Json | None = None

    @contextlib.contextmanager
    def call(self, most_s: float = math.inf) -> Iterator[None]:
        """Everything that happens inside has one deadline, and the connection is closed at its end.

        Raises:
            DeviceUnreachableError: another call takes all the time; nothing was sent.
        """
        with self._http.call(most_s):
            yield

    def root(self) -> Json:
        """The service root, which any controller shows to anybody; asked for once."""
        if self._root is None:
            self._root = self._document(self._http.read(ROOT, headers=_ALWAYS), ROOT)
        return self._root

    def get(self, path: str) -> Json:
        """The document at a path.

        Raises:
            DeviceUnreachableError: no answer in time, or none that is Redfish.
            DeviceLoginError: not for us.
            DeviceRefusedError: there is no such thing.
        """
        answer = self._http.read(path, headers=self._headers())
        if answer.status == _UNAUTHORIZED and self._sessions.expired():
            answer = self._http.read(path, headers=self._headers())
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
            answer = self._http.exchange("POST", path, body, headers=headers)
            if answer.status == _UNAUTHORIZED and self._sessions.expired():
                headers = self._headers()
                answer = self._http.exchange("POST", path, body, headers=headers)
        except LostAnswerError as lost:
            raise self._http.failures.unknown(f"then {lost}") from None
        self._http.failures.require_done(answer.status, answer.body)

    def close(self) -> None:
        """End our session with the controller, if there is one; a second call does nothing."""
        with contextlib.suppress(DeviceError, LostAnswerError), self.call(_FAREWELL_S):
            path, headers = self._sessions.path, self._sessions.headers()
            self._sessions.expired()
            if path is not None:
                self._http.exchange("DELETE", path, headers={**_ALWAYS, **(headers or {})})

    def _headers(self) -> dict[str, str]:
        """What shows who we are; logs in first where that is needed."""
        headers = self._sessions.headers()
        return {**_ALWAYS, **(self._logged_in() if headers is None else headers)}

    def _logged_in(self) -> dict[str, str]:
        path, body = self._sessions.login_request(self.root())
        if path is None:
            return self._sessions.by_password()
        try:
            answer = self._http.exchange("POST", path, body, headers=_ALWAYS)
        except LostAnswerError as lost:
            raise DeviceUnreachableError(f"{self.name}: no answer to our login: {lost}") from None
        return self._sessions.logged_in(answer.status, answer.headers, answer.body)

    def _document(self, answer: HttpAnswer, path: str) -> Json:
        self._http.failures.require_read(answer.status, answer.body, path)
        document = parsed(answer.body)
        if document is None:
            raise DeviceUnreachableError(
                f"{self.name}: what it says at {path} is no Redfish",
                hint="check the address: it may be another service",
            )
        return document
