"""Who we are to a host: keys of the agent, then key files. Nothing secret ever stands in a message."""

import base64
import binascii
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

import paramiko
from paramiko.pkey import PublicBlob, UnknownKeyType

from lumctl.devices.errors import DeviceLoginError
from lumctl.fleet.ssh.routes import SshRoute


class AuthenticationFailedError(DeviceLoginError):
    """The host answers and does not let us in."""


class Credentials:
    """Private keys, each file loaded once: loading an RSA key costs a tenth of a second.

    ``agent_key`` gives a key of the agent the form in which it is offered.
    """

    def __init__(self, agent_key: Callable[[paramiko.AgentKey], paramiko.PKey]) -> None:
        self._agent_key = agent_key
        self._lock = Lock()
        self._keys: dict[Path, paramiko.PKey | str] = {}
        self._certified: dict[tuple[Path, Path], paramiko.PKey | None] = {}

    def authenticate(
        self,
        transport: paramiko.Transport,
        route: SshRoute,
        deadline: float,
        password: Callable[[], str] | None = None,
    ) -> None:
        """Offer keys until one is taken, then the password, or until a moment of the monotonic clock.

        Where there is a password, only keys that were chosen for this host are offered before it.

        Raises:
            AuthenticationFailedError: none was taken.
            TimeoutError: the host has not said so in time.
        """
        offered = 0
        # A device that counts refusals would lock us out over keys that were never meant for it.
        if password is None or route.only_these_keys:
            offered = self._offer_keys(transport, route, deadline)
        with_password = False
        if password is not None and transport.is_active() and not transport.is_authenticated():
            _offer_password(transport, route.user, password(), deadline)
            with_password = True
        if not transport.is_authenticated():
            raise self._failure(route, offered, with_password=with_password)

    def _offer_keys(self, transport: paramiko.Transport, route: SshRoute, deadline: float) -> int:
        """Offer keys until one is taken; how many were offered."""
        offered = 0
        agent = _Agent(self._agent_key)
        try:
            for key in self._candidates(agent, route):
                offered += 1
                transport.auth_timeout = max(0.05, deadline - time.monotonic())
                try:
                    transport.auth_publickey(route.user, key)
                except paramiko.BadAuthenticationType:
                    break
                except paramiko.AuthenticationException:
                    if time.monotonic() >= deadline:
                        raise TimeoutError from None
                    if not transport.is_active():
                        break
                    continue
                except (paramiko.SSHException, EOFError, OSError):
                    # sshd hangs up after too many keys.
                    break
                if transport.is_authenticated():
                    break
        finally:
            agent.close()
        return offered

    def _candidates(self, agent: "_Agent", route: SshRoute) -> Iterator[paramiko.PKey]:
        loaded = [(path, self._load(path)) for path in route.key_files]
        if route.only_these_keys:
            locked = {_public_half(path) for path, key in loaded if isinstance(key, str)} - {None}
            if locked:
                yield from (key for key in agent.offered() if key.asbytes() in locked)
        else:
            yield from agent.offered()
        for path, key in loaded:
            if not isinstance(key, str):
                yield from self._certified_by(path, route.certificate_files)
                yield key

    def _certified_by(self, path: Path, certificates: tuple[Path, ...]) -> Iterator[paramiko.PKey]:
        """A key with each certificate that is of it: offered before the bare key, as ssh does."""
        for certificate in certificates:
            with self._lock:
                if (path, certificate) not in self._certified:
                    self._certified[path, certificate] = _certified_key(path, certificate)
                key = self._certified[path, certificate]
            if key is not None:
                yield key

    def _load(self, path: Path) -> paramiko.PKey | str:
        """The key in a file, or why there is none."""
        with self._lock:
            if path not in self._keys:
                self._keys[path] = _read_key(path)
            return self._keys[path]

    def _failure(self, route: SshRoute, offered: int, *, with_password: bool) -> AuthenticationFailedError:
        where = f"{route.user}@{route.address} port {route.port}"
        problems = [key for path in route.key_files if isinstance(key := self._load(path), str)]
        said = f" ({'; '.join(problems)})" if problems else ""
        keys = "1 key" if offered == 1 else f"{offered} keys"
        if with_password:
            also = f"{keys} and " if offered else ""
            return AuthenticationFailedError(
                f"{route.label}: {where} refused {also}the password{said}",
                hint="check the user and the secret in the device's login",
            )
        if not offered:
            return AuthenticationFailedError(
                f"{route.label}: no SSH key to offer to {where}{said}",
                hint="add one to the SSH agent, or name one with key_file in the inventory",
            )
        return AuthenticationFailedError(
            f"{route.label}: {where} refused {keys}{said}",
            hint="check the user and the key in the inventory, and authorized_keys on the host",
        )


def _offer_password(transport: paramiko.Transport, user: str, password: str, deadline: float) -> None:
    """Offer a password, also where it is asked for as a question."""
    transport.auth_timeout = max(0.05, deadline - time.monotonic())
    try:
        transport.auth_password(user, password)
    except (paramiko.SSHException, EOFError, OSError):
        if time.monotonic() >= deadline:
            raise TimeoutError from None


class _Agent:
    """One connection to the SSH agent for one attempt, made when it is asked: two callers may not share one."""

    def __init__(self, offered_form: Callable[[paramiko.AgentKey], paramiko.PKey]) -> None:
        self._offered_form = offered_form
        self._agent: paramiko.Agent | None = None

    def offered(self) -> tuple[paramiko.PKey, ...]:
        try:
            self._agent = paramiko.Agent()
        except (paramiko.SSHException, OSError):
            return ()
        return tuple(self._offered_form(key) for key in self._agent.get_keys())

    def close(self) -> None:
        if self._agent is not None:
            self._agent.close()


def _read_key(path: Path) -> paramiko.PKey | str:
    try:
        key = _bare_key(path)
    except FileNotFoundError:
        return f"key file {path} does not exist"
    except OSError as error:
        return f"key file {path} cannot be read: {error.strerror}"
    except (paramiko.PasswordRequiredException, TypeError):
        # cryptography tells a missing passphrase by TypeError.
        return f"key file {path} needs its passphrase: add it to the agent with ssh-add"
    except (paramiko.SSHException, UnknownKeyType, ValueError):
        return f"key file {path} holds no key that can be read"
    return key


def _bare_key(path: Path) -> paramiko.PKey:
    """Load a key without the certificate beside it, with which it would never be offered bare."""
    key = paramiko.PKey.from_path(path)
    return type(key).from_private_key_file(str(path)) if Path(f"{path}-cert.pub").exists() else key


def _certified_key(path: Path, certificate: Path) -> paramiko.PKey | None:
    """A key that shows a certificate; ``None`` if that is not the key's own, or cannot be read."""
    try:
        key = _bare_key(path)
        shown = PublicBlob.from_file(str(certificate))
        key.load_certificate(str(certificate))
    except (paramiko.SSHException, OSError, ValueError, TypeError, UnicodeDecodeError):
        return None
    blob = paramiko.Message(shown.key_blob)
    # Its kind and a nonce; then the key's own numbers, as in its public half.
    blob.get_string()
    blob.get_string()
    public = key.asbytes()[4 + len(key.get_name()) :]
    return key if blob.get_remainder().startswith(public) else None


def _public_half(path: Path) -> bytes | None:
    """The public key beside a private one, to find it in the agent."""
    try:
        return base64.b64decode(Path(f"{path}.pub").read_text(encoding="utf-8").split()[1], validate=True)
    except (OSError, ValueError, IndexError, binascii.Error):
        return None
