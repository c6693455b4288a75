"""A desk for workers of a job: the part of the agent and of its coordinator that a test plays itself.

``Nursery`` forks workers from one process that has PyTorch; ``Desk`` is the socket that a set of them speaks with.
"""

import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lumctl.training.protocol import MessageLine

WITHIN_S = 20.0
WORKER = Path(__file__).parents[1] / "system" / "jobs" / "torch_worker.py"


class Nursery:
    """Starts workers."""

    def __init__(self, program: Path = WORKER) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self._process.stdout.readline() == "ready\n"

    def ask(self, request: dict) -> int:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(WITHIN_S)
        self._process.stdout.close()


class Worker:
    """One worker, and all that it has said."""

    def __init__(self, desk: "Desk", name: str, options: dict) -> None:
        self.desk, self.name = desk, name
        self.line: MessageLine | None = None
        self.said: list[dict] = []
        self.log, self.result = desk.folder / f"{name}.log", desk.folder / f"{name}.json"
        environment = {
            "LUMCTL_JOB": "test",
            "LUMCTL_JOB_SOCKET": str(desk.path),
            "LUMCTL_JOB_WORKER": name,
            "LUMCTL_JOB_ACCELERATOR": name,
            "LUMCTL_JOB_TOKEN": desk.token,
            "LUMCTL_JOB_BEAT_S": "0.1",
            "LUMCTL_JOB_ADDRESS": "127.0.0.1",
            "LUMCTL_JOB_FOLDER": str(desk.folder / options.get("host", "")),
        }
        options = {"log": str(self.log), "result": str(self.result), **options}
        options.pop("host", None)
        self.pid = desk.nursery.ask({"environment": environment, "options": options})
        self.status: int | None = None

    def tell(self, do: str, **what) -> None:
        self.line.send({"do": do, **what})

    def all(self, say: str, **what) -> list[dict]:
        return [m for m in self.said if m["say"] == say and all(m.get(k) == v for k, v in what.items())]

    def last(self, say: str) -> dict:
        return self.all(say)[-1]

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def ended(self) -> int:
        if self.status is None:
            self.status = self.desk.nursery.ask({"wait": self.pid})
        return self.status

    def outcome(self) -> dict:
        self.desk.until(self, say="ended")
        assert self.ended() == 0, self.log.read_text()
        return json.loads(self.result.read_text())


class Desk:
    """Speaks with workers over a Unix socket."""

    def __init__(self, nursery: Nursery) -> None:
        self.nursery = nursery
        self._home = tempfile.TemporaryDirectory(prefix="lumctl-")
        self.folder = Path(self._home.name)
        self.path = self.folder / "agent.sock"
        self.token = secrets.token_hex(16)
        self.workers: dict[str, Worker] = {}
        self._new: list[MessageLine] = []
        self.listen()

    def listen(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()

    def hang_up(self) -> None:
        """As an agent that dies."""
        self._listener.close()
        self.path.unlink()
        for worker in self.workers.values():
            if worker.line is not None:
                worker.line.close()
                worker.line = None

    def start(self, *names: str, **options) -> list[Worker]:
        started = [Worker(self, name, options) for name in names]
        self.workers |= {worker.name: worker for worker in started}
        return started

    def close(self) -> None:
        for worker in self.workers.values():
            if worker.status is None:
                worker.kill()
        for worker in self.workers.values():
            worker.ended()
            if worker.line is not None:
                worker.line.close()
        for line in self._new:
            line.close()
        self._listener.close()
        self._home.cleanup()

    def until(self, *workers: Worker, say: str, within_s: float = WITHIN_S, times: int = 1, **what) -> list[dict]:
        """Wait until all these have said something; gives the newest of it."""
        end = time.monotonic() + within_s
        while any(len(worker.all(say, **what)) < times for worker in workers):
            left = end - time.monotonic()
            assert left > 0, self._why(workers, say, what)
            self.hear(left)
        return [worker.all(say, **what)[-1] for worker in workers]

    def until_any(self, workers: Sequence[Worker], say: str) -> list[tuple[dict, Worker]]:
        """Wait until one of these has said something; what they said, with who did."""
        end = time.monotonic() + WITHIN_S
        while not (said := [(each.all(say)[-1], each) for each in workers if each.all(say)]):
            left = end - time.monotonic()
            assert left > 0, self._why(workers, say, {})
            self.hear(left)
        return said

    def hear(self, within_s: float) -> None:
        """Take in what has been said, waiting for something if there is nothing."""
        lines = {worker.line.fileno(): worker for worker in self.workers.values() if worker.line is not None}
        new = {line.fileno(): line for line in self._new}
        poll = select.poll()
        for descriptor in (self._listener.fileno(), *lines, *new):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(1000 * within_s):
            if descriptor == self._listener.fileno():
                self._new.append(MessageLine(self._listener.accept()[0]))
            elif descriptor in new:
                self._greeted(new[descriptor])
            else:
                self._heard(lines[descriptor])

    def _greeted(self, line: MessageLine) -> None:
        hello = line.receive()
        self._new.remove(line)
        worker = self.workers[hello["worker"]]
        worker.line = line
        worker.said.append({**hello, "heard_at": time.time()})

    def _heard(self, worker: Worker) -> None:
        try:
            message = worker.line.receive()
            while message is not None:
                worker.said.append({**message, "heard_at": time.time()})
                if not worker.line.pending:
                    return
                message = worker.line.receive()
        except ConnectionError:
            pass
        worker.line.close()
        worker.line = None

    def _why(self, workers, say, what) -> str:
        logs = "\n".join(f"{w.name}: {w.log.read_text()[-1500:]}" for w in workers if w.log.exists())
        said = {w.name: [m["say"] for m in w.said if m["say"] != "beat"][-8:] for w in workers}
        return f"not said: {say} {what}; said {said}\n{logs}"

    # -- what a coordinator does

    def join(self, crew: list[Worker], generation: int, done: int = 0, **options) -> None:
        """Tell all to join, without waiting for it."""
        store = crew[0].last("ready")["store"]
        for rank, worker in enumerate(crew):
            worker.tell(
                "join",
                generation=generation,
                rank=rank,
                world=len(crew),
                store=store,
                done=done,
                placement=[each.name for each in crew],
                lanes=None,
                **options,
            )

    def joined(self, crew: list[Worker], generation: int, done: int = 0) -> list[dict]:
        self.join(crew, generation, done)
        return self.until(*crew, say="joined", generation=generation)

    def hold(self, crew: list[Worker], generation: int) -> list[dict]:
        for worker in crew:
            worker.tell("hold", generation=generation)
        return self.until(*crew, say="held", generation=generation)

    def load(self, worker: Worker, source: Worker | None, done: int, of: int, world: int) -> dict:
        where = source.last("ready")["state"] if source is not None else None
        worker.tell("load", done=done, source=where, of=of, file=None, world=world)
        return self.until(worker, say="loaded", done=done)[0]
