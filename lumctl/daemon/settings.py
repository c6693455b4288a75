"""Where notifications go: from the environment or from files, never from the inventory, and never printed."""

import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from lumctl.errors import UsageError

URL_VARIABLE = "LUMCTL_WEBHOOK_URL"
TOKEN_VARIABLE = "LUMCTL_WEBHOOK_TOKEN"  # noqa: S105 - the name of a variable, not what is in it
_MOST_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Webhook:
    """A receiver. URL and token are secrets: many receivers take whoever knows the URL for who may post."""

    https: bool
    host: str
    port: int
    path: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def webhook_from(url_file: Path | None, token_file: Path | None) -> Webhook | None:
    """The receiver that the files name, else the environment; ``None`` if neither does.

    Raises:
        UsageError: a file cannot be read, the URL is none, or the token would cross the network in the clear.
    """
    url = _secret(url_file, URL_VARIABLE)
    token = _secret(token_file, TOKEN_VARIABLE)
    if url is None:
        if token is not None:
            raise UsageError("there is a token for a webhook and no URL", hint=f"set ${URL_VARIABLE}")
        return None
    return parse_webhook(url, token)


def webhook_in(url_file: Path | None, token_file: Path | None) -> Webhook:
    """The receiver that these files name, whatever the environment says.

    Raises:
        UsageError: as :func:`webhook_from`.
    """
    if url_file is None:
        raise UsageError("it has no URL")
    url = _secret(url_file, "")
    token = _secret(token_file, "") if token_file is not None else None
    return parse_webhook(url or "", token)


def alertmanager_at(url: str, token_file: Path | None) -> Webhook:
    """Where the Alertmanager at this URL takes alerts.

    Raises:
        UsageError: as :func:`webhook_from`.
    """
    token = _secret(token_file, "") if token_file is not None else None
    return parse_webhook(f"{url.rstrip('/')}/api/v2/alerts", token, of="--alertmanager")


def parse_webhook(url: str, token: str | None = None, *, of: str = "the webhook") -> Webhook:
    """A receiver from its URL. What is wrong is said without the URL.

    Raises:
        UsageError: it is no such URL, or the token would cross the network in the clear.
    """
    wrong = UsageError(f"the URL of {of} is no http:// or https:// URL", hint="https://HOST[:PORT]/PATH")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not _printable(url):
        raise wrong
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"the URL of {of} holds a user or a password", hint=f"use a token: ${TOKEN_VARIABLE}")
    if token is not None and not _printable(token):
        raise UsageError(f"the token of {of} holds characters that no header can carry")
    https = parts.scheme == "https"
    if token is not None and not https and not _loopback(parts.hostname):
        raise UsageError(f"the token of {of} would cross the network in the clear", hint="use an https:// URL")
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
