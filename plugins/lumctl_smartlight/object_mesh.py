"""The driver ``smartlight-object``: a mesh whose vendor gives a Python object for it in place of a protocol."""

import math
import threading
from collections.abc import Mapping
from typing import ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import DeviceRefusedError, InconsistentError, UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged
from lumctl_smartlight.session import ObjectSession
from lumctl_smartlight.values import COUPLING, Setting, powers_of, settings_of, state_of, temperature_of


class SmartlightObjectMesh(BaseMesh):
    """One mesh behind an object of :mod:`lumctl_smartlight.objects`.

    Calls of several threads take turns. Each is bounded by ``context.timeout_s`` as a whole: the object is called in a
    thread of its own, which is left behind when it does not return in time. Then what a write did is unknown, and the
    object is not used again before that call has returned; a new one is made after it.

    Nothing says that the object takes a change as a whole (so ``ATOMIC`` is not declared), nor what it means when it
    raises: every write that did not simply return has an unknown outcome, and is for the caller to read back. The
    object's own router (``interconnect``) is not used: which PUCs a circuit takes is decided and recorded here, and
    the router might set PUCs that no change names. Nor is ``reset``, which sets them all.

    Of a PUC only the coupling is changed; its phase is written back as it was read. Powers are taken to be in dBm and
    the temperature in degrees Celsius: the units are not public.
    """

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.READ_STATES, Capability.READ_POWERS, Capability.READ_TEMPERATURE}
    )
    proven: ClassVar[str] = "stand-in of the vendor's object; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is made or contacted before the first call."""
        super().__init__(context)
        self._session = ObjectSession(context)
        self._turn = threading.Lock()

    def close(self) -> None:
        """Disconnect."""
        with self._turn:
            self._session.close()

    def identify(self) -> str:
        """Who offers the object, and how many PUCs it shows.

        Raises:
            DeviceUnreachableError: no object, or it does not answer.
            InconsistentError: the mesh has other PUCs than the inventory states.
        """
        with self._turn:
            count = len(self._settings(self._session.deadline()))
        return f"SmartLight object of {self._session.origin}, {count} PUCs"

    def stage(self, changes: Mapping[int, PucState]) -> Staged[PucChange]:
        """Check that every PUC exists; ``before`` is as read now, ``None`` for a PUC between bar and cross.

        Raises:
            DeviceRefusedError: a PUC number is out of range.
            DeviceUnreachableError: the states cannot be read.
        """
        self._require("PUC", changes, self.context.puc_count)
        states = self.read_states()
        staged = tuple(PucChange(puc, states.get(puc), after) for puc, after in sorted(changes.items()))
        return Staged(staged, token=self.context.device)

    def compare(self, staged: Staged[PucChange]) -> tuple[PucChange, ...]:
        """The staged changes that the mesh, read now, does not show."""
        states = self.read_states()
        now = (PucChange(change.puc, states.get(change.puc), change.after) for change in staged.changes)
        return tuple(change for change in now if change.before is not change.after)

    def commit(self, staged: Staged[PucChange], *, revert_after_s: float | None = None) -> Receipt[PucChange]:
        """Set the coupling of every staged PUC.

        Raises:
            UnsupportedError: a revert timer was asked for; there is none.
            DeviceRefusedError: the change was staged for another device, or a PUC number is out of range.
            DeviceUnreachableError: the mesh cannot be read; nothing was sent.
            InconsistentError: the mesh has other PUCs than the inventory states; nothing was sent.
            OutcomeUnknownError: the object was told, and raised, gave ``False``, or did not return in time.
        """
        if revert_after_s is not None:
            raise UnsupportedError(f"{self.context.device}: a SmartLight object has no revert timer")
        if staged.token != self.context.device:
            raise DeviceRefusedError(f"{self.context.device}: the change was staged for {staged.token or 'no device'}")
        self._write({change.puc: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt: Receipt[PucChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[PucChange]) -> None:
        """Set the couplings from before the change.

        Raises:
            DeviceRefusedError: some PUC was not in bar or cross; nothing was sent.
            DeviceUnreachableError, InconsistentError, OutcomeUnknownError: as :meth:`commit`.
        """
        changes = receipt.staged.changes
        known = {change.puc: change.before for change in changes if change.before is not None}
        if len(known) < len(changes):
            unknown = ", ".join(str(change.puc) for change in changes if change.before is None)
            raise DeviceRefusedError(
                f"{self.context.device}: these PUCs were not in bar or cross before: {unknown}; nothing was sent",
                hint="program the mesh again from the inventory: lumctl fabric apply",
            )
        self._write(known)

    def read_states(self) -> dict[int, PucState]:
        """Every PUC that is in bar or cross.

        Raises:
            DeviceUnreachableError: the states cannot be read.
            InconsistentError: the mesh has other PUCs than the inventory states.
        """
        with self._turn:
            settings = self._settings(self._session.deadline())
        return {puc: state for puc, setting in sorted(settings.items()) if (state := state_of(setting)) is not None}

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """Power that leaves each port, taken to be in dBm; ``-inf`` for no light.

        Raises:
            DeviceRefusedError: a port number is out of range.
            DeviceUnreachableError: the powers cannot be read.
        """
        self._require("port", ports, self.context.port_count)
        with self._turn:
            return self._session.ask(
                "powers", lambda mesh: powers_of(mesh.get_output_power(list(ports)), ports), self._session.deadline()
            )

    def read_temperature(self) -> float:
        """Temperature of the chip, taken to be in degrees Celsius.

        Raises:
            DeviceUnreachableError: it cannot be read.
        """
        with self._turn:
            return self._session.ask(
                "temperature", lambda mesh: temperature_of(mesh.get_temp()), self._session.deadline()
            )

    def _write(self, states: Mapping[int, PucState]) -> None:
        self._require("PUC", states, self.context.puc_count)
        if not states:
            return
        with self._turn:
            until = self._session.deadline()
            held = self._settings(until)
            wanted = {puc: (COUPLING[state], held[puc][1] % math.tau) for puc, state in sorted(states.items())}
            self._session.tell(lambda mesh: mesh.set_puc_states(wanted), until)

    def _settings(self, until: float) -> dict[int, Setting]:
        settings = self._session.ask("states", lambda mesh: settings_of(mesh.get_puc_states()), until)
        count = self.context.puc_count
        if settings.keys() != set(range(count)):
            raise InconsistentError(
                f"{self.context.device} has {len(settings)} PUCs, numbered {_extent(settings)}; "
                f"the inventory states {count}, from 0; nothing was sent",
                hint="check the address and the geometry: this may be another mesh",
            )
        return settings

    def _require(self, noun: str, numbers: Mapping[int, PucState] | tuple[int, ...], count: int) -> None:
        strange = sorted(number for number in numbers if not 0 <= number < count)
        if strange:
            named = ", ".join(map(str, strange))
            raise DeviceRefusedError(f"{self.context.device} has no {noun} {named}: they run from 0 to {count - 1}")


def _extent(settings: Mapping[int, Setting]) -> str:
    return f"{min(settings)} to {max(settings)}" if settings else "not at all"
