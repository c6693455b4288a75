"""Translates HTTP answers and lost connections into errors of the device layer."""

import ssl
from collections.abc import Callable
from http import HTTPStatus

from lumctl import tcp
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
_LOGIN_HINT = "set a permitted user and the secret in the device's login: lumctl-inventory(5)"
_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's codes for a certificate that belongs to another host name or another IP address."""


class Failures:
    """Errors about one device. Messages contain ``name``; ``explain`` extracts the message of the device."""

    def __init__(self, name: str, explain: Callable[[bytes], str]) -> None:
        self._name = name
        self._explain = explain

    def require_read(self, status: int, body: bytes, path: str) -> None:
        """Raise the error for the answer to a reading, if the answer reports one."""
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        message = f"{self._name}: {path} answered {self._said(status, body)}"
        if status in _LOGIN:
            raise DeviceLoginError(message, hint=_LOGIN_HINT)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise DeviceRefusedError(message)
        raise DeviceUnreachableError(message)

    def require_done(self, status: int, body: bytes) -> None:
        """Raise the error for the answer to a change, unless the device accepted the change."""
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        said = self._said(status, body)
        message = f"{self._name} refused the change: {said}"
        if status in _LOGIN:
            raise DeviceLoginError(message, hint=_LOGIN_HINT)
        if status in _BUSY:
            raise DeviceBusyError(message)
        # 501: the device does not know the request, so it did nothing. Any other 5xx may follow half of a change.
        if status < HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.NOT_IMPLEMENTED:
            raise DeviceRefusedError(message)
        raise self.unknown(f"and the answer was {said}")

    def unknown(self, what: str) -> OutcomeUnknownError:
        """The error for a change that was sent but whose outcome is unknown."""
        return OutcomeUnknownError(
            f"{self._name}: the change was sent, {what}; it may or may not have been applied",
            hint="read the device before you send anything again",
        )

    def not_connected(self, host: str, error: OSError | ValueError) -> DeviceUnreachableError:
        """The error for a connection that could not be made; nothing was sent."""
        hint = None
        why = reason(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
            hint = (
                "set $SSL_CERT_FILE to a file with the certificate of the authority that signed the server's "
                "certificate"
            )
            if error.verify_code in _OTHER_NAME:
                hint = f"the certificate does not name {host}: use the name in the certificate as the address"
        elif isinstance(error, ssl.SSLError):
            hint = "the service there may not use TLS: check the port"
        return DeviceUnreachableError(f"{self._name}: {why}; nothing was sent", hint=hint)

    def _said(self, status: int, body: bytes) -> str:
        try:
            phrase = HTTPStatus(status).phrase.lower()
        except ValueError:
            phrase = ""
        return f"{status} {self._explain(body) or phrase}".rstrip()


def reason(error: Exception) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError) or (isinstance(error, OSError) and error.strerror):
        return one_line(tcp.reason(error))
    return one_line(str(error).lower()) or type(error).__name__
