"""Prometheus exporters of a host: which kinds lumctl reads, where they answer, and how an inventory names them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType


class ReadingSource(StrEnum):
    """Where the readings of a host come from."""

    SHELL = "shell"
    PROMETHEUS = "prometheus"
    BOTH = "both"

    @property
    def uses_exporters(self) -> bool:
        """Whether exporters are read."""
        return self is not ReadingSource.SHELL

    @property
    def uses_shell(self) -> bool:
        """Whether commands are run over SSH."""
        return self is not ReadingSource.PROMETHEUS


@dataclass(frozen=True, slots=True)
class ExporterKind:
    """A program that lumctl can read: its name for operators, and its usual address."""

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
"""The kinds of exporters, by their keys in the inventory."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """One exporter of one host. ``origin`` is its scheme, host and port; ``ca_file`` replaces the machine's CAs.

    If there is a ``user``, the secret is that user's password; otherwise it is a bearer token.
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
        """The URL as messages show it."""
        return f"{self.origin}{self.path}"

    @property
    def program(self) -> str:
        """The name of the program in messages."""
        return EXPORTER_KINDS[self.kind].program
