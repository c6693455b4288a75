"""Errors in the URL of a rack's store, as far as its text shows them. No message repeats a secret in it."""

import re
from collections.abc import Iterator

from lumctl.inventory.problems import nearest

_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
_SCHEMES = (*_POSTGRES, "sqlite")
_URL = re.compile(
    r"(?P<scheme>[^:/?#]*)://(?:(?P<user>[^:/]*)(?::(?P<password>[^@]*))?@)?"
    r"(?P<host>\[[^/?]+\]|[^/:?]*)(?::(?P<port>[^/?]*))?(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_IN_QUERY = re.compile(r"(?:^|[?&])[^=&]*password=", re.IGNORECASE)
_WITHOUT_SLASHES = re.compile(r"(?:postgres(?:ql)?|sqlite)(?:\+\w*)?:", re.IGNORECASE)
_HIGHEST_PORT = 65535
_SUCH_AS = "such as postgresql://user@host/database"

Complaint = tuple[str, str]
"""What was found and what was expected, and a hint."""


def is_url(store: str) -> bool:
    """Whether a store is named by a URL, or by a text that was meant as one; otherwise it is a folder."""
    return "://" in store or _WITHOUT_SLASHES.match(store) is not None


def complaints(store: str) -> Iterator[Complaint]:
    """The errors in a URL; none if it can name a store."""
    read = _URL.fullmatch(store)
    if read is None:
        yield "found a database URL without :// after its first word", _SUCH_AS
        return
    scheme = read["scheme"]
    if read["password"] is not None or _IN_QUERY.search(read["query"] or ""):
        yield (
            "found a database URL with a password in it, expected one without",
            "keep it in ~/.pgpass, in the file that $PGPASSFILE names, or in the URL in $LUMCTL_STATE",
        )
    if scheme not in _SCHEMES:
        near = nearest(scheme, _SCHEMES)
        yield (
            f"found a database URL that begins with {scheme}://, expected a folder, postgresql:// or sqlite://",
            f"did you mean {near}://?" if near else _SUCH_AS,
        )
    elif wrong := (_of_sqlite(read) if scheme == "sqlite" else _of_postgres(read)):
        yield wrong


def _of_sqlite(read: re.Match[str]) -> Complaint | None:
    if read["host"] or read["port"] or read["user"] is not None:
        return "found an sqlite:// URL with a host, expected sqlite:///FILE", "an absolute path has four slashes"
    if (read["database"] or ":memory:") == ":memory:":
        return (
            "found an sqlite:// URL without a file: it would be invisible to other processes",
            "such as sqlite:////var/lib/x.db",
        )
    return None


def _of_postgres(read: re.Match[str]) -> Complaint | None:
    port = read["port"]
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= _HIGHEST_PORT):
        # The port is not shown, because it may be a password if the host was left out.
        return f"found a database URL with an invalid port, expected a number up to {_HIGHEST_PORT}", _SUCH_AS
    if "/" in (read["database"] or ""):
        return "found a database URL with more than one name after the host, expected one database", _SUCH_AS
    for said in filter(None, (read["query"] or "").split("&")):
        if "=" not in said:
            return "found a database URL with an option that has no value, expected NAME=VALUE after ?", _SUCH_AS
    if any(character.isspace() or not character.isprintable() for character in read.string):
        return "found a database URL with a blank in it, expected none", "write %20 for a blank"
    return None
