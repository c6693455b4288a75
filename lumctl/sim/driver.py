"""The driver ``sim-mesh``: a simulated mesh over its simulator's control socket, with every capability there is."""

import math
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged
from lumctl.sim.client import ask

_SCHEME = "unix:"


class SimMesh:
    """One simulated mesh. ``context.address`` is ``unix:`` and the path of the control socket."""

    api_version: ClassVar[int] = 1
    kind: ClassVar[str] = "mesh"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.READ_STATES, Capability.CONFIRM_TIMER, Capability.READ_POWERS, Capability.READ_TEMPERATURE}
    )

    proven: ClassVar[str] = "simulator"

    def __init__(self, context: DriverContext) -> None:
        self._context = context

    def close(self) -> None:
        """Nothing is held between two calls."""

    def identify(self) -> str:
        """The line that the mesh's controller greets with."""
        return str(self._read("mesh-identify")["text"])

    def stage(self, changes: Mapping[int, PucState]) -> Staged:
        """Check a change against the states as they are now."""
        states = self.read_states()
        missing = [puc for puc in changes if puc not in states]
        if missing:
            raise DeviceRefusedError(
                f"{self._context.device} has no PUC {missing[0]} (they are 0 to {len(states) - 1})"
            )
        pairs = tuple(PucChange(puc, states[puc], after) for puc, after in sorted(changes.items()))
        return Staged(pairs, token=uuid.uuid4().hex)

    def compare(self, staged: Staged) -> tuple[PucChange, ...]:
        """What committing would change now."""
        states = self.read_states()
        return tuple(
            PucChange(change.puc, states[change.puc], change.after)
            for change in staged.changes
            if states[change.puc] is not change.after
        )

    def commit(self, staged: Staged, *, revert_after_s: float | None = None) -> Receipt:
        """Write a staged change; with ``revert_after_s`` the simulated device itself goes back unless confirmed."""
        after = {change.puc: change.after for change in staged.changes}
        text = self._write(after, staged.token, revert_after_s)
        return Receipt(staged, revert_armed=revert_after_s is not None, text=text)

    def confirm(self, receipt: Receipt) -> None:
        """Disarm the revert timer.

        Raises:
            DeviceRefusedError: it ran out before: the device has gone back.
        """
        if not receipt.revert_armed:
            return
        if not self._ask("mesh-confirm", receipt=receipt.staged.token)["disarmed"] and self.compare(receipt.staged):
            raise DeviceRefusedError(f"{self._context.device} has reverted: it was not confirmed in time")

    def roll_back(self, receipt: Receipt) -> None:
        """Write the states from before the change, which also disarms its timer.

        Raises:
            DeviceRefusedError: some state from before is not known.
        """
        before = {change.puc: change.before for change in receipt.staged.changes}
        known = {puc: state for puc, state in before.items() if state is not None}
        if len(known) < len(before):
            raise DeviceRefusedError(f"{self._context.device} cannot be rolled back: what it held is not known")
        self._write(known, receipt.staged.token, None)

    def read_states(self) -> dict[int, PucState]:
        """The state of every PUC."""
        return {puc: PucState(mark) for puc, mark in enumerate(self._read("mesh-read")["states"])}

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Power that leaves each port in dBm; ``-inf`` for no light."""
        dbm = self._read("mesh-powers", ports=ports)["dbm"]
        return {int(port): -math.inf if power is None else float(power) for port, power in dbm.items()}

    def read_temperature(self) -> float:
        """Temperature of the chip in degrees Celsius."""
        return float(self._read("mesh-temperature")["celsius"])

    def _write(self, states: Mapping[int, PucState], token: str, revert_after_s: float | None) -> str:
        marks = {puc: state.value for puc, state in states.items()}
        return str(self._ask("mesh-write", changes=marks, receipt=token, revert_after_s=revert_after_s)["text"])

    def _read(self, do: str, **arguments: Any) -> dict[str, Any]:
        """A question that changes nothing: that no answer came leaves no doubt about the device's state."""
        try:
            return self._ask(do, **arguments)
        except OutcomeUnknownError as error:
            raise DeviceUnreachableError(f"{self._context.device} does not answer: {error.message}") from None

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        address = self._context.address
        if not address.startswith(_SCHEME):
            raise DeviceUnreachableError(
                f"{self._context.device} is a simulated mesh and {address!r} is no simulator's socket",
                hint="aim at the simulator: --target sim",
            )
        control = Path(address.removeprefix(_SCHEME))
        return ask(control, do, timeout_s=self._context.timeout_s, device=self._context.device, **arguments)
