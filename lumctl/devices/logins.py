"""The login of a device; its secret is in a file that only we can read or in a variable, never in the inventory."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from lumctl.devices.errors import DeviceLoginError


@dataclass(frozen=True, slots=True)
class Login:
    """Our login on a device. The secret is read again for each use, and no message contains it."""

    user: str = ""
    secret_file: Path | None = None
    secret_variable: str | None = None

    @property
    def has_secret(self) -> bool:
        """Whether a source of the secret is configured."""
        return self.secret_file is not None or self.secret_variable is not None

    def secret(self) -> str:
        """The secret, without a line end.

        Raises:
            DeviceLoginError: the secret is missing, or other users may read it.
        """
        if self.secret_variable is not None and (value := os.environ.get(self.secret_variable)):
            return value
        if self.secret_file is not None:
            return _read(self.secret_file)
        if self.secret_variable is not None:
            raise DeviceLoginError(
                f"${self.secret_variable} is not set", hint="it contains the secret of a device's login"
            )
        raise DeviceLoginError(
            f"no secret is configured for user {self.user!r}",
            hint="add a file or a variable to the device's login: lumctl-inventory(5)",
        )


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            # Of the opened file, so that it cannot be replaced between this check and reading.
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise DeviceLoginError(
                    f"{path} contains a secret, but other users may read it", hint=f"chmod 600 {path}"
                )
            return file.read().rstrip("\r\n")
    except OSError as error:
        raise DeviceLoginError(f"the secret in {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise DeviceLoginError(f"{path} is not text") from None
