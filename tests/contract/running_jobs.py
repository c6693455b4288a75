"""Jobs that ``lumctl job run`` runs on a simulated rack: real agents, real workers with PyTorch, real swaps.

``RunningJob`` holds all of it in one private runtime folder, by which every process that was started is known: at the
end none of them may be left. What lumctl narrates is waited for as it comes; how the job stands is asked of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from forked_commands import run_lumctl
from job_coordinator import JOB, WITHIN_S, Coordinator

from lumctl.context import Context
from lumctl.context.job_files import coordinator_socket, job_folder
from lumctl.errors import LumctlError
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import launch
from lumctl.store import QueuedDemand, StoredRun
from lumctl.swap import commission
from lumctl.training.example.data import read_losses
from lumctl.training.job_control import ask

GONE_WITHIN_S = 90.0
"""An agent whose line was not open yet when its job stopped ends when nobody has needed it for a minute."""
LOOK_EVERY_S = 0.02

Status = Mapping[str, Any]


class RunningJob:
    """A commissioned rack of an example inventory whose job is run. Leaving its ``with`` block ends all of it."""

    target = "sim"

    def __init__(
        self,
        inventory: str = "ring4",
        *,
        parallel: str = "data",
        steps: int = 100_000,
        every: int = 50,
        command: list[str] | None = None,
        delay_ms: float = 0.0,
        commissioned: bool = True,
        edited: Callable[[str], str] = str,
        **run: object,
    ) -> None:
        self._stack = ExitStack()
        self.home = Path(tempfile.mkdtemp(prefix="lumctl-"))
        self._stack.callback(shutil.rmtree, self.home, ignore_errors=True)
        try:
            self._set_up(inventory, command or self._example(parallel, steps, every), run, edited)
            self.sim = self._stack.enter_context(launch(self.inventory, tied=True, delay_ms=delay_ms))
            self._aim()
            if commissioned:
                with self.context() as context:
                    commission(context)
        except BaseException:
            self._stack.close()
            raise
        self.coordinator: Coordinator | None = None

    def _set_up(self, name: str, command: list[str], run: Mapping[str, object], edited: Callable[[str], str]) -> None:
        environment = self._stack.enter_context(pytest.MonkeyPatch.context())
        (self.home / "r").mkdir(mode=0o700)
        for variable, value in {
            "XDG_RUNTIME_DIR": self.home / "r",
            "XDG_STATE_HOME": self.home / "state",
            "LUMCTL_STATE": self.home / "store",
            "LUMCTL_TARGET": self.target,
            "LUMCTL_INVENTORY": self.home / "rack.yaml",
        }.items():
            environment.setenv(variable, str(value))
        settings = {"standby": False, "folder": self.home, **run}
        shown = [f"      {key}: {_yaml(value)}" for key, value in settings.items() if value is not None]
        text = edited(example(name).read_text())
        kept = text[: text.index("    run:\n")]
        lines = ["    run:", f"      command: {_yaml(command)}", *shown, "thresholds: {light_deadline_s: 1.0}", ""]
        (self.home / "rack.yaml").write_text(kept + "\n".join(lines))
        self.inventory = load_inventory(self.home / "rack.yaml")
        self.rack = next(iter(self.inventory.racks))

    def _aim(self) -> None:
        """The simulator runs; what is to be done before anything is asked of the rack."""

    def _example(self, parallel: str, steps: int, every: int) -> list[str]:
        return [
            sys.executable,
            "-m",
            "lumctl.training.example",
            *("--parallel", parallel, "--size", "tiny", "--steps", str(steps), "--every", str(every)),
            *("--losses", str(self.losses_file), "--checkpoint", str(self.checkpoints)),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.coordinator is not None and self.coordinator.alive:
            self.coordinator.kill()
        while left := self.processes():  # an agent may just have started another
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._stack.close()

    # What is there.

    @property
    def losses_file(self) -> Path:
        return self.home / "losses.txt"

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints"

    def context(self) -> Context:
        """The rack as any other program sees it."""
        return Context(self.inventory, self.target)

    def runs(self) -> list[StoredRun]:
        """What was done to its light, the newest first."""
        with self.context() as context:
            return context.store(self.rack).runs.all()

    def demands(self) -> list[QueuedDemand]:
        """What waits, or waited, for spares."""
        with self.context() as context:
            return list(context.store(self.rack).demands.all())

    def losses(self) -> dict[int, float]:
        return read_losses(self.losses_file) if self.losses_file.exists() else {}

    def steps_missing(self) -> set[int]:
        """The steps that no loss was written for, before the last that has one; the job may go on meanwhile."""
        done = self.losses().keys()
        return set(range(max(done, default=-1) + 1)) - done

    def state(self, done: int, rank: int | None = None) -> Any:
        """The state in a checkpoint."""
        name = f"step-{done:08d}.pt" if rank is None else f"step-{done:08d}-rank-{rank}.pt"
        return torch.load(self.checkpoints / name, weights_only=True)["state"]

    def log(self) -> str:
        """What all workers have printed, and what was narrated last."""
        found = sorted(job_folder(self.inventory.path, self.target, JOB).rglob("*.log"))
        said = self.coordinator.said[-20:] if self.coordinator is not None else []
        return "\n".join([*said, *(f"{path.name}: {path.read_text()[-1500:]}" for path in found)])

    # What is done.

    def run(self, *words: str, yes: bool = True) -> Coordinator:
        """Run the job, or take it over."""
        self.coordinator = Coordinator(*words, yes=yes)
        return self.coordinator

    def lumctl(self, *words: str, status: int | None = 0) -> str:
        """Run a command to its end; what it has printed and said. Its exit status may be any if ``status`` is None."""
        ended = run_lumctl(*words, env=os.environ, stderr=subprocess.STDOUT, timeout=WITHIN_S)
        as_expected = status in {None, ended.returncode}
        assert as_expected, f"{ended.returncode} instead of {status}: {ended.stdout}\n{self.log()}"
        assert "Traceback" not in ended.stdout
        return ended.stdout

    def status(self) -> Status | None:
        """How the job stands; ``None`` if nobody runs it."""
        with suppress(LumctlError):
            return ask(coordinator_socket(self.inventory.path, self.target, JOB), "status", timeout_s=WITHIN_S)
        return None

    def until(self, such: Callable[[Status], object], *, within_s: float = WITHIN_S) -> Status:
        """Wait until the job stands so."""
        seen: list[Status] = []

        def stands() -> bool:
            seen[:] = [found] if (found := self.status()) is not None else []
            return bool(seen) and bool(such(seen[0]))

        self.wait(stands, within_s=within_s)
        return seen[0]

    def at_work(self, ready: int = 2) -> None:
        """Wait until some steps are done, and so many processes are ready to take a rank over."""
        self.until(lambda found: found["done"] >= 5 and len(found["ready"]) == ready)

    def wait(self, such: Callable[[], object], *, within_s: float = WITHIN_S) -> None:
        """Wait until something is so of which nobody tells."""
        end = time.monotonic() + within_s
        while not such():
            assert time.monotonic() < end, f"{self.status()}\n{self.log()}"
            time.sleep(LOOK_EVERY_S)

    def goes_on(self) -> bool:
        """Whether the ranks do steps."""
        return (found := self.status()) is not None and found["state"] == "running"

    def newest_checkpoint(self) -> int:
        """After how many steps there is one."""
        return max(int(path.stem.removeprefix("step-")) for path in self.checkpoints.glob("step-*.pt"))

    def steps(self, more: int = 20) -> Status:
        """Wait until so many more steps are done than now."""
        at = self.until(lambda found: found["state"] == "running")["done"]
        return self.until(lambda found: found["state"] == "running" and found["done"] >= at + more)

    def recovered(self, times: int = 1) -> dict[str, Any]:
        """Wait until so many recoveries are over; the newest of them."""
        self.coordinator.heard("recovered (", times=times)
        return self.status()["recoveries"][-1]

    def pid(self, rank: int) -> int:
        """The process of a rank."""
        return next(each["pid"] for each in self.status()["ranks"] if each["rank"] == rank)

    def on(self, accelerator: str) -> int:
        """The process on an accelerator, whether it has a rank or waits for one."""
        found = self.status()
        return next(each["pid"] for each in (*found["ranks"], *found["ready"]) if each["accelerator"] == accelerator)

    def placed(self) -> list[str]:
        """Where the ranks of the group run."""
        return [each["accelerator"] for each in self.status()["ranks"]]

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid(rank), number)

    def lose(self, *accelerators: str) -> None:
        """Accelerators are lost, and the processes of their ranks with them."""
        doomed = [each["pid"] for each in self.status()["ranks"] if each["accelerator"] in accelerators]
        for name in accelerators:
            self.sim.inject(name, "gpu-lost")
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)

    def lose_host(self, host: str) -> None:
        """A host is gone: its agent, and all processes on it."""
        self.sim.inject(host, "unreachable")
        there = [*self.status()["ranks"], *self.status()["ready"]]
        for pid in [self.agent(host), *(each["pid"] for each in there if each["host"] == host)]:
            os.kill(pid, signal.SIGKILL)

    def agent(self, host: str) -> int:
        """The process that is the agent of a host."""
        folder = str(job_folder(self.inventory.path, self.target, JOB) / host)
        return next(pid for pid, words in self._ours() if "lumctl.training.agent" in words and folder in words)

    # What is left.

    def _marks(self) -> set[bytes]:
        """Variables of which each process of the job was given one."""
        return {os.fsencode(f"XDG_RUNTIME_DIR={self.home / 'r'}")}

    def _ours(self) -> list[tuple[int, list[str]]]:
        marks, found = self._marks(), []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                given = (entry / "environ").read_bytes().split(b"\0")
                if not marks.isdisjoint(given) and int(entry.name) != os.getpid():
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    if not any(word.startswith("lumctl.sim.") for word in words):
                        found.append((int(entry.name), words))
        return found

    def words(self, pid: int) -> str:
        """The command of a process."""
        return " ".join(dict(self._ours()).get(pid, []))

    def processes(self) -> list[int]:
        """All processes that were started for this job and live, but for the simulator's."""
        return [pid for pid, _ in self._ours()]

    def all_gone(self) -> None:
        """Wait until no process of the job is left."""
        end = time.monotonic() + GONE_WITHIN_S
        while left := self._ours():
            assert time.monotonic() < end, f"left: {left}\n{self.log()}"
            time.sleep(LOOK_EVERY_S)  # nobody tells it of processes that are not ours to wait for

    def stop(self) -> None:
        """Stop the job as a person does, and see that nothing is left of it."""
        assert self.lumctl("job", "stop", JOB, "--yes").startswith("stopped after ")
        assert self.coordinator.ended() == 0
        self.all_gone()


def _yaml(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_yaml(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str | Path) else str(value)
