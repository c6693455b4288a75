"""Enrol host keys: compare the hosts' present keys with the known ones, and add the new keys."""

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from lumctl.devices.endpoints import HostEndpoint
from lumctl.errors import LumctlError, UsageError
from lumctl.files import make_private
from lumctl.fleet.ssh.connect import Connector
from lumctl.fleet.ssh.host_keys import HostKey, KnownHosts, KnownKey
from lumctl.fleet.ssh.routes import Routes, SshRoute
from lumctl.workers import Workers

if TYPE_CHECKING:
    from concurrent.futures import Future


class HostKeyState(StrEnum):
    """How a host's present key compares with the known ones."""

    NEW = "new"
    KNOWN = "known"
    CHANGED = "changed"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class HostKeyOffer:
    """The key that one host presented. ``known`` is the known key that differs; ``problem`` is why there is none."""

    route: SshRoute
    standing: HostKeyState
    key: HostKey | None = None
    known: KnownKey | None = None
    problem: LumctlError | None = None


def routes_by_distance(endpoints: Iterable[HostEndpoint]) -> list[list[SshRoute]]:
    """The routes of hosts and their jump hosts, nearest first, because a jump host's key must be known to pass it."""
    finder = Routes()
    by_distance: dict[int, dict[tuple[str, tuple[Path, ...]], SshRoute]] = {}
    for endpoint in endpoints:
        route = finder.of(endpoint)
        for hop in (*route.jumps, route):
            by_distance.setdefault(len(hop.jumps), {}).setdefault((hop.key_name, hop.known_hosts), hop)
    return [list(routes.values()) for _, routes in sorted(by_distance.items())]


def fetch_offers(routes: Iterable[SshRoute], *, timeout_s: float) -> list[HostKeyOffer]:
    """Read the keys of all these hosts at the same time."""
    connector, workers = Connector(timeout_s=timeout_s), Workers("enrol")
    try:
        asked: list[tuple[SshRoute, Future[HostKey]]] = [
            (route, workers.submit(lambda route=route: connector.shown_key(route)))  # type: ignore[misc]
            for route in routes
        ]
        # Each jump host and the host itself have `timeout_s`, and one more is a reserve for threads that start late.
        return [_offer(route, shown, connector, timeout_s * (len(route.jumps) + 2)) for route, shown in asked]
    finally:
        connector.close()
        workers.close()


def _offer(route: SshRoute, shown: "Future[HostKey]", connector: Connector, limit_s: float) -> HostKeyOffer:
    try:
        key = shown.result(limit_s)
    except TimeoutError:
        problem = LumctlError(f"{route.label}: no answer within {limit_s:g} s")
        return HostKeyOffer(route, HostKeyState.UNREACHABLE, problem=problem)
    except LumctlError as error:
        return HostKeyOffer(route, HostKeyState.UNREACHABLE, problem=error)
    return _judged(route, key, connector.known_hosts(route))


def _judged(route: SshRoute, key: HostKey, hosts: KnownHosts) -> HostKeyOffer:
    known = hosts.keys_of(route.key_name)
    # First: another line may list the same key as trusted, and ssh refuses it nevertheless.
    revoked = next((entry for entry in known if entry.revoked and entry.key == key), None)
    if revoked:
        return HostKeyOffer(route, HostKeyState.CHANGED, key, revoked)
    trusted = [entry for entry in known if not entry.revoked]
    if any(entry.key == key for entry in trusted):
        return HostKeyOffer(route, HostKeyState.KNOWN, key)
    return (
        HostKeyOffer(route, HostKeyState.CHANGED, key, trusted[0])
        if trusted
        else HostKeyOffer(route, HostKeyState.NEW, key)
    )


def append_keys(offers: Iterable[HostKeyOffer]) -> list[Path]:
    """Append new keys to the first known-hosts file of each route, and make it private to the user. Return the files.

    Raises:
        UsageError: a file cannot be written.
    """
    lines: dict[Path, list[str]] = {}
    for offer in offers:
        if offer.key is not None and offer.standing is HostKeyState.NEW:
            blob = base64.b64encode(offer.key.blob).decode()
            lines.setdefault(offer.route.known_hosts[0], []).append(f"{offer.route.key_name} {offer.key.kind} {blob}\n")
    for path, new in lines.items():
        try:
            _append(path, new)
        except OSError as error:
            raise UsageError(f"known hosts {path} cannot be written: {error.strerror}") from None
    return list(lines)


def _append(path: Path, lines: list[str]) -> None:
    make_private(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "a+b") as file:
        os.fchmod(file.fileno(), 0o600)
        # A file that was edited by hand may lack its last newline; without one, two hosts would share a line.
        size = file.seek(0, os.SEEK_END)
        cut = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
        file.write(("\n" if cut else "").encode() + "".join(lines).encode())
