"""Find the SSH route to a host: from the inventory, and where it states nothing, from the SSH client configuration.

A route is also written as the command line of the ssh program, with the same user, keys, jump hosts and known hosts.
"""

import getpass
import os
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
_DEEPEST = 16  # OpenSSH's own limit
# paramiko does not follow Include, so included files are put in place of its line here.
_INCLUDE = re.compile(r"\s*include(?:\s*=\s*|\s+)(.+?)\s*$", re.IGNORECASE)
_BLOCK = re.compile(r"\s*(?:host|match)(?:\s*=\s*|\s+)", re.IGNORECASE)
_EVERYTHING = "Host *"


def where(config_file: Path | None) -> Path:
    """The configuration file to name in a message."""
    return config_file or _USER_CONFIG


def read_config(config_file: Path | None) -> str:
    """The text of one named configuration file, or else of the user's file followed by the system's.

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
    """The lines of a file. ``block`` is the line that opened the block in which the file is included."""
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
                # A block that the included file opened ends with that file.
                yield block


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"SSH client configuration {path} cannot be read: {error.strerror}") from None


def _matching(pattern: str, includer: Path) -> list[Path]:
    """The files that a pattern matches, found as ssh does: relative ones next to the user's or the system's file."""
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
    """The route by which SSH reaches one host. ``label`` is the host's name in messages.

    ``key_name`` is its name in the known-hosts files; a new key is written to the first of them. ``certificate_files``
    certify our keys. ``only_these_keys`` means that the key files were chosen for this host, so no other key of the
    agent is offered.
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
        """The jump hosts, in the order in which the connection passes them."""
        return () if self.jump is None else (*self.jump.jumps, self.jump)


class Routes:
    """Finds routes; each configuration file is read once."""

    def __init__(self) -> None:
        self._texts: dict[Path | None, str] = {}

    def of(self, endpoint: HostEndpoint) -> SshRoute:
        """The route to a host. The inventory's settings override the configuration file's.

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
        # An explicit jump host overrides a proxy command, as it does in ssh.
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
            key_name=str(configured.get("hostkeyalias") or "").lower() or default_key_name(hostname, port),
            jump=self._jump(hops, ssh, known_hosts, (*behind, (address, ssh.port))),
            proxy_command=proxy_command,
        )

    def _jump(self, hops: str, ssh: SshSettings, known_hosts: Path | None, behind: _Hops) -> SshRoute | None:
        """The last of some comma-separated jump hosts. It is reached through the ones before it."""
        if hops == "none":
            return None
        before, _, last = hops.rpartition(",")
        user, address, port = _split_hop(last.strip())
        if (address, port) in behind:
            # `Host *` with a ProxyJump also applies to the jump host itself, which is then reached directly.
            return None
        settings = SshSettings(
            user=user, port=port, jump=before or None, key_file=ssh.key_file, config_file=ssh.config_file
        )
        return self._route(f"jump host {address}", address, settings, known_hosts, behind)

    def _lookup(self, ssh: SshSettings, address: str) -> Mapping[str, Any]:
        """The configuration for an address, with the inventory's settings put before it.

        In such a file the first value of a setting counts. So a ``ProxyCommand`` also gets the inventory's port.
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
    """Certificates of our keys: the configured one, and the one next to each key file."""
    named = configured.get("certificatefile")
    beside = (Path(f"{path}-cert.pub") for path in key_files)
    return (*((Path(str(named)).expanduser(),) if named else ()), *(path for path in beside if path.exists()))


def _known_hosts(own: Path | None, configured: Mapping[str, Any]) -> tuple[Path, ...]:
    if own:
        return (own,)
    files = shlex.split(str(configured.get("userknownhostsfile") or _DEFAULT_KNOWN_HOSTS))
    return (*(Path(name).expanduser() for name in files), _SYSTEM_KNOWN_HOSTS)


def default_key_name(hostname: str, port: int) -> str:
    """The name in known-hosts files of a host without an alias."""
    return hostname.lower() if port == SSH_PORT else f"[{hostname.lower()}]:{port}"


def _split_hop(hop: str) -> tuple[str | None, str, int | None]:
    """User, address and port of ``[user@]host[:port]``, also after ``ssh://`` and with an IPv6 address in brackets."""
    user, _, where = hop.removeprefix("ssh://").rpartition("@")
    if where.startswith("["):
        address, _, rest = where[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        address, _, port = where.partition(":")
    # isdigit() alone also accepts digits such as superscripts, which int() refuses.
    if not address or (port and not port.isascii()) or (port and not port.isdigit()):
        raise UsageError(f"jump host {hop!r} is not of the form [user@]host[:port]")
    return user or None, address, int(port) if port else None


PROGRAM = "ssh"


def ssh_command(route: SshRoute) -> tuple[str, ...]:
    """The words of a command that opens a shell on a host; it refuses unknown or changed keys, like our sessions.

    No configuration file is read: the route contains the settings of the files. A jump host is reached by a
    ``ProxyCommand``, since ``-J`` would use neither its key files nor its known hosts.
    """
    # After "--" ssh takes nothing for an option, whatever the address begins with.
    return (PROGRAM, *_options(route), "--", route.address)


def _options(route: SshRoute) -> Iterator[str]:
    yield from ("-F", "none", "-p", str(route.port), "-l", route.user)
    for path in route.key_files:
        # Not -i, which looks for the file before ssh expands the name.
        yield from _option("IdentityFile", _quoted(str(path)))
    for path in route.certificate_files:
        yield from _option("CertificateFile", _quoted(str(path)))
    if route.only_these_keys:
        yield from _option("IdentitiesOnly", "yes")
    yield from _option("StrictHostKeyChecking", "yes")
    yield from _option("UserKnownHostsFile", " ".join(_quoted(str(path)) for path in route.known_hosts))
    # The route's list is complete. A file beside it could know a key that our own sessions refuse.
    yield from _option("GlobalKnownHostsFile", os.devnull)
    # Otherwise ssh adds other keys of the host to the file, and those were not enrolled.
    yield from _option("UpdateHostKeys", "no")
    if route.key_name != default_key_name(route.address, route.port):
        yield from _option("HostKeyAlias", route.key_name)
    if route.jump is not None:
        where = f"[{route.address}]:{route.port}"
        inner = (PROGRAM, *_options(route.jump), "-W", where, "--", route.jump.address)
        yield from _option("ProxyCommand", _verbatim(shlex.join(inner)))
    elif route.proxy_command:
        yield from _option("ProxyCommand", _verbatim(route.proxy_command))


def _option(name: str, value: str) -> tuple[str, str]:
    return "-o", f"{name}={value}"


def _verbatim(text: str) -> str:
    """A text in which ssh expands no token such as ``%h``: the route has expanded all."""
    return text.replace("%", "%%")


def _quoted(path: str) -> str:
    """A path as one word of an option that takes several."""
    return f'"{_verbatim(path)}"'
