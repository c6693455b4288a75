"""Prometheus exporters of a host: which kinds lumctl reads, where they answer, and how an inventory names them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lumctl.inventory.document import Document, HostEntry
    from lumctl.inventory.exporter_entries import ExportersEntry
    from lumctl.inventory.scope import Scope


class Readings(StrEnum):
    """Where the readings of a host come from."""

    SHELL = "shell"
    PROMETHEUS = "prometheus"
    BOTH = "both"

    @property
    def uses_exporters(self) -> bool:
        """Whether exporters are read."""
        return self is not Readings.SHELL

    @property
    def uses_shell(self) -> bool:
        """Whether commands are run over SSH."""
        return self is not Readings.PROMETHEUS


@dataclass(frozen=True, slots=True)
class ExporterKind:
    """A program that lumctl can read: its name for people, and where it answers unless it was told otherwise."""

    program: str
    port: int
    path: str = "/metrics"
    scheme: str = "http"


EXPORTER_KINDS: Mapping[str, ExporterKind] = MappingProxyType(
    {
        "dcgm": ExporterKind("dcgm-exporter", 9400),
        "node": ExporterKind("node_exporter", 9100),
        "amd": ExporterKind("AMD device-metrics-exporter", 5000),
        "gpud": ExporterKind("gpud", 15132, path="/v1/states", scheme="https"),
    }
)
"""By their keys in the inventory."""
_USUAL = ("dcgm", "node")
"""What is read where the inventory names no exporter."""
_LOGIN = ("user", "secret_file", "secret_variable", "ca_file")
_URL = re.compile(
    r"(?P<origin>(?P<scheme>https?)://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?)(?P<path>/[!-~]*)?"
)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_MOST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Exporter:
    """One exporter of one host. ``origin`` is its scheme, host and port; ``ca_file`` replaces the machine's CAs.

    With a ``user`` the secret is its password, without one it is a bearer token.
    """

    kind: str
    origin: str
    path: str
    user: str | None = None
    secret_file: Path | None = None
    secret_variable: str | None = None
    ca_file: Path | None = None

    @property
    def url(self) -> str:
        """As messages name it."""
        return f"{self.origin}{self.path}"

    @property
    def program(self) -> str:
        """The name of the program, for people."""
        return EXPORTER_KINDS[self.kind].program


def resolve_readings(document: "Document", entry: "HostEntry", scope: "Scope") -> Readings:
    """Where the readings of the hosts of an entry come from: its own word, else the default of the file."""
    common = document.defaults.readings if document.defaults else None
    readings = Readings(entry.readings or common or Readings.SHELL)
    if entry.exporters is not None and not readings.uses_exporters and not entry.cut("readings"):
        found = "found 'exporters' of a host whose readings come from its shell"
        scope.once("exporters", entry.mark("exporters"), found, "add readings: prometheus or readings: both")
    for group in entry.accelerators if readings is Readings.PROMETHEUS else ():
        if group.pci is None and group.uuid is None and not group.cut("pci", "uuid"):
            found = "key 'pci' or 'uuid' is missing here: exporters do not print the minor number of a GPU"
            scope.once("exporters key", group.mark("id"), found)
    return readings


def resolve_exporters(
    document: "Document", entry: "HostEntry", name: str, address: str, scope: "Scope"
) -> tuple[Exporter, ...]:
    """The exporters of one host. Kinds that it names replace those of the defaults; other keys go before them."""
    common = document.defaults.exporters if document.defaults else None
    layers = [layer for layer in (entry.exporters, common) if layer is not None]
    login: dict[str, Any] = {}
    for layer in layers:
        for key in _LOGIN:
            value = getattr(layer, key)
            if value is not None and key not in login:
                login[key] = scope.path(value, layer.mark(key)) if key.endswith("_file") else value
    naming = next((layer for layer in layers if any(getattr(layer, kind) is not None for kind in EXPORTER_KINDS)), None)
    if naming is None:
        return tuple(_exporter(kind, _origin(kind, address), "", login) for kind in _USUAL)
    found: list[Exporter] = []
    for kind in EXPORTER_KINDS:
        where = getattr(naming, kind)
        if isinstance(where, int):
            found.append(_exporter(kind, _origin(kind, address, where), "", login))
        elif where is not None and (place := _place(naming, kind, where, name, address, scope)) is not None:
            found.append(_exporter(kind, *place, login))
    return tuple(found)


def _exporter(kind: str, origin: str, path: str, login: Mapping[str, Any]) -> Exporter:
    return Exporter(kind, origin, path or EXPORTER_KINDS[kind].path, **login)


def _origin(kind: str, address: str, port: int | None = None) -> str:
    usual = EXPORTER_KINDS[kind]
    return f"{usual.scheme}://{_in_url(address)}:{port or usual.port}"


def _in_url(address: str) -> str:
    """An IPv6 address stands in brackets."""
    return f"[{address}]" if ":" in address else address


def _place(
    entry: "ExportersEntry", kind: str, written: str, name: str, address: str, scope: "Scope"
) -> tuple[str, str] | None:
    """Origin and path of a URL in which ``{name}`` and ``{address}`` stand for the host's."""
    mark = entry.mark(kind)
    for other in _PLACEHOLDER.findall(written):
        if other not in {"name", "address"}:
            scope.once("exporter", mark, f"found '{{{other}}}', expected '{{address}}' or '{{name}}'")
            return None
    parts = _URL.fullmatch(written.replace("{name}", name).replace("{address}", _in_url(address)))
    if parts is None or not 0 < int(parts["port"] or 1) <= _MOST_PORT:
        # A password in a URL would be printed here; it is left out.
        shown = re.sub(r"//[^/]*@", "//...@", written)
        hint = "a user and the place of the secret stand beside it: user, secret_file, secret_variable"
        expected = f"expected a port or a URL such as http://{{address}}:{EXPORTER_KINDS[kind].port}/metrics"
        scope.once("exporter", mark, f"found {shown!r}, {expected}", hint if "@" in written else None)
        return None
    return parts["origin"], parts["path"] or ""
