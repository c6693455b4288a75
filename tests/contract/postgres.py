"""A real PostgreSQL for tests, in a folder of its own, reached by a socket in that folder only."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

STARTS_WITHIN_S = 30.0
_QUICK = ("fsync=off", "full_page_writes=off", "listen_addresses=", "log_min_messages=warning")


class Postgres:
    """A running server. It will not run as root, and then runs as the system's user ``postgres``."""

    def __init__(self, require_program: Callable[[str], str]) -> None:
        self._bin = Path(require_program("initdb")).resolve().parent
        self._user = "postgres" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._made = 0
        self._server: subprocess.Popen[bytes] | None = None
        try:
            if self._user is not None:
                found = pwd.getpwnam(self._user)
                os.chown(self.folder, found.pw_uid, found.pw_gid)
            self._do(
                "initdb",
                "--pgdata",
                "data",
                "--auth=trust",
                "--username=lumctl",
                "--no-sync",
                "--locale=C",
                "--encoding=UTF8",
            )
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start it, or start it again."""
        options = [word for setting in _QUICK for word in ("-c", setting)]
        self._server = subprocess.Popen(
            [self._bin / "postgres", "-D", "data", "-k", self.folder, *options],
            cwd=self.folder,
            user=self._user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + STARTS_WITHIN_S
        asks = [self._bin / "pg_isready", "--quiet", "--host", self.folder]
        while subprocess.run(asks, check=False).returncode:
            assert self._server.poll() is None, "postgres has ended"
            assert time.monotonic() < deadline, "postgres does not answer"
            threading.Event().wait(0.02)

    def stop(self) -> None:
        """End it at once, with whatever it was about to do."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None

    def fresh(self) -> str:
        """The URL of a new and empty database."""
        self._made += 1
        name = f"rack{self._made}"
        self._do("createdb", "--host", str(self.folder), "--username=lumctl", name)
        return f"postgresql+psycopg://lumctl@/{name}?host={self.folder}"

    def close(self) -> None:
        """End it and take its folder away."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _do(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._bin / program, *arguments], cwd=self.folder, user=self._user, check=True, capture_output=True
        )
