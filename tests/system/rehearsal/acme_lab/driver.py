"""The driver: one JSON request per connection; a change is accepted, and made later."""

import json
from typing import ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, OutcomeUnknownError, UnsupportedError
from lumctl.devices.types import Capability, Progress, PucChange, PucState, Receipt, Staged


class AcmeMesh(BaseMesh):
    """One mesh of Acme."""

    api_version: ClassVar[int] = 1

    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_STATES, Capability.PROGRESS})
    proven: ClassVar[str] = "twin"

    def identify(self):
        return f"acme {self._ask('who')}"

    def read_states(self):
        return {puc: PucState.CROSS if crossed else PucState.BAR for puc, crossed in enumerate(self._ask("read"))}

    def read_progress(self):
        left = self._ask("left")
        return Progress(text=f"{left} left") if left else None

    def stage(self, changes):
        held = self.read_states()
        return Staged(tuple(PucChange(puc, held[puc], after) for puc, after in changes.items()), "")

    def compare(self, staged):
        held = self.read_states()
        return tuple(PucChange(c.puc, held[c.puc], c.after) for c in staged.changes if held[c.puc] is not c.after)

    def commit(self, staged, *, revert_after_s=None):
        if revert_after_s is not None:
            raise UnsupportedError("no timer")
        self._write({c.puc: c.after for c in staged.changes})
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt):
        pass

    def roll_back(self, receipt):
        self._write({c.puc: c.before for c in receipt.staged.changes})

    def _write(self, states):
        try:
            self._ask("set", {puc: state is PucState.CROSS for puc, state in states.items()})
        except DeviceUnreachableError as error:
            raise OutcomeUnknownError(error.message) from error

    def _ask(self, do, content=None):
        try:
            stream = self.context.way.tcp(4000, self.context.timeout_s)
            try:
                stream.sendall(json.dumps([do, content]).encode() + b"\n")
                said = b""
                while piece := stream.recv(4096):
                    said += piece
                answer = json.loads(said)
            finally:
                stream.close()
        except (OSError, ValueError) as error:
            raise DeviceUnreachableError(f"{self.context.device}: {error}") from error
        if "no" in answer:
            raise DeviceRefusedError(f"{self.context.device}: {answer['no']}")
        return answer["yes"]
