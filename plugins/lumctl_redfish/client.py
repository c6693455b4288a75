"""A Redfish client of one controller: lumctl's HTTP client with the sessions and documents of Redfish."""

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
    """The login to a controller, and the headers that authenticate us. ``path`` is the resource of our session."""

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
        """The path and the body of the login request; the path is ``None`` if the controller has no sessions.

        Raises:
            DeviceLoginError: there is no secret.
        """
        return link(root, "Links", "Sessions"), {"UserName": self._login.user, "Password": self._login.secret()}

    def logged_in(self, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Handle the answer to our login, and return the headers; without a token, use the password instead.

        Raises:
            DeviceLoginError: the controller refused the user or the secret.
        """
        if status in _WRONG:
            said = complaint(parsed(body))
            raise DeviceLoginError(
                f"{self._name} refuses the login of {self._login.user}: {status}{f' {said}' if said else ''}",
                hint="check the user and the secret in the device's login: lumctl-inventory(5)",
            )
        token = headers.get(_TOKEN.lower(), "")
        fit = 0 < len(token) <= _MOST_TOKEN and all("!" <= each <= "~" for each in token)
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES or not fit:
            return self.by_password()
        # Controllers name the new session in the header or in the body.
        self.path = path_of(headers.get("location"), self._origin) or link(parsed(body))
        self._headers = {_TOKEN: token}
        return self._headers

    def by_password(self) -> dict[str, str]:
        """Send the password with each request from now on, and return the headers.

        Raises:
            DeviceLoginError: there is no secret.
        """
        pair = f"{self._login.user}:{self._login.secret()}".encode()
        self._headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return self._headers

    def expired(self) -> bool:
        """Forget our session; return false if there was no session that could have expired."""
        held, self._headers, self.path = self._headers, None, None
        return bool(held and _TOKEN in held)


ROOT = "/redfish/v1/"
_FAREWELL_S = 2.0
_UNAUTHORIZED = 401
_ALWAYS = {"OData-Version": "4.0"}


class RedfishClient:
    """A client of one controller. Use it inside ``with client.call():``; calls of several threads run one by one."""

    def __init__(self, context: DriverContext, *, clock: Clock = time.monotonic) -> None:
        self._http = HttpClient(context, explain=lambda body: complaint(parsed(body)), clock=clock)
        self.name = self._http.name
        self._sessions = Sessions(context.login, self.name, self._http.origin)
        self._root: Json | None = None

    @contextlib.contextmanager
    def call(self, most_s: float = math.inf) -> Iterator[None]:
        """Give all requests inside one deadline, and close the connection at the end.

        Raises:
            DeviceUnreachableError: another call takes all the time; nothing was sent.
        """
        with self._http.call(most_s):
            yield

    def root(self) -> Json:
        """The service root, which needs no login; it is read once."""
        if self._root is None:
            self._root = self._document(self._http.read(ROOT, headers=_ALWAYS), ROOT)
        return self._root

    def get(self, path: str) -> Json:
        """The document at a path.

        Raises:
            DeviceUnreachableError: no answer in time, or an answer that is not Redfish.
            DeviceLoginError: we lack the permission to read it.
            DeviceRefusedError: there is no such document.
        """
        answer = self._http.read(path, headers=self._headers())
        if answer.status == _UNAUTHORIZED and self._sessions.expired():
            answer = self._http.read(path, headers=self._headers())
        return self._document(answer, path)

    def post(self, path: str, body: Json) -> None:
        """Post an action; it is sent once only.

        Raises:
            DeviceUnreachableError: no connection; nothing was sent.
            DeviceLoginError, DeviceRefusedError: the controller refused; nothing was done.
            OutcomeUnknownError: the action was sent, and no answer says whether it was done.
        """
        headers = self._headers()
        try:
            answer = self._http.exchange("POST", path, body, headers=headers)
            if answer.status == _UNAUTHORIZED and self._sessions.expired():
                # 401 says that nothing was done, so the action may be sent again.
                headers = self._headers()
                answer = self._http.exchange("POST", path, body, headers=headers)
        except LostAnswerError as lost:
            raise self._http.failures.unknown(f"then {lost}") from None
        self._http.failures.require_done(answer.status, answer.body)

    def close(self) -> None:
        """End our session with the controller, if there is one; a second call does nothing."""
        with contextlib.suppress(DeviceError, LostAnswerError), self.call(_FAREWELL_S):
            path, headers = self._sessions.path, self._sessions.headers()
            # First, so that a second close() sends nothing, however this one ends.
            self._sessions.expired()
            if path is not None:
                self._http.exchange("DELETE", path, headers={**_ALWAYS, **(headers or {})})

    def _headers(self) -> dict[str, str]:
        """The headers that authenticate us; logs in first if needed."""
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
                f"{self.name}: its answer at {path} is not Redfish",
                hint="check the address: it may be another service",
            )
        return document
