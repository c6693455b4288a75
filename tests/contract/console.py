"""lumctl as an operator types it, on a simulator of its own; an error is kept with the place in the code that made it.

Commands run in this process. The simulator, revert guards and engines that are cut are processes of their own.
"""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from racks import ENGINE

from lumctl import errors
from lumctl.cli.main import report, run
from lumctl.context import Context
from lumctl.devices.endpoints import RUNTIME_FILE, sim_runtime_folder
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucState
from lumctl.errors import LumctlError
from lumctl.health.states import State
from lumctl.inventory.load import example, load_inventory
from lumctl.sim.launch import launch
from lumctl.sim.meshes.driver import SimMesh
from lumctl.store import Store, open_store
from lumctl.swap import commission

PACKAGE = Path(errors.__file__).parent
ASKING = frozenset({"apply", "resume", "abort", "rollback", "set", "replay", "adopt"})
"""The verbs that ask for a yes."""
COMMAND = re.compile(r"lumctl (?:(?!lumctl |, | or |; |: |\)).)+")
"""A command in the text of a hint: to the end of the sentence, or to the next command."""


@dataclass(frozen=True)
class Origin:
    """Where in the code an error was made."""

    file: str
    line: int


@dataclass(frozen=True)
class Said:
    """What a command said, and the error that it ended with, with those that caused it."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str
    error: LumctlError | None

    @property
    def message(self) -> str:
        """The error's one line; empty where there was none."""
        return self.error.message if self.error else ""

    @property
    def hint(self) -> str:
        """What to do, as it was printed."""
        return (self.error.hint or "") if self.error else ""

    @property
    def commands(self) -> list[str]:
        """The commands that the hint names."""
        return [found.strip().removesuffix(".") for found in COMMAND.findall(self.hint)]

    @property
    def origins(self) -> list[Origin]:
        """Where the error was made, and where those were that it came from."""
        found: list[BaseException] = []
        error: BaseException | None = self.error
        while error is not None and error not in found:
            found.append(error)
            error = error.__cause__ or error.__context__
        return [each.origin for each in found if isinstance(each, LumctlError)]


