"""The driver: a controller that answers lines, can be read back, and has no revert timer.

Its protocol, made up: ``size`` is answered by ``size 24``, ``states`` by one mark for each PUC (``states ==x=...``),
``set 3=x 7==`` by ``ok`` or by ``no`` and a reason. Each connection carries one line.
"""

import time
from collections.abc import Mapping
from typing import ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
    after_sending,
)
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged

DEFAULT_PORT = 7000
MOST_BYTES = 64 * 1024


class ExampleMesh(BaseMesh):
    """One mesh of Example & Co. The base class refuses calls that are not declared here."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_STATES})
    proven: ClassVar[str] = "twin; not run on hardware"

    def identify(self) -> str:
        """Say the size, which must be the inventory's."""
        said = self._ask("size")
        if said != f"size {self.context.puc_count}":
            raise InconsistentError(f"{self.context.device} reports {said!r}, expected {self.context.puc_count} PUCs")
        return f"example mesh, {self.context.puc_count} PUCs"

    def read_states(self) -> dict[int, PucState]:
        """Read every PUC."""
        word, _, marks = self._ask("states").partition(" ")
        if word != "states" or len(marks) != self.context.puc_count or set(marks) - {"=", "x"}:
            raise DeviceUnreachableError(f"{self.context.device}: the program there does not report its states")
        return {puc: PucState(mark) for puc, mark in enumerate(marks)}

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        """Check a change against the states of the mesh."""
        held = self.read_states()
        strange = sorted(changes.keys() - held.keys())
        if strange:
            raise DeviceRefusedError(f"{self.context.device} has no PUC {strange[0]}")
        return Staged(tuple(PucChange(puc, held[puc], after) for puc, after in sorted(changes.items())), "")

    def compare(self, staged: Staged[PucChange]) -> tuple[PucChange, ...]:
        """Read the mesh: the difference that a commit would make now."""
        held = self.read_states()
        return tuple(
            PucChange(change.puc, held[change.puc], change.after)
            for change in staged.changes
            if held[change.puc] is not change.after
        )

    def commit(self, staged: Staged[PucChange], *, revert_after_s: float | None = None) -> Receipt[PucChange]:
        """Write a change."""
        if revert_after_s is not None:
            raise UnsupportedError(f"{self.context.device} has no revert timer")
        self._write({change.puc: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt: Receipt[PucChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[PucChange]) -> None:
        """Write the earlier states."""
        before = {change.puc: change.before for change in receipt.staged.changes}
        known = {puc: state for puc, state in before.items() if state is not None}
        if len(known) < len(before):
            raise DeviceRefusedError(f"{self.context.device}: the earlier states of some PUCs are unknown")
        self._write(known)

    def _write(self, states: Mapping[int, PucState]) -> None:
        before = self.read_states()
        wanted = {puc: state for puc, state in sorted(states.items()) if before.get(puc) is not state}
        if not wanted:
            return
        line = "set " + " ".join(f"{puc}={state}" for puc, state in wanted.items())
        try:
            answer = self._ask(line)
        except TimeoutError as error:
            raise OutcomeUnknownError(f"{self.context.device}: {error}; it may or may not have changed") from error
        if answer.startswith("no "):
            why = answer.removeprefix("no ")
            with after_sending():  # it may have made a part of the change before it said no
                held = self.read_states()
            if any(held[puc] is not before[puc] for puc in wanted):
                raise InconsistentError(f"{self.context.device} made part of the change: {why}")
            raise DeviceRefusedError(f"{self.context.device}: {why}")
        if answer != "ok":
            raise OutcomeUnknownError(f"{self.context.device}: it answered {answer[:80]!r}")

    def _ask(self, line: str) -> str:
        """Send one line and give the answer; a write whose answer is lost is a ``TimeoutError``.

        The way is the context's: it may lead through a host near the device.
        """
        writes = line.startswith("set ")
        ends = time.monotonic() + self.context.timeout_s
        try:
            stream = self.context.way.tcp(DEFAULT_PORT, self.context.timeout_s)
        except OSError as error:
            raise DeviceUnreachableError(f"{self.context.device} at {self.context.address}: {error}") from error
        try:
            stream.settimeout(_left(ends))
            stream.sendall(f"{line}\n".encode())
            answer, piece = b"", b" "
            while piece and not answer.endswith(b"\n") and len(answer) < MOST_BYTES:
                stream.settimeout(_left(ends))  # however small the pieces are that arrive
                piece = stream.recv(4096)
                answer += piece
            if not answer.endswith(b"\n"):
                raise ConnectionError("the answer is incomplete")
            return answer.decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            if writes:
                raise TimeoutError(str(error)) from error
            raise DeviceUnreachableError(f"{self.context.device} at {self.context.address}: {error}") from error
        finally:
            stream.close()


def _left(ends: float) -> float:
    """Seconds that are left of a call."""
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
