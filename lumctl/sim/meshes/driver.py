"""The driver ``sim-mesh``: a simulated mesh over its simulator's control socket, with every capability there is."""

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.types import Alarm, Capability, Progress, PucChange, PucState, Receipt, Staged
from lumctl.sim.client import ask_simulator, dbm_from_json, read_progress, read_simulator


class SimMesh(BaseMesh):
    """One simulated mesh. ``context.address`` is ``unix:`` and the path of the control socket."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.READ_STATES,
            Capability.CONFIRM_TIMER,
            Capability.READ_POWERS,
            Capability.READ_TEMPERATURE,
            Capability.READ_ALARMS,
            Capability.PROGRESS,
        }
    )

    proven: ClassVar[str] = "simulator"

    def identify(self) -> str:
        """The line that the mesh's controller greets with.

        Raises:
            InconsistentError: the size of the simulated mesh differs from the inventory.
        """
        text = str(self._read("mesh-identify")["text"])
        count = len(self._read("mesh-read")["states"])
        if count != self.context.puc_count:
            raise InconsistentError(
                f"{self.context.device} has {count} PUCs, but the inventory states {self.context.puc_count}",
                hint="restart the simulator with this inventory",
            )
        return text

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        """Check a change against the present states."""
        states = self.read_states()
        missing = [puc for puc in changes if puc not in states]
        if missing:
            raise DeviceRefusedError(f"{self.context.device} has no PUC {missing[0]} (they are 0 to {len(states) - 1})")
        pairs = tuple(PucChange(puc, states[puc], after) for puc, after in sorted(changes.items()))
        return Staged(pairs, token=uuid.uuid4().hex)

    def compare(self, staged: Staged[PucChange]) -> tuple[PucChange, ...]:
        """The changes that a commit would make now."""
        states = self.read_states()
        return tuple(
            PucChange(change.puc, states[change.puc], change.after)
            for change in staged.changes
            if states[change.puc] is not change.after
        )

    def commit(self, staged: Staged[PucChange], *, revert_after_s: float | None = None) -> Receipt[PucChange]:
        """Write a staged change; with ``revert_after_s`` the simulated device reverts it unless it is confirmed.

        Raises:
            InconsistentError: the device refused the change but made part of it.
        """
        text, complete = self._write(staged.changes, staged.token, revert_after_s)
        return Receipt(staged, revert_armed=revert_after_s is not None, text=text, complete=complete)

    def confirm(self, receipt: Receipt[PucChange]) -> None:
        """Disarm the revert timer.

        Raises:
            DeviceRefusedError: the timer had already expired, so the device has reverted the change.
        """
        if not receipt.revert_armed:
            return
        # If the answer to an earlier confirm was lost, no timer is armed any more, but the change is still there.
        if not self._ask("mesh-confirm", receipt=receipt.staged.token)["disarmed"] and self.compare(receipt.staged):
            raise DeviceRefusedError(f"{self.context.device} has reverted: it was not confirmed in time")

    def roll_back(self, receipt: Receipt[PucChange]) -> None:
        """Write the states from before the change, which also disarms its revert timer.

        Raises:
            DeviceRefusedError: some earlier state is unknown.
        """
        back = tuple(
            PucChange(change.puc, change.after, change.before)
            for change in receipt.staged.changes
            if change.before is not None
        )
        if len(back) < len(receipt.staged.changes):
            raise DeviceRefusedError(f"{self.context.device} cannot be rolled back: its previous state is unknown")
        self._write(back, receipt.staged.token, None)

    def read_states(self) -> dict[int, PucState]:
        """The state of every PUC."""
        return {puc: PucState(mark) for puc, mark in enumerate(self._read("mesh-read")["states"])}

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Power that leaves each port in dBm; ``-inf`` for no light."""
        dbm = self._read("mesh-powers", ports=ports)["dbm"]
        return {int(port): dbm_from_json(power) for port, power in dbm.items()}

    def read_temperature(self) -> float:
        """Temperature of the chip in degrees Celsius."""
        return float(self._read("mesh-temperature")["celsius"])

    def read_alarms(self) -> tuple[Alarm, ...]:
        """The mesh's alarms."""
        return tuple(Alarm(**told) for told in self._read("mesh-alarms")["alarms"])

    def read_progress(self) -> Progress | None:
        """Progress of an earlier change, if still in progress."""
        return read_progress(self.context)

    def _write(self, changes: tuple[PucChange, ...], token: str, revert_after_s: float | None) -> tuple[str, bool]:
        """Write a change; return the text of the simulator's answer, and whether the change is complete."""
        marks = {change.puc: change.after.value for change in changes}
        try:
            answer = self._ask("mesh-write", changes=marks, receipt=token, revert_after_s=revert_after_s)
        except DeviceRefusedError as refusal:
            self._require_untouched(changes, refusal)
            raise
        return str(answer["text"]), answer["progress"] is None

    def _require_untouched(self, changes: tuple[PucChange, ...], refusal: DeviceRefusedError) -> None:
        try:
            held = self.read_states()
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(f"{refusal.message}; it cannot be read back: {error.message}") from refusal
        # A cell that was to stay as it was cannot show whether it was written.
        taken = [c for c in changes if c.before is not c.after and held.get(c.puc) is c.after]
        if taken:
            raise InconsistentError(f"{refusal.message}; {len(taken)} of {len(changes)} cells were set") from refusal

    def _read(self, do: str, **arguments: Any) -> dict[str, Any]:
        return read_simulator(self.context, do, **arguments)

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        return ask_simulator(self.context, do, **arguments)