class Console:
    """A simulated rack, its store, and an operator's shell."""

    def __init__(self, folder: Path, name: str, edited: Callable[[str], str], **settings: float) -> None:
        self.folder = folder
        self.rack = name
        self.path = folder / f"{name}.yaml"
        self.text = edited(example(name).read_text()) + "\nthresholds: {light_deadline_s: 1.0}\n"
        self.path.write_text(self.text)
        self.settings = settings
        self.inventory = load_inventory(self.path)
        self.sim = launch(self.inventory, tied=True, **settings)
        (folder / "sim").symlink_to(sim_runtime_folder(self.path))
        self.ahead_s = 0.0
        self._begun, self._replugged = 0, False
        self._reported: list[LumctlError] = []

    def fresh(self, *, dark: bool = False) -> None:
        """Commission the rack again, with an empty store, the inventory as it was, and no fault; or leave it dark."""
        self.ahead_s = 0.0
        if self.path.read_text() != self.text:
            self.edit((self.path.read_text(), self.text))
            if self._replugged:
                self.replug()
                self._replugged = False
        self.sim.renew()
        self._begun += 1
        os.environ["XDG_STATE_HOME"] = state = str(self.folder / f"state-{self._begun}")
        Path(state).mkdir()
        os.chdir(state)
        self.user("ops")
        with self.context() as context:
            if not dark:
                commission(context)
            store = context.store(self.rack).files
        (self.folder / "store").unlink(missing_ok=True)
        (self.folder / "store").symlink_to(store)

    def edit(self, *replaced: tuple[str, str]) -> None:
        """Edit the inventory. The simulator stands for hardware, which does not change by that."""
        text = self.path.read_text()
        for old, new in replaced:
            assert old in text, old
            text = text.replace(old, new)
        self.path.write_text(text)
        self.inventory = load_inventory(self.path)
        runtime = sim_runtime_folder(self.path) / RUNTIME_FILE
        runtime.write_text(json.dumps(json.loads(runtime.read_text()) | {"digest": self.inventory.digest}))

    def replug(self) -> None:
        """Let the hardware be as the inventory says: its power was off meanwhile."""
        self.sim.stop()
        self.sim = launch(self.inventory, tied=True, **self.settings)
        self._replugged = True

    def context(self) -> Context:
        """What commands work on."""
        return Context(self.inventory, "sim")

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        """The rack's store."""
        store = open_store(self.inventory, self.rack, "sim")
        try:
            yield store
        finally:
            store.close()

    def say(self, *words: str) -> Said:
        """Do a command and give what came of it."""
        aimed = [] if "--target" in words else ["--target", "sim"]
        named = [] if {"-i", "--inventory"} & {*words} else ["-i", str(self.path)]
        out, err = io.StringIO(), io.StringIO()
        self._reported.clear()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([*words, *named, *aimed])
        assert "Traceback" not in err.getvalue(), err.getvalue()
        return Said(words, code, out.getvalue(), err.getvalue(), self._reported[-1] if self._reported else None)

    def __call__(self, *words: str) -> str:
        """Do a command that must succeed; gives what it printed."""
        said = self.say(*words)
        assert said.code == 0, (words, said.code, said.err)
        return said.out

    def type(self, line: str, *more: str, **given: str) -> Said:
        """Do a command as it is written in a hint, with what is ``given`` for its words in capitals."""
        words = [given.get(word, word) for word in shlex.split(line)[1:]]
        return self.say(*words, *(["--yes"] if ASKING & {*words} else []), *more)

    # -- how a rack gets into a state --------------------------------------------------------------------------------

    def plan(self, *words: str) -> str:
        """Make a plan; gives its id."""
        return self("swap", "plan", *words, "-o", "name").strip()

    def do(self, *words: str) -> str:
        """Do a change; gives its run."""
        return self(*words, "--yes", "-o", "name").strip()

    def swapped(self, failed: str) -> str:
        """Replace an accelerator that was lost; gives the run."""
        self.sim.inject(failed, "gpu-lost")
        return self.do("swap", "apply", self.plan("--failed", failed))

    def cut(self, plan: str, **where: int) -> str:
        """Apply a plan in a process that is killed at a boundary of the journal, with its guard; gives the run."""
        order = {"inventory": str(self.path), "folder": str(self.folder), "plan": plan, "signal": signal.SIGSTOP}
        with subprocess.Popen(
            [sys.executable, ENGINE, json.dumps(order | where)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as engine:
            ended = os.waitid(os.P_PID, engine.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert ended.si_code == os.CLD_STOPPED
            os.kill(int((self.folder / "guard.pid").read_text()), signal.SIGKILL)
            engine.kill()
        with self.store() as store:
            return max(store.runs.all(), key=lambda each: each.fence).id

    def write(self, device: str, puc: int) -> None:
        """Let somebody else write a PUC of a mesh: the other state."""
        mesh = SimMesh(DriverContext(device=device, address=f"unix:{self.sim.control}"))
        other = PucState.BAR if mesh.read_states()[puc] is PucState.CROSS else PucState.CROSS
        mesh.commit(mesh.stage({puc: other}))

    def user(self, name: str) -> None:
        """Let commands be typed by a user of this name."""
        os.environ["LOGNAME"] = name

    def later(self) -> None:
        """Let the lease of a dead engine end."""
        self.ahead_s = 60.0

    # -- how it is then ----------------------------------------------------------------------------------------------

    def cells(self) -> dict[str, dict[int, PucState]]:
        """What each mesh really holds."""
        return {
            device.id: SimMesh(DriverContext(device=device.id, address=f"unix:{self.sim.control}")).read_states()
            for device in self.inventory.devices.values()
            if device.geometry is not None
        }

    def ranks(self, job: str) -> list[str]:
        """Where a job runs by the record."""
        shown = json.loads(self("job", "show", job, "-o", "json"))
        return [rank["accelerator"] for rank in shown["ranks"]]

    def dark(self) -> list[str]:
        """The circuits of jobs whose receivers do not hear whom they should, by a fresh look."""
        with self.context() as context:
            report = context.observe().report
        return [circuit.id for circuit in report.circuits.values() if circuit.state is not State.OK]

    def close(self) -> None:
        """End the simulator."""
        self.sim.stop()


def _note_origins(patch: pytest.MonkeyPatch) -> None:
    """Have each error remember where it was made."""
    real = LumctlError.__init__

    def noting(self: LumctlError, *words: Any, **more: Any) -> None:
        real(self, *words, **more)
        frame = sys._getframe(1)
        while isinstance(frame.f_locals.get("self"), LumctlError):
            frame = frame.f_back
        with contextlib.suppress(ValueError):
            file = str(Path(frame.f_code.co_filename).relative_to(PACKAGE))
            self.origin = Origin(file, frame.f_lineno)

    patch.setattr(LumctlError, "__init__", noting)
    patch.setattr(LumctlError, "origin", Origin("", 0), raising=False)


@contextlib.contextmanager
def consoles() -> Iterator[Callable[..., Console]]:
    """Open consoles on example racks, in private folders, and close them all."""
    folder = Path(tempfile.mkdtemp(prefix="lumctl-"))
    with contextlib.ExitStack() as running, pytest.MonkeyPatch.context() as patch:
        running.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in ("LUMCTL_STATE", "LUMCTL_TARGET", "LUMCTL_INVENTORY", "XDG_STATE_HOME"):
            patch.delenv(name, raising=False)
        patch.chdir(folder)
        patch.setenv("LOGNAME", "ops")
        patch.setattr("lumctl.change.origin.pwd.getpwuid", lambda _uid: SimpleNamespace(pw_name=os.environ["LOGNAME"]))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder))
        patch.setenv("HOME", str(folder))
        _note_origins(patch)
        opened: list[Console] = []

        def noted(error: LumctlError) -> int:
            for console in opened:
                console._reported.append(error)
            return report(error)

        def open_console(name: str, edited: Callable[[str], str] = str, **settings: float) -> Console:
            place = folder / str(len(opened))
            place.mkdir()
            console = Console(place, name, edited, **settings)
            running.callback(console.close)
            opened.append(console)
            return console

        def now() -> float:
            return time.time() + max((console.ahead_s for console in opened), default=0.0)

        patch.setattr("lumctl.cli.main.report", noted)
        patch.setitem(Context.__init__.__kwdefaults__, "now", now)
        yield open_console
