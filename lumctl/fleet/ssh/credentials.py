"""Our login on a host: keys of the agent, then key files. No message contains a secret."""

import base64
import binascii
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock

import paramiko
from paramiko.pkey import PublicBlob, UnknownKeyType

from lumctl.devices.errors import DeviceLoginError
from lumctl.fleet.ssh.connection import time_left_s
from lumctl.fleet.ssh.routes import SshRoute


class AuthenticationFailedError(DeviceLoginError):
    """The host answers but does not accept the login."""


class Credentials:
    """Private keys. Each file is loaded once, because loading an RSA key takes a tenth of a second.

    ``agent_key`` converts a key of the agent into the form that is offered to a host.
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
        """Offer keys until one is accepted, then the password. ``deadline`` is of the monotonic clock.

        If there is a password, only keys that were chosen for this host are offered before it.

        Raises:
            AuthenticationFailedError: the host accepted nothing.
            TimeoutError: the host has not answered in time.
        """
        offered = 0
        # A device that counts refusals would lock us out because of keys that were never meant for it.
        if password is None or route.only_these_keys:
            offered = self._offer_keys(transport, route, deadline)
        with_password = False
        if password is not None and transport.is_active() and not transport.is_authenticated():
            _offer_password(transport, route.user, password(), deadline)
            with_password = True
        if not transport.is_authenticated():
            raise self._failure(route, offered, with_password=with_password)

    def _offer_keys(self, transport: paramiko.Transport, route: SshRoute, deadline: float) -> int:
        """Offer keys until one is accepted; return how many were offered."""
        offered = 0
        agent = _Agent(self._agent_key)
        try:
            for key in self._candidates(agent, route):
                offered += 1
                transport.auth_timeout = time_left_s(deadline)
                try:
                    transport.auth_publickey(route.user, key)
                except paramiko.BadAuthenticationType:
                    # The host accepts no keys at all, so it would refuse the next one too.
                    break
                except paramiko.AuthenticationException:
                    # paramiko reports a missing answer as a refusal.
                    if time.monotonic() >= deadline:
                        raise TimeoutError from None
                    if not transport.is_active():
                        break
                    continue
                except (paramiko.SSHException, EOFError, OSError):
                    # sshd closes the connection after too many keys.
                    break
                # If not, the host accepted the key and wants a second factor, which may be another key.
                if transport.is_authenticated():
                    break
        finally:
            agent.close()
        return offered

    def _candidates(self, agent: "_Agent", route: SshRoute) -> Iterator[paramiko.PKey]:
        loaded = [(path, self._load(path)) for path in route.key_files]
        if route.only_these_keys:
            # The agent may hold the unlocked copy of a key file that needs a passphrase. It counts as this file's key.
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
        """A key with each of its certificates. They are offered before the key without one, as ssh does."""
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
                hint="add one to the SSH agent, or set key_file in the inventory",
            )
        return AuthenticationFailedError(
            f"{route.label}: {where} refused {keys}{said}",
            hint="check the user and the key in the inventory, and authorized_keys on the host",
        )


def _offer_password(transport: paramiko.Transport, user: str, password: str, deadline: float) -> None:
    """Offer a password, also if the host asks for it by keyboard-interactive login."""
    transport.auth_timeout = time_left_s(deadline)
    try:
        transport.auth_password(user, password)
    except (paramiko.SSHException, EOFError, OSError):
        # A refusal is not raised: the caller finds that there is no login, and names everything that was offered.
        if time.monotonic() >= deadline:
            raise TimeoutError from None


class _Agent:
    """A connection to the SSH agent for one login, opened on first use. Two callers may not share a connection."""

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
        # The cryptography package reports a missing passphrase as TypeError.
        return f"key file {path} needs its passphrase: add it to the agent with ssh-add"
    except (paramiko.SSHException, UnknownKeyType, ValueError):
        return f"key file {path} contains no readable key"
    return key


def _bare_key(path: Path) -> paramiko.PKey:
    """Load a key without the certificate next to its file; with the certificate it could not be offered alone."""
    key = paramiko.PKey.from_path(path)
    return type(key).from_private_key_file(str(path)) if Path(f"{path}-cert.pub").exists() else key


def _certified_key(path: Path, certificate: Path) -> paramiko.PKey | None:
    """A key that shows a certificate; ``None`` if that is not the key's own, or cannot be read."""
    try:
        # Not the key that is kept: loading a certificate changes it, and it could not be offered bare afterwards.
        key = _bare_key(path)
        shown = PublicBlob.from_file(str(certificate))
        key.load_certificate(str(certificate))
    except (paramiko.SSHException, OSError, ValueError, TypeError, UnicodeDecodeError):
        return None
    blob = paramiko.Message(shown.key_blob)
    # A certificate starts with its kind and a nonce. Then comes the public key, as in the key's own public half.
    blob.get_string()
    blob.get_string()
    public = key.asbytes()[4 + len(key.get_name()) :]
    return key if blob.get_remainder().startswith(public) else None


def _public_half(path: Path) -> bytes | None:
    """The public key in the file next to a private key, by which the agent's copy is found."""
    try:
        return base64.b64decode(Path(f"{path}.pub").read_text(encoding="utf-8").split()[1], validate=True)
    except (OSError, ValueError, IndexError, binascii.Error):
        return None
