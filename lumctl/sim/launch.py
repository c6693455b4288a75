"""Start a simulator as a separate process, and end it."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lumctl.devices.endpoints import Endpoints, sim_endpoints, sim_runtime_folder
from lumctl.errors import ExitCode, LumctlError, RefusedError, UnreachableError, UsageError
from lumctl.inventory.model import Inventory
from lumctl.sim.client import ask
from lumctl.sim.runtime import CONTROL_SOCKET, clean
from lumctl.sim.world.work import WriteInProgress

_READY_WITHIN_S = 30.0
_ENDS_WITHIN_S = 5.0
_ERRORS: dict[int, type[LumctlError]] = {ExitCode.USAGE: UsageError, ExitCode.REFUSED: RefusedError}


@dataclass
class SimProcess:
    """A running simulator. Leaving its ``with`` block ends it."""

    inventory: Inventory
    folder: Path
    process: subprocess.Popen[bytes]
    tie: int | None

    def endpoints(self) -> Endpoints:
        """The addresses of its hosts and devices."""
        return sim_endpoints(self.inventory, self.folder)

    @property
    def control(self) -> Path:
        """Its control socket."""
        return self.folder / CONTROL_SOCKET

    def inject(self, component: str, kind: str, value: float | None = None) -> None:
        """Make a component faulty, as ``lumctl sim fault`` does."""
        ask(self.control, "fault", component=component, kind=kind, value=value)

    def clear(self, component: str | None = None) -> None:
        """Clear the faults of a component, or all faults, as ``lumctl sim clear`` does."""
        ask(self.control, "clear", component=component)

    def writes(self, after: int = 0) -> list[WriteInProgress]:
        """The writes of its devices after the write with this number, oldest first."""
        return [WriteInProgress(**each) for each in ask(self.control, "writes", after=after)["writes"]]

    def renew(self) -> None:
        """Reset the simulated world: nothing programmed, nothing switched off, no fault."""
        ask(self.control, "renew")

    def unserved(self) -> dict[str, str]:
        """The devices that do not answer on the simulator, with the reason for each."""
        return dict(ask(self.control, "status")["unserved"])

    def remarks(self) -> list[str]:
        """Messages about differences from the rack: devices that do not answer or that a generic device replaces."""
        told = ask(self.control, "status")
        missing = [f"{device} does not answer: {why}" for device, why in told["unserved"].items()]
        return missing + [
            f"{device}: driver {self.inventory.devices[device].driver!r} has no twin; a generic "
            f"{self.inventory.devices[device].kind} replaces it, with every capability of {driver}"
            for device, driver in told["runtime"]["stand_ins"].items()
        ]

    def heard(self) -> dict[str, str]:
        """The transmitter that each lit receiver really hears (transponders); receivers of lost hosts are omitted."""
        return {receiver: sender for sender, receiver in ask(self.control, "heard")["heard"]}

    def wait(self) -> None:
        """Wait until the process ends."""
        self.process.wait()

    def leave(self) -> None:
        """Allow it to continue after this process ends."""
        self.process.returncode = 0  # this process no longer waits for it, and Popen would complain

    def stop(self) -> None:
        """End the process, by force if necessary; a second call does nothing."""
        if self.tie is not None:
            os.close(self.tie)
            self.tie = None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        clean(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def launch(
    inventory: Inventory,
    *,
    folder: Path | None = None,
    delay_ms: float = 0.0,
    change_ms: Mapping[str, float] | None = None,
    seed: int = 0,
    lane_mbps: float | None = None,
    tied: bool = False,
) -> SimProcess:
    """Start a simulator in a session of its own and wait until it serves.

    ``folder`` is its runtime folder, by default the one in which every command looks for a simulator. ``delay_ms`` is
    the time that a change of a mesh takes, and ``change_ms`` that of the meshes and switches that it names: light is
    dark where it changes, and the device answers when light has settled. ``lane_mbps`` is the rate of a lane in each
    direction, in Mbit/s (``None``: no limit). ``tied``: the simulator ends when this process ends, for any reason.

    Raises:
        RefusedError: a simulator already runs in this folder.
        UnreachableError: the simulator did not start.
    """
    folder = folder or sim_runtime_folder(inventory.path)
    with contextlib.ExitStack() as ours:
        ready, childs_ready = os.pipe()
        ours.callback(os.close, ready)
        tie_end, tie = os.pipe() if tied else (None, None)
        order = {
            "inventory": str(inventory.path.resolve()),
            "digest": inventory.digest,
            "folder": str(folder.absolute()),
            "change_ms": {device.id: delay_ms for device in inventory.light_devices if device.geometry}
            | dict(change_ms or {}),
            "seed": seed,
            "lane_mbps": lane_mbps,
            "tie": tie_end,
        }
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
                # -P: a file in the current folder must not replace a module.
                [sys.executable, "-P", "-m", "lumctl.sim.server", json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=childs_ready,
                pass_fds=() if tie_end is None else (tie_end,),
                # Ctrl-C in a terminal must not reach it: the process that started it ends it.
                start_new_session=True,
            )
        except BaseException:
            if tie is not None:
                os.close(tie)
            raise
        finally:
            # Only the child may hold this end: its closing tells us that the child has ended.
            os.close(childs_ready)
            if tie_end is not None:
                os.close(tie_end)
        started = SimProcess(inventory, folder, process, tie)
        try:
            _await_ready(ready)
        except BaseException:
            started.stop()
            raise
    return started


def _await_ready(pipe: int) -> None:
    """Read the child's one line."""
    deadline = time.monotonic() + _READY_WITHIN_S
    said = bytearray()
    while (answer := _answer_in(said)) is None:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            raise UnreachableError(f"the simulator was not ready within {_READY_WITHIN_S:.0f} s")
        chunk = os.read(pipe, 65536)
        if not chunk:
            last = said.decode(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise UnreachableError(f"the simulator ended during its start: {last[0]}")
        said += chunk
    if "error" in answer:
        raise _ERRORS.get(answer["exit_code"], LumctlError)(answer["error"], hint=answer["hint"])


def _answer_in(said: bytes | bytearray) -> dict[str, Any] | None:
    """The child's answer, if its last line is one; a twin may have printed other lines before it."""
    if not said.endswith(b"\n"):
        return None
    try:
        answer = json.loads(said.splitlines()[-1])
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and answer.keys() <= {"error", "hint", "exit_code"} else None
