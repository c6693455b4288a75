"""Receivers over HTTP: webhooks, and Prometheus' Alertmanager by its API version 2.

URL and token come from the environment or from files, never from the inventory, and are never printed. With https,
the certificate is verified. A POST that takes too long is cut off. ``http.client`` follows no redirect and uses no
proxy: a message goes to the configured host, or nowhere.

For Alertmanager, each open case is an alert. Alertmanager keeps alerts only in memory and ends each at its ``endsAt``.
So all open cases are posted again each minute, which restores them after a restart of Alertmanager. Their ``endsAt`` is
a day ahead, so that no alert ends because lumctl was down for an hour.
"""

import http.client
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lumctl import __version__
from lumctl.daemon.notifications.message import CaseOccasion, Message, Notification, text_of
from lumctl.daemon.process import ErrorLog
from lumctl.errors import LumctlError, UsageError
from lumctl.health.states import State
from lumctl.printable import printable_values
from lumctl.tcp import unknown_name

URL_VARIABLE = "LUMCTL_WEBHOOK_URL"
TOKEN_VARIABLE = "LUMCTL_WEBHOOK_TOKEN"  # noqa: S105 - the name of a variable, not its value
_MOST_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver. URL and token are secrets: many receivers accept messages from everyone who knows the URL."""

    https: bool
    host: str
    port: int
    path: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def webhook_from(url_file: Path | None, token_file: Path | None) -> Webhook | None:
    """The receiver from the files, or else from the environment; ``None`` if neither configures one.

    Raises:
        UsageError: a file cannot be read, the URL is invalid, or the token would cross the network unencrypted.
    """
    url = _secret(url_file, URL_VARIABLE)
    token = _secret(token_file, TOKEN_VARIABLE)
    if url is None:
        if token is not None:
            raise UsageError("a webhook has a token but no URL", hint=f"set ${URL_VARIABLE}")
        return None
    return parse_webhook(url, token)


def webhook_in(url_file: Path | None, token_file: Path | None) -> Webhook:
    """The receiver from these files. The environment is not used.

    Raises:
        UsageError: as :func:`webhook_from`.
    """
    if url_file is None:
        raise UsageError("it has no URL")
    url = _secret(url_file, "")
    token = _secret(token_file, "") if token_file is not None else None
    return parse_webhook(url or "", token)


def alertmanager_at(url: str, token_file: Path | None) -> Webhook:
    """The address of alerts at the Alertmanager with this URL.

    Raises:
        UsageError: as :func:`webhook_from`.
    """
    token = _secret(token_file, "") if token_file is not None else None
    return parse_webhook(f"{url.rstrip('/')}/api/v2/alerts", token, of="--alertmanager")


def parse_webhook(url: str, token: str | None = None, *, of: str = "the webhook") -> Webhook:
    """A receiver from its URL. Errors do not show the URL.

    Raises:
        UsageError: the URL is invalid, or the token would cross the network unencrypted.
    """
    wrong = UsageError(f"the URL of {of} must start with http:// or https://", hint="https://HOST[:PORT]/PATH")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _printable(url):
        raise wrong
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"the URL of {of} contains a user or a password", hint=f"use a token: ${TOKEN_VARIABLE}")
    if token is not None and not _printable(token):
        raise UsageError(f"the token of {of} contains characters that are not allowed in a header")
    https = parts.scheme == "https"
    if token is not None and not https and not _loopback(parts.hostname):
        raise UsageError(f"the token of {of} would cross the network unencrypted", hint="use an https:// URL")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Webhook(https, parts.hostname, port or (443 if https else 80), path, token)


def _secret(file: Path | None, variable: str) -> str | None:
    if file is None:
        return os.environ.get(variable, "").strip() or None
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_BYTES).decode("ascii", errors="replace").strip()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    if not text:
        raise UsageError(f"{file} is empty")
    return text


def _printable(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


TIMEOUT_S = 10.0
_ASKS_TO_WAIT = frozenset({408, 425, 429})
_LONGEST_WAIT_S = 300.0


class DeliveryError(LumctlError):
    """A receiver did not accept a message. ``again``: a later attempt may succeed; ``wait_s``: a requested pause."""

    def __init__(self, message: str, *, again: bool, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.again = again
        self.wait_s = wait_s


def post(webhook: Webhook, body: bytes, *, timeout_s: float = TIMEOUT_S) -> None:
    """Deliver one JSON document.

    Raises:
        DeliveryError: the document was not accepted. The error shows neither the URL's path nor the token.
    """
    connection = _connection(webhook, timeout_s)
    # A socket's time limit applies to each received piece. This cuts off a receiver that answers byte by byte.
    late = threading.Event()
    end = threading.Timer(timeout_s, _cut, (connection, late))
    end.daemon = True
    end.start()
    try:
        connection.request("POST", webhook.path, body, _headers(webhook))
        with connection.getresponse() as answer:
            status, wait_s = answer.status, _wait_s(answer.getheader("Retry-After"))
    except OSError as error:
        said = error.strerror or (str(error) if isinstance(error, TimeoutError) else "")
        if isinstance(error, socket.gaierror):
            said = unknown_name(webhook.host, error)
        raise DeliveryError(f"{webhook.host}: {said or type(error).__name__}", again=True) from None
    except http.client.HTTPException as error:
        # Only the error's name: some of these errors quote the URL.
        raise DeliveryError(f"{webhook.host}: no valid HTTP answer ({type(error).__name__})", again=True) from None
    finally:
        end.cancel()
        connection.close()
    if late.is_set():  # an answer that was cut off may look complete
        raise DeliveryError(f"{webhook.host}: no complete answer within {timeout_s:g} s", again=True)
    _judge(webhook.host, status, wait_s)


def _judge(host: str, status: int, wait_s: float) -> None:
    if http.client.OK <= status < http.client.MULTIPLE_CHOICES:
        return
    if status < http.client.BAD_REQUEST:
        raise DeliveryError(f"{host} answered {status}, a redirect, and redirects are not followed", again=False)
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
    # Without a socket yet, the time limit of connecting applies.
    opened: socket.socket | None = connection.sock
    with suppress(OSError):
        if opened is not None:
            # close() would not wake the thread that waits for an answer.
            opened.shutdown(socket.SHUT_RDWR)


def _wait_s(retry_after: str | None) -> float:
    """Seconds to wait, from a ``Retry-After`` header. A date is ignored: the outbox waits in any case."""
    return min(float(retry_after), _LONGEST_WAIT_S) if retry_after and retry_after.isdecimal() else 0.0


AGAIN_EVERY_S = 60.0
_LASTS_S = 86400.0
_EVENT_LASTS_S = 3600.0
"""How long an alert about an event lasts. An alert about a state lasts as long as the state."""
_SEVERITIES = {State.FAILED: "critical"}

Alert = dict[str, Any]


class Alertmanager:
    """One Alertmanager. In a cluster, each member gets all alerts: the members remove duplicates themselves."""

    def __init__(self, webhook: Webhook, still_open: Callable[[], Sequence[Notification]], errors: ErrorLog) -> None:
        """``still_open`` returns the open cases as last sent."""
        self._webhook = webhook
        self._still_open = still_open
        self._errors = errors
        self._posting = threading.Lock()
        """Held while open cases are looked up and posted, so that an older state is never posted after a case's end."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="lumctl-alertmanager", daemon=True)

    @property
    def place(self) -> str:
        """The name under which this receiver's errors are reported."""
        return f"alertmanager {self._webhook.host}:{self._webhook.port}"

    def start(self) -> None:
        """Post open cases each minute from now on."""
        self._thread.start()

    def close(self) -> None:
        """Post nothing more."""
        self._ended.set()

    def deliver(self, message: Message) -> None:
        """Post a message.

        Raises:
            DeliveryError: the message was not accepted.
        """
        alerts = alerts_of(message.about) if message.about is not None else [_autopilot_alert(message)]
        with self._posting:
            self._post(alerts)

    def post_open(self, at: float) -> None:
        """Post all cases that are open, as of this time (seconds since the epoch).

        Raises:
            DeliveryError: the cases were not accepted.
        """
        with self._posting:
            # For Alertmanager, an acknowledged case has ended: else it would alert again and again.
            open_now = [(each, at if each.case.silent else at + _LASTS_S) for each in self._still_open()]
            if open_now:
                self._post([_alert(each, each.after, ends_at) for each, ends_at in open_now])

    def _post(self, alerts: list[Alert]) -> None:
        post(self._webhook, json.dumps(printable_values(alerts), ensure_ascii=False).encode())

    def _repeat(self) -> None:
        while not self._ended.wait(AGAIN_EVERY_S):
            try:
                self.post_open(datetime.now(UTC).timestamp())
            except DeliveryError as error:
                self._errors.record(self.place, error)
            else:
                self._errors.resolve(self.place)


