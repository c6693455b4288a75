"""A simulated rack of an inventory with policies, with its daemon and its commands as processes of their own."""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from forked_commands import run_lumctl
from said import PATIENCE_S, Said

from lumctl.inventory.load import example


class Rack:
    """Commands by calling it; ``lines`` are what its daemon has told."""

    def __init__(self, place: Path, policies: str, example_of: str = "prototype", delay_ms: int = 0) -> None:
        (place / "run").mkdir(mode=0o700)
        inventory = place / "rack.yaml"
        before, jobs, after = example(example_of).read_text().partition("\njobs:\n")
        # Nobody trains on a simulated rack: there is nothing to pause before its light moves.
        after = re.sub(r"^(  - name: .*)$", r"\1\n    needs_no_pause: true", after, flags=re.MULTILINE)
        inventory.write_text(f"{before}{jobs}{after}\npolicies:\n{policies}")
        self.inventory = inventory
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(place),
            "XDG_STATE_HOME": str(place / "state"),
            "XDG_RUNTIME_DIR": str(place / "run"),
            "LUMCTL_INVENTORY": str(inventory),
            "LUMCTL_TARGET": "sim",
            "LANG": "C.UTF-8",
        }
        self.paged = place / "paged"
        """Where a receiver may write, in its home folder."""
        self.daemon: subprocess.Popen[str] | None = None
        self._said: Said | None = None
        self("sim", "up", "--detach", "--delay-ms", str(delay_ms))

    def __call__(self, *words: str, code: int = 0) -> str:
        return self.said(*words, code=code).stdout

    def said(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """A command with all that it printed."""
        done = run_lumctl(*words, env=self.environment, timeout=90)
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done

    def data(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def watch(self, *words: str) -> None:
        self.daemon = subprocess.Popen(
            [sys.executable, "-m", "lumctl", "watch", "--interval", "0.2", "--listen", "none", *words],
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.daemon.stderr is not None
        self._said = Said(self.daemon.stderr)
        self.hear("observing ")

    def hear(self, *words: str, after: int = 0) -> str:
        """Wait for a line with these words; see :meth:`Said.hear`."""
        assert self._said is not None
        return self._said.hear(*words, after=after)

    @property
    def lines(self) -> list[str]:
        """What the daemon has said."""
        return [] if self._said is None else self._said.lines

    def swaps(self) -> list[dict[str, Any]]:
        return [run for run in self.data("swap", "list")["runs"] if run["kind"] == "swap"]

    def places(self, job: str = "finetune") -> list[str]:
        return [rank["accelerator"] for rank in self.data("job", "show", job)["ranks"]]

    def decisions(self) -> list[dict[str, Any]]:
        """What the journal says was decided by a policy, oldest first."""
        return list(self.data("autopilot", "status")["racks"][0]["decisions"])

    def end_daemon(self) -> None:
        """End the daemon, if it has not ended, and hear all that it said."""
        if self.daemon is not None:
            if self.daemon.poll() is None:
                self.daemon.send_signal(signal.SIGCONT)
                self.daemon.send_signal(signal.SIGTERM)
            self.daemon.wait(PATIENCE_S)
            self._said.end()
            self.daemon = None

    def end(self) -> None:
        self.end_daemon()
        self("sim", "down")


def racks() -> Iterator[Callable[..., Rack]]:
    """Makes racks; ends them all when it is closed."""
    made: list[Rack] = []
    # Not pytest's own folder: the path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))

    def make(policies: str, example_of: str = "prototype", delay_ms: int = 0) -> Rack:
        made.append(Rack(folder, policies, example_of, delay_ms))
        return made[-1]

    yield make
    for rack in made:
        rack.end()
    shutil.rmtree(folder, ignore_errors=True)
