"""How to get to a host: what the inventory says, and for what it leaves open, the SSH client configuration."""

import getpass
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from lumctl.devices.endpoints import HostEndpoint
from lumctl.errors import UsageError
from lumctl.inventory.model import SshSettings

_USER_CONFIG = Path("~/.ssh/config")
_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_DEEPEST = 16
_INCLUDE = re.compile(r"\s*include(?:\s*=\s*|\s+)(.+?)\s*$", re.IGNORECASE)
_BLOCK = re.compile(r"\s*(?:host|match)(?:\s*=\s*|\s+)", re.IGNORECASE)
_EVERYTHING = "Host *"


def where(config_file: Path | None) -> Path:
    """The file to name in a message."""
    return config_file or _USER_CONFIG


def read_config(config_file: Path | None) -> str:
    """The text of one named file, or of the user's and then the system's.

    Raises:
        UsageError: a named file does not exist, a file cannot be read, or files include each other.
    """
    named = [config_file] if config_file else [_USER_CONFIG, _SYSTEM_CONFIG]
    lines: list[str] = []
    for path in named:
        # A block ends with its file, not with the next file's first block.
        lines.append(_EVERYTHING)
        try:
            lines += _expanded(path.expanduser(), 0, _EVERYTHING)
        except FileNotFoundError:
            if config_file:
                raise UsageError(f"SSH client configuration {config_file} does not exist") from None
    return "\n".join(lines) + "\n"


def _expanded(path: Path, depth: int, block: str) -> Iterator[str]:
    """The lines of a file; ``block`` is the line that opened the block in which it is included."""
    if depth > _DEEPEST:
        raise UsageError(f"SSH client configuration {path}: included more than {_DEEPEST} files deep")
    for line in _lines(path):
        if _BLOCK.match(line):
            block = line
        include = _INCLUDE.match(line)
        if include is None:
            yield line
            continue
        for pattern in include[1].split():
            for each in _matching(pattern.strip('"'), path):
                yield from _expanded(each, depth + 1, block)
                # What the included file opened ends with it.
                yield block


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"SSH client configuration {path} cannot be read: {error.strerror}") from None


def _matching(pattern: str, includer: Path) -> list[Path]:
    """The files that a pattern names, as ssh finds them: relative ones beside the user's or the system's file."""
    base = _SYSTEM_CONFIG.parent if includer.is_relative_to(_SYSTEM_CONFIG.parent) else _USER_CONFIG.parent.expanduser()
    full = base / Path(pattern).expanduser()
    return sorted(path for path in Path(full.anchor).glob(str(full.relative_to(full.anchor))) if path.is_file())


SSH_PORT = 22
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_DEFAULT_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")
_Hops = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class SshRoute:
    """One host as SSH reaches it. ``label`` is how messages name it.

    ``key_name`` is its name in the known-hosts files, the first of which is where a new key is written.
    ``certificate_files`` certify keys of ours. ``only_these_keys``: the key files were chosen for this host, so no
    other key of the agent is offered.
    """

    label: str
    address: str
    port: int
    user: str
    key_files: tuple[Path, ...]
    certificate_files: tuple[Path, ...]
    only_these_keys: bool
    known_hosts: tuple[Path, ...]
    key_name: str
    jump: "SshRoute | None" = None
    proxy_command: str | None = None

    @property
    def jumps(self) -> tuple["SshRoute", ...]:
        """The jump hosts in the order in which they are passed."""
        return () if self.jump is None else (*self.jump.jumps, self.jump)


