"""The driver ``smartlight-object``: a mesh whose vendor offers a Python object instead of a protocol."""

import math
import threading
from collections.abc import Iterable, Mapping
from itertools import islice
from numbers import Integral, Real
from typing import ClassVar

from lumctl.devices.base import BaseMesh
from lumctl.devices.errors import DeviceRefusedError, InconsistentError, UnsupportedError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged
from lumctl_smartlight.session import ObjectSession


class StrangeValueError(Exception):
    """The object returned a value that cannot be valid."""


TOLERANCE = 0.01
"""A coupling within this distance of 0 or 1 is bar or cross: a hundredth of the light (-20 dB) goes elsewhere."""
COUPLING: Mapping[PucState, float] = {PucState.BAR: 0.0, PucState.CROSS: 1.0}

Setting = tuple[float, float]
"""Coupling (0 to 1) and phase (radians) of one PUC."""


def settings_of(given: object) -> dict[int, Setting]:
    """The setting of every PUC, by its number."""
    if not isinstance(given, Mapping):
        raise StrangeValueError(f"it returned a {type(given).__name__} for the states of the PUCs")
    settings: dict[int, Setting] = {}
    for puc, pair in given.items():
        if isinstance(puc, bool) or not isinstance(puc, Integral):
            raise StrangeValueError(f"it returned {_short(puc)} for the number of a PUC")
        coupling, phase = _items(pair, 2, "coupling and phase")
        settings[int(puc)] = (_coupling(coupling), _number(phase, "a phase"))
    return settings


def state_of(setting: Setting) -> PucState | None:
    """Bar or cross; ``None`` for a coupling between them."""
    coupling, _ = setting
    return next((state for state, ideal in COUPLING.items() if abs(coupling - ideal) <= TOLERANCE), None)


def powers_of(given: object, ports: tuple[int, ...]) -> dict[int, float]:
    """Power at each port in dBm; ``-inf`` is no light."""
    if isinstance(given, Mapping):
        missing = [port for port in ports if port not in given]
        if missing:
            raise StrangeValueError(f"it returned no power for port {missing[0]}")
        values = [given[port] for port in ports]
    else:
        values = _items(given, len(ports), "powers")
    return {port: _power(value) for port, value in zip(ports, values, strict=True)}


def temperature_of(given: object) -> float:
    """Temperature in degrees Celsius."""
    return _number(given, "a temperature")


def _coupling(value: object) -> float:
    coupling = _number(value, "a coupling")
    if not -TOLERANCE <= coupling <= 1 + TOLERANCE:
        raise StrangeValueError(f"it returned {coupling:g} for a coupling, which must be 0 to 1")
    return coupling


def _power(value: object) -> float:
    if isinstance(value, Real) and float(value) == -math.inf:
        return -math.inf
    return _number(value, "a power")


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise StrangeValueError(f"it returned {_short(value)} for {what}")
    return float(value)


def _items(given: object, count: int, what: str) -> list[object]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise StrangeValueError(f"it returned {_short(given)} for {what}")
    # One more than wanted shows that there are too many, even if there is no end of them.
    items = list(islice(given, count + 1))
    if len(items) != count:
        raise StrangeValueError(
            f"it returned {'more' if len(items) > count else 'less'} than {count} values for {what}"
        )
    return items


def _short(value: object) -> str:
    return repr(value)[:60]


class SmartlightObjectMesh(BaseMesh):
    """One mesh behind an object of the entry point group :data:`lumctl_smartlight.session.GROUP`.

    Calls of several threads run one after the other. ``context.timeout_s`` limits each call as a whole: the object is
    called in a separate thread, and the driver stops waiting for it at the time limit. Then the outcome of a write is
    unknown. No other call is made until that one has returned; after that, a new object is made.

    It is unknown whether the object makes a change as a whole (so ``ATOMIC`` is not declared), nor what an exception
    of the object means. So each write that does not return normally has an unknown outcome, and the caller must read
    the states back. The object's own router (``interconnect``) is not used: lumctl chooses and records the PUCs of a
    circuit, and the router might set PUCs that no change names. ``reset`` is not used either, since it sets all PUCs.

    The driver changes only the coupling of a PUC; it writes back the phase that it has read. It takes powers as dBm and
    the temperature as degrees Celsius: the units are not public.
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
        """The package that offers the object, and the number of PUCs.

        Raises:
            DeviceUnreachableError: there is no object, or it does not answer.
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
            UnsupportedError: a revert timer was requested; there is none.
            DeviceRefusedError: the change was staged for another device, or a PUC number is out of range.
            DeviceUnreachableError: the mesh cannot be read; nothing was sent.
            InconsistentError: the mesh has other PUCs than the inventory states; nothing was sent.
            OutcomeUnknownError: the object was called to write; it raised, returned ``False``, or took too long.
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
            DeviceUnreachableError: the temperature cannot be read.
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
                f"{self.context.device} has {len(settings)} PUCs{_extent(settings)}; "
                f"the inventory has {count}, numbered from 0; nothing was sent",
                hint="check the address and the geometry: this may be another mesh",
            )
        return settings

    def _require(self, noun: str, numbers: Mapping[int, PucState] | tuple[int, ...], count: int) -> None:
        strange = sorted(number for number in numbers if not 0 <= number < count)
        if strange:
            named = ", ".join(map(str, strange))
            raise DeviceRefusedError(f"{self.context.device} has no {noun} {named}: valid numbers are 0 to {count - 1}")


def _extent(settings: Mapping[int, Setting]) -> str:
    return f" (numbered {min(settings)} to {max(settings)})" if settings else ""
