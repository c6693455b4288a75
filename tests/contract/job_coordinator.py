"""``lumctl job run`` as a process, and what it narrates; and the same training without it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

JOB = "train"
WITHIN_S = 60.0
"""For whatever must come: machines are slow, and slow is not wrong."""
LONG_S = 200.0
"""For a whole training."""


class Coordinator:
    """One ``lumctl job run`` and all that it has narrated."""

    def __init__(self, *words: str, yes: bool = True) -> None:
        self.said: list[str] = []
        self._change = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lumctl", "job", "run", JOB, *(["--yes"] if yes else []), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._change:
                self.said.append(line.rstrip("\n"))
                self._change.notify_all()
        with self._change:
            self.said.append("(end)")
            self._change.notify_all()

    def heard(self, *words: str, times: int = 1, since: int = 0) -> str:
        """Wait until a line with all these words was said so often; gives the newest such line."""

        def found() -> list[str]:
            return [line for line in self.said[since:] if all(word in line for word in words)]

        with self._change:
            in_time = self._change.wait_for(
                lambda: len(found()) >= times or self.said[-1:] == ["(end)"], timeout=WITHIN_S
            )
            assert in_time, f"{words} was not said {times} times:\n" + "\n".join(self.said)
            assert len(found()) >= times, f"{words} was not said {times} times:\n" + "\n".join(self.said)
            return found()[times - 1]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Send it a signal and wait for its end; its exit status."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self, *, within_s: float = LONG_S) -> int:
        """Wait for its end; its exit status."""
        try:
            status = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            pytest.fail("lumctl job run does not end:\n" + "\n".join(self.said))
        self._reader.join(WITHIN_S)
        # Closing a file that another thread reads waits for that thread without any limit.
        assert not self._reader.is_alive(), "a process that it has started holds its standard error open"
        self.process.stderr.close()
        return status


def unfailed(folder: Path, *, parallel: str, ranks: int, steps: int, every: int) -> Path:
    """The same training without lumctl and without a failure: the folder of its losses and checkpoints."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "lumctl.training.example", "--parallel", parallel, "--size", "tiny"]
    command += ["--steps", str(steps), "--every", str(every)]
    command += ["--losses", str(folder / "losses.txt"), "--checkpoint", str(folder / "checkpoints")]
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(command, env={**os.environ, **world, "RANK": str(rank)}, stdout=subprocess.DEVNULL)
        for rank in range(ranks)
    ]
    try:
        assert [process.wait(LONG_S) for process in started] == [0] * ranks
    finally:
        for process in started:
            process.kill()
            process.wait()
    return folder
