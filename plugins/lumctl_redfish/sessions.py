"""Who we are to a controller: a session of ours, or else the password with each request.

A session costs the controller less than a password each time, and is left behind only by a process that was killed: it
ends by itself then. Controllers without sessions, or without a free one, get the password with each request.
"""

import base64
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from lumctl.devices.errors import DeviceLoginError
from lumctl.devices.logins import Login
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
