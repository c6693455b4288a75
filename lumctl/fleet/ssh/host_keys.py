"""Known-hosts files and their host keys. Checking is strict: an unknown or changed key ends the connection."""

import base64
import binascii
import hashlib
import hmac
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.errors import UsageError


class HostKeyError(DeviceUnreachableError):
    """The host's key differs from the known key, or no key is known."""


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public key: its type, as in ``ssh-ed25519``, and its bytes."""

    kind: str
    blob: bytes

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint}"

    @property
    def fingerprint(self) -> str:
        """``SHA256:...``, as ssh prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key in a line of a known-hosts file."""

    key: HostKey
    path: Path
    line: int
    revoked: bool = False


class KnownHosts:
    """The keys of some known-hosts files, read once. Plain names are in a dict; hashed names and patterns in lists."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._plain: dict[str, list[KnownKey]] = defaultdict(list)
        self._hashed: list[tuple[bytes, bytes, KnownKey]] = []
        self._patterns: list[tuple[list[str], KnownKey]] = []
        for path in paths:
            self._read(path)

    def keys_of(self, name: str) -> list[KnownKey]:
        """The known keys of a host named ``address`` or ``[address]:port``: by plain name, hashed name, pattern."""
        name = name.lower()
        found = list(self._plain.get(name, ()))
        found += [known for salt, digest, known in self._hashed if _hash(salt, name) == digest]
        found += [known for patterns, known in self._patterns if _matches(patterns, name)]
        return found

    def check(self, name: str, label: str, shown: HostKey) -> None:
        """Accept a key only if it is known.

        Raises:
            HostKeyError: the key is unknown, revoked, or differs from the known key.
        """
        known = self.keys_of(name)
        same = [entry for entry in known if entry.key == shown]
        revoked = next((entry for entry in same if entry.revoked), None)
        if revoked:
            raise HostKeyError(f"{label}: its host key {shown} is revoked ({revoked.path}:{revoked.line})")
        if same:
            return
        others = [entry for entry in known if not entry.revoked]
        if not others:
            raise HostKeyError(
                f"{label}: the host key of {name} is unknown: {shown}",
                hint="compare it with the key on the host itself, then enrol it: lumctl inventory trust",
            )
        raise HostKeyError(changed_message(label, name, shown, others[0]), hint=changed_hint(name, others[0]))

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"known hosts {path} cannot be read: {error.strerror}") from None
        for number, line in enumerate(lines, start=1):
            self._take(path, number, line.split())

    def _take(self, path: Path, number: int, words: list[str]) -> None:
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        # The key of an authority (@cert-authority) is no host's key; as one, it would make its hosts look changed.
        if marker not in {"", "@revoked"} or not words or words[0].startswith("#"):
            return
        try:
            host, kind, blob, *_comment = words
            key = HostKey(kind, base64.b64decode(blob, validate=True))
        except (binascii.Error, ValueError):
            return
        known = KnownKey(key, path, number, revoked=marker == "@revoked")
        # A hashed name is base64, so its case counts.
        names = [host] if host.startswith("|") else host.lower().split(",")
        if names[0].startswith("|1|"):
            self._take_hashed(names[0], known)
        elif any(mark in name for name in names for mark in "*?!"):
            self._patterns.append((names, known))
        else:
            for name in names:
                self._plain[name].append(known)

    def _take_hashed(self, name: str, known: KnownKey) -> None:
        try:
            salt, digest = (base64.b64decode(part) for part in name.split("|")[2:4])
        except (binascii.Error, ValueError):
            return
        self._hashed.append((salt, digest, known))


def changed_message(label: str, name: str, shown: HostKey, known: KnownKey) -> str:
    """One line that reports that a key changed, with both fingerprints and the file and line of the known one."""
    where = f"{known.path}:{known.line}"
    return f"{label}: the host key of {name} has CHANGED: it presents {shown}, but {known.key} is known ({where})"


def changed_hint(name: str, known: KnownKey) -> str:
    """What to do about a changed key."""
    return (
        f"only if the host was reinstalled: ssh-keygen -R '{name}' -f {known.path}, then lumctl inventory trust; "
        "otherwise the connection may be intercepted"
    )


class KnownHostsCache:
    """Known-hosts files by path. They are read again when they change, so that newly enrolled keys are found."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: dict[tuple[Path, ...], tuple[tuple[object, ...], KnownHosts]] = {}

    def of(self, paths: tuple[Path, ...]) -> KnownHosts:
        """The present contents of these files."""
        stamp = tuple(_stamp(path) for path in paths)
        with self._lock:
            held = self._read.get(paths)
            if held is None or held[0] != stamp:
                held = self._read[paths] = (stamp, KnownHosts(paths))
            return held[1]


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _hash(salt: bytes, name: str) -> bytes:
    # OpenSSH's format |1|: HMAC-SHA1 with the salt as its key.
    return hmac.digest(salt, name.encode(), "sha1")


def _matches(patterns: list[str], name: str) -> bool:
    """Whether patterns match a name, by OpenSSH's rule: a pattern must match, and no negated pattern may."""
    # Brackets are literal in known_hosts, but a character class in fnmatch.
    literal = [(pattern.lstrip("!").replace("[", "[[]"), pattern.startswith("!")) for pattern in patterns]
    matching = [negated for pattern, negated in literal if fnmatchcase(name, pattern)]
    return bool(matching) and not any(matching)