class Routes:
    """Finds routes; each configuration file is read once."""

    def __init__(self) -> None:
        self._texts: dict[Path | None, str] = {}

    def of(self, endpoint: HostEndpoint) -> SshRoute:
        """The route to a host. The inventory's settings win over the configuration file's.

        Raises:
            UsageError: the configuration file cannot be read, or a jump host leads back to itself.
        """
        return self._route(endpoint.host, endpoint.address, endpoint.ssh, endpoint.known_hosts, ())

    def _route(self, label: str, address: str, ssh: SshSettings, known_hosts: Path | None, behind: _Hops) -> SshRoute:
        configured = self._lookup(ssh, address)
        hostname = str(configured.get("hostname", address))
        port = int(configured.get("port", SSH_PORT))
        key_files, chosen = _key_files(ssh, configured)
        hops = ssh.jump or configured.get("proxyjump") or "none"
        # An explicit jump host wins over a proxy command, as it does in ssh.
        proxy_command = configured.get("proxycommand") if hops == "none" else None
        return SshRoute(
            label=label,
            address=hostname,
            port=port,
            user=str(configured.get("user") or getpass.getuser()),
            key_files=key_files,
            certificate_files=_certificates(key_files, configured),
            only_these_keys=chosen,
            known_hosts=_known_hosts(known_hosts, configured),
            key_name=_key_name(str(configured.get("hostkeyalias") or ""), hostname, port),
            jump=self._jump(hops, ssh, known_hosts, (*behind, (address, ssh.port))),
            proxy_command=proxy_command,
        )

    def _jump(self, hops: str, ssh: SshSettings, known_hosts: Path | None, behind: _Hops) -> SshRoute | None:
        """The last of some comma-separated jump hosts; it is itself reached through those before it."""
        if hops == "none":
            return None
        before, _, last = hops.rpartition(",")
        user, address, port = _split_hop(last.strip())
        if (address, port) in behind:
            # `Host *` with a ProxyJump applies to the jump host as well: that one is reached directly.
            return None
        settings = SshSettings(
            user=user, port=port, jump=before or None, key_file=ssh.key_file, config_file=ssh.config_file
        )
        return self._route(f"jump host {address}", address, settings, known_hosts, behind)

    def _lookup(self, ssh: SshSettings, address: str) -> Mapping[str, Any]:
        """What the configuration says of an address, with the inventory's own words put before it.

        The first value wins in such a file, and so the inventory's port is also the one in a ``ProxyCommand``.
        """
        if ssh.config_file not in self._texts:
            self._texts[ssh.config_file] = read_config(ssh.config_file)
        ours = f"Port {ssh.port}\n" if ssh.port else ""
        ours += f"User {ssh.user}\n" if ssh.user else ""
        try:
            return paramiko.SSHConfig.from_text(ours + self._texts[ssh.config_file]).lookup(address)
        except (paramiko.SSHException, ValueError, KeyError, OSError) as error:
            file = where(ssh.config_file)
            raise UsageError(f"SSH client configuration {file}: no answer for {address}: {error}") from None


def _key_files(ssh: SshSettings, configured: Mapping[str, Any]) -> tuple[tuple[Path, ...], bool]:
    if ssh.key_file:
        return (ssh.key_file.expanduser(),), True
    named = configured.get("identityfile")
    if named:
        return tuple(Path(name).expanduser() for name in named), configured.get("identitiesonly") == "yes"
    found = (Path(name).expanduser() for name in _DEFAULT_KEYS)
    return tuple(path for path in found if path.exists()), False


def _certificates(key_files: tuple[Path, ...], configured: Mapping[str, Any]) -> tuple[Path, ...]:
    """Certificates of our keys: those that are named, and the one beside each key."""
    named = configured.get("certificatefile")
    beside = (Path(f"{path}-cert.pub") for path in key_files)
    return (*((Path(str(named)).expanduser(),) if named else ()), *(path for path in beside if path.exists()))


def _known_hosts(own: Path | None, configured: Mapping[str, Any]) -> tuple[Path, ...]:
    if own:
        return (own,)
    files = shlex.split(str(configured.get("userknownhostsfile") or _DEFAULT_KNOWN_HOSTS))
    return (*(Path(name).expanduser() for name in files), _SYSTEM_KNOWN_HOSTS)


def _key_name(alias: str, hostname: str, port: int) -> str:
    if alias:
        return alias.lower()
    return hostname.lower() if port == SSH_PORT else f"[{hostname.lower()}]:{port}"


def _split_hop(hop: str) -> tuple[str | None, str, int | None]:
    """``[user@]host[:port]``, also as ``ssh://`` and with an IPv6 address in brackets."""
    user, _, where = hop.removeprefix("ssh://").rpartition("@")
    if where.startswith("["):
        address, _, rest = where[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        address, _, port = where.partition(":")
    if not address or (port and not port.isascii()) or (port and not port.isdigit()):
        raise UsageError(f"jump host {hop!r} is not of the form [user@]host[:port]")
    return user or None, address, int(port) if port else None
