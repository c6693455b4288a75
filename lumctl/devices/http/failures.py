"""What an answer, or the lack of one, means in the words of the device layer."""

import ssl
from collections.abc import Callable
from http import HTTPStatus

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceLoginError,
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
)
from lumctl.devices.http.texts import one_line

_LOGIN = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_BUSY = frozenset({HTTPStatus.LOCKED, HTTPStatus.TOO_MANY_REQUESTS})
_LOGIN_HINT = "name a user who may do this, and the secret, in the device's login: lumctl-inventory(5)"
_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's codes for a certificate that is for another host name, and for another IP address."""


class Failures:
    """Errors about one device; ``name`` stands in every message, ``explain`` finds the device's words in a body."""

    def __init__(self, name: str, explain: Callable[[bytes], str]) -> None:
        self._name = name
        self._explain = explain

    def require_read(self, status: int, body: bytes, path: str) -> None:
        """Raise what the answer to a reading means, unless it is one."""
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        message = f"{self._name}: {path} is answered with {self._said(status, body)}"
        if status in _LOGIN:
            raise DeviceLoginError(message, hint=_LOGIN_HINT)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise DeviceRefusedError(message)
        raise DeviceUnreachableError(message)

    def require_done(self, status: int, body: bytes) -> None:
        """Raise what the answer to a change means, unless the device took it."""
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        said = self._said(status, body)
        message = f"{self._name} refuses it: {said}"
        if status in _LOGIN:
            raise DeviceLoginError(message, hint=_LOGIN_HINT)
        if status in _BUSY:
            raise DeviceBusyError(message)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.NOT_IMPLEMENTED:
            raise DeviceRefusedError(message)
        raise self.unknown(f"and the answer was {said}")

    def unknown(self, what: str) -> OutcomeUnknownError:
        """It was sent, and whether it was done is not known."""
        return OutcomeUnknownError(
            f"{self._name}: it was sent, {what}; it may or may not have been done",
            hint="read the device before anything is sent again",
        )

    def not_connected(self, host: str, error: OSError | ValueError) -> DeviceUnreachableError:
        """Why there is no connection; nothing was sent."""
        hint = None
        why = reason(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
            hint = "have $SSL_CERT_FILE name a file with the certificate of the authority that signed it"
            if error.verify_code in _OTHER_NAME:
                hint = f"the certificate is for another name than {host}: write the name that it is for as the address"
        elif isinstance(error, ssl.SSLError):
            hint = "what answers there may not speak TLS: check the port"
        return DeviceUnreachableError(f"{self._name}: {why}; nothing was sent", hint=hint)

    def _said(self, status: int, body: bytes) -> str:
        try:
            phrase = HTTPStatus(status).phrase.lower()
        except ValueError:
            phrase = ""
        return f"{status} {self._explain(body) or phrase}".rstrip()


def reason(error: Exception) -> str:
    """Why a connection failed, in few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return one_line(error.strerror.lower())
    return one_line(str(error).lower()) or type(error).__name__
