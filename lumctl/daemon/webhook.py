"""One POST to a receiver: verified where it is https, cut off when it takes too long, following no redirect.

``http.client`` follows none by itself and uses no proxy: what is posted goes to the host that was named, or nowhere.
"""

import http.client
import socket
import ssl
import threading
from contextlib import suppress

from lumctl import __version__
from lumctl.daemon.settings import Webhook
from lumctl.errors import LumctlError

TIMEOUT_S = 10.0
_ASKS_TO_WAIT = frozenset({408, 425, 429})
_LONGEST_WAIT_S = 300.0


class DeliveryError(LumctlError):
    """A receiver did not take a notification. ``again``: it may later; ``wait_s`` is what it asked for."""

    def __init__(self, message: str, *, again: bool, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.again = again
        self.wait_s = wait_s


def post(webhook: Webhook, body: bytes, *, timeout_s: float = TIMEOUT_S) -> None:
    """Deliver one JSON document.

    Raises:
        DeliveryError: it was not taken. Neither the path of the URL nor the token stands in its text.
    """
    connection = _connection(webhook, timeout_s)
    # The time limit of a socket holds for each piece that it receives: one who answers byte by byte is cut off here.
    late = threading.Event()
    end = threading.Timer(timeout_s, _cut, (connection, late))
    end.daemon = True
    end.start()
    try:
        connection.request("POST", webhook.path, body, _headers(webhook))
        with connection.getresponse() as answer:
            status, wait_s = answer.status, _wait_s(answer.getheader("Retry-After"))
    except OSError as error:
        said = error.strerror or (str(error) if isinstance(error, (TimeoutError, socket.gaierror)) else "")
        raise DeliveryError(f"{webhook.host}: {said or type(error).__name__}", again=True) from None
    except http.client.HTTPException as error:
        raise DeliveryError(f"{webhook.host}: no answer in HTTP ({type(error).__name__})", again=True) from None
    finally:
        end.cancel()
        connection.close()
    if late.is_set():  # an answer that was cut off can look like a whole one
        raise DeliveryError(f"{webhook.host}: no whole answer within {timeout_s:g} s", again=True)
    _judge(webhook.host, status, wait_s)


def _judge(host: str, status: int, wait_s: float) -> None:
    if http.client.OK <= status < http.client.MULTIPLE_CHOICES:
        return
    if status < http.client.BAD_REQUEST:
        raise DeliveryError(f"{host} answered {status}: it sends us elsewhere, and nobody follows", again=False)
    again = status >= http.client.INTERNAL_SERVER_ERROR or status in _ASKS_TO_WAIT
    raise DeliveryError(f"{host} answered {status}", again=again, wait_s=wait_s)


def _connection(webhook: Webhook, timeout_s: float) -> http.client.HTTPConnection:
    if webhook.https:
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(webhook.host, webhook.port, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(webhook.host, webhook.port, timeout=timeout_s)


def _headers(webhook: Webhook) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "User-Agent": f"lumctl/{__version__}", "Connection": "close"}
    return headers | ({"Authorization": f"Bearer {webhook.token}"} if webhook.token else {})


def _cut(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    opened: socket.socket | None = connection.sock
    with suppress(OSError):
        if opened is not None:
            opened.shutdown(socket.SHUT_RDWR)


def _wait_s(retry_after: str | None) -> float:
    """Seconds to wait; the other form, a date, is passed over: the back-off is a wait as well."""
    return min(float(retry_after), _LONGEST_WAIT_S) if retry_after and retry_after.isdecimal() else 0.0
