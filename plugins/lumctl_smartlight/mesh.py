"""The mesh driver: what the program last wrote stands in for the read-back that the controller does not have."""

import threading
from collections.abc import Mapping
from typing import ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, InconsistentError, UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucChange, PucState, Receipt, Staged
from lumctl_smartlight.line import LineClient


class SmartlightMesh(BaseMesh):
    """One mesh behind the line protocol.

    Calls of several threads take turns: nothing says that the controller serves two connections at once. The record
    begins with ``context.known_states`` and follows what this driver writes; a PUC whose write had no clear outcome
    is unknown from then on, until it is written again: ``stage`` shows it without a ``before``, and an undo to it is
    refused.

    The record is what was asked for and acknowledged, no more. It does not see a controller that lies, that lost its
    states in a restart, or that somebody else has written to: who relies on it proves the light, and a commit of known
    states asserts them again.
    """

    api_version: ClassVar[int] = 1
    proven: ClassVar[str] = "twin; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._device = context.device
        self._puc_count = context.puc_count
        self._client = LineClient(context)
        self._record = dict(context.known_states)
        self._turn = threading.Lock()

    def identify(self) -> str:
        """The greeting line.

        Raises:
            DeviceUnreachableError: no connection, or no greeting line in time.
            InconsistentError: it states another number of PUCs than the inventory. One that states none is believed.
        """
        with self._turn:
            return self._client.greet()

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        """Check that every PUC exists; ``before`` is ``None`` where the record does not know the state.

        Raises:
            DeviceRefusedError: a PUC number is out of range.
        """
        self._require_in_range(changes)
        with self._turn:
            staged = tuple(PucChange(puc, self._record.get(puc), after) for puc, after in sorted(changes.items()))
        return Staged(staged, token=self._device)

    def compare(self, staged: Staged[PucChange]) -> tuple[PucChange, ...]:
        """The staged changes that the record does not already show as done."""
        with self._turn:
            now = {change.puc: self._record.get(change.puc) for change in staged.changes}
        return tuple(
            PucChange(change.puc, now[change.puc], change.after)
            for change in staged.changes
            if now[change.puc] is not change.after
        )

    def commit(self, staged: Staged[PucChange], *, revert_after_s: float | None = None) -> Receipt[PucChange]:
        """Write every staged state, also those that the record shows as done: that re-asserts them.

        Raises:
            UnsupportedError: a revert timer was asked for; the controller has none.
            DeviceRefusedError: the change was staged for another device.
            DeviceUnreachableError: no connection, or no greeting; nothing was sent.
            InconsistentError: the greeting states another number of PUCs; nothing was sent.
            OutcomeUnknownError: it was sent, and no answer came, or one that reads like a complaint.
        """
        if revert_after_s is not None:
            raise UnsupportedError(f"{self._device}: a controller of the line protocol has no revert timer")
        if staged.token != self._device:
            raise DeviceRefusedError(f"{self._device}: the change was staged for {staged.token or 'no device'}")
        answer = self._write({change.puc: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False, text=answer)

    def confirm(self, receipt: Receipt[PucChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[PucChange]) -> None:
        """Write back the states from before the change.

        Raises:
            DeviceRefusedError: some of them are not known; nothing was sent.
            DeviceUnreachableError: no connection, or no greeting; nothing was sent.
            InconsistentError: the greeting states another number of PUCs; nothing was sent.
            OutcomeUnknownError: it was sent, and no answer came, or one that reads like a complaint.
        """
        before = {change.puc: change.before for change in receipt.staged.changes}
        known = {puc: state for puc, state in before.items() if state is not None}
        if len(known) < len(before):
            unknown = ", ".join(str(puc) for puc in before if puc not in known)
            raise DeviceRefusedError(
                f"{self._device}: what these PUCs held before is not known: {unknown}; nothing was sent",
                hint="program the mesh again from the inventory: lumctl fabric apply",
            )
        self._require_in_range(known)
        self._write(known)

    def _write(self, states: Mapping[int, PucState]) -> str:
        """Send one line with all states; they are unknown until a clean answer came or surely none was sent."""
        if not states:
            return ""
        line = repr([(puc, state.value) for puc, state in sorted(states.items())])
        with self._turn:
            held = self._record
            self._record = {puc: state for puc, state in held.items() if puc not in states}
            try:
                answer = self._client.request(line)
            except (DeviceUnreachableError, InconsistentError):  # of a request both mean that nothing was sent
                self._record = held
                raise
            self._record |= states
        return answer

    def _require_in_range(self, pucs: Mapping[int, PucState]) -> None:
        strange = sorted(puc for puc in pucs if not 0 <= puc < self._puc_count)
        if strange:
            named = ", ".join(map(str, strange))
            raise DeviceRefusedError(f"{self._device} has no PUC {named}: they run from 0 to {self._puc_count - 1}")