def alerts_of(notification: Notification) -> list[Alert]:
    """The alerts that a notification changes: the current one, and one of another severity that it ends."""
    if notification.occasion is CaseOccasion.RESOLVED:
        return [_alert(notification, notification.before, notification.at)]
    alerts = [_alert(notification, notification.after, notification.at + _LASTS_S)]
    if notification.occasion is CaseOccasion.WORSENED and _severity(notification.before) != _severity(
        notification.after
    ):
        alerts.insert(0, _alert(notification, notification.before, notification.at))
    return alerts


def _alert(notification: Notification, state: State, ends_at: float) -> Alert:
    """The alert of a notification. Its labels identify it: only the severity may change while the case is open.

    The rule is an annotation, because it may change with the worst finding.
    """
    case = notification.case
    advice = next((finding.advice for finding in case.findings), None)
    return {
        "labels": {
            "alertname": "lumctl",
            "severity": _severity(state),
            "component": case.component,
            "incident": case.key,
            "rack": notification.rack,
            "target": notification.target,
        },
        "annotations": {"summary": text_of(notification), "rule": case.rule} | ({"advice": advice} if advice else {}),
        "startsAt": _time(notification.opened_at),
        "endsAt": _time(ends_at),
    }


def _autopilot_alert(message: Message) -> Alert:
    """A message of the autopilot as an alert."""
    document, at = message.document, float(message.document["at"])
    return {
        "labels": {
            "alertname": "lumctl-autopilot",
            "severity": "warning",
            "occasion": str(document["occasion"]),
            "rack": str(document["rack"]),
            "target": str(document["target"]),
            "id": message.id,
        },
        "annotations": {"summary": str(document["text"])},
        "startsAt": _time(at),
        "endsAt": _time(at + _EVENT_LASTS_S),
    }


def _severity(state: State) -> str:
    return _SEVERITIES.get(state, "warning")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
