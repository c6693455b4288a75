"""The secret of a device's login: from a file that only we can read, or from a variable; never from the inventory."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from lumctl.devices.errors import DeviceLoginError


@dataclass(frozen=True, slots=True)
class Login:
    """Who we are to a device. The secret is fetched each time it is shown, and stands in no message."""

    user: str = ""
    secret_file: Path | None = None
    secret_variable: str | None = None

    @property
    def has_secret(self) -> bool:
        """Whether there is a place to fetch a secret from."""
        return self.secret_file is not None or self.secret_variable is not None

    def secret(self) -> str:
        """The secret, without a line end.

        Raises:
            DeviceLoginError: it is not there, or others may read it.
        """
        if self.secret_variable is not None and (value := os.environ.get(self.secret_variable)):
            return value
        if self.secret_file is not None:
            return _read(self.secret_file)
        if self.secret_variable is not None:
            raise DeviceLoginError(
                f"${self.secret_variable} is not set", hint="it holds the secret of a device's login"
            )
        raise DeviceLoginError(
            f"no secret is named for user {self.user!r}",
            hint="name a file or a variable in the device's login: lumctl-inventory(5)",
        )


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise DeviceLoginError(f"{path} holds a secret and others may read it", hint=f"chmod 600 {path}")
            return file.read().rstrip("\r\n")
    except OSError as error:
        raise DeviceLoginError(f"the secret in {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise DeviceLoginError(f"what {path} holds is not text") from None
