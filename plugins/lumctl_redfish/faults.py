"""What an answer, or the lack of one, means in the words of the device layer."""

import ssl
from http import HTTPStatus

from lumctl.devices.errors import (
    DeviceLoginError,
    DeviceRefusedError,
    DeviceUnreachableError,
    OutcomeUnknownError,
)
from lumctl_redfish.document import complaint, one_line, parsed

_LOGIN = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_LOGIN_HINT = "name a user who may do this, and the secret, in the device's login: lumctl-inventory(5)"


class Judge:
    """Judges the answers of one controller; ``name`` stands in every message."""

    def __init__(self, name: str) -> None:
        self._name = name

    def reading(self, status: int, body: bytes, path: str) -> None:
        """Raise what the answer to a reading means, unless it is one."""
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return
        message = f"{self._name}: {path} is answered with {_said(status, body)}"
        if status in _LOGIN:
            raise DeviceLoginError(message, hint=_LOGIN_HINT)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise DeviceRefusedError(message)
        raise DeviceUnreachableError(message)

    def action(self, status: int, body: bytes) -> None:
        """Raise what the answer to an action means, unless it was accepted."""
        if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            return
        said = _said(status, body)
        if status in _LOGIN:
            raise DeviceLoginError(f"{self._name} refuses it: {said}", hint=_LOGIN_HINT)
        if status < HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.NOT_IMPLEMENTED:
            raise DeviceRefusedError(f"{self._name} refuses it: {said}")
        raise self.unknown(f"and the answer was {said}")

    def unknown(self, what: str) -> OutcomeUnknownError:
        """It was sent, and whether it was done is not known."""
        return OutcomeUnknownError(
            f"{self._name}: it was sent, {what}; it may or may not have been done",
            hint="read the machine's power before anything is sent again",
        )


def not_connected(name: str, host: str, error: OSError | ValueError) -> DeviceUnreachableError:
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
    return DeviceUnreachableError(f"{name}: {why}; nothing was sent", hint=hint)


_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's codes for a certificate that is for another host name, and for another IP address."""


def reason(error: Exception) -> str:
    """Why a connection failed, in few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return one_line(error.strerror.lower())
    # urllib3 gives its words first and the exception that it caught second, which says the same again.
    words = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return one_line(words.lower()) or type(error).__name__


def _said(status: int, body: bytes) -> str:
    words = complaint(parsed(body))
    try:
        phrase = HTTPStatus(status).phrase.lower()
    except ValueError:
        phrase = ""
    return f"{status} {words or phrase}".rstrip()
