"""The switches of one world, as their services see and change them; light settles after each change."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import Alarm
from lumctl.errors import UsageError
from lumctl.sim.world.faults import Faults
from lumctl.sim.world.instruments import POWER_NOISE_DB, Instruments
from lumctl.sim.world.misbehaviour import misbehaviour_of
from lumctl.sim.world.plant import Plant
from lumctl.sim.world.switch import SwitchState
from lumctl.sim.world.work import ChangeTimes, Work, Works, WriteLog


@dataclass(frozen=True, slots=True)
class _Revert:
    device: str
    at: float
    before: Mapping[int, int | None]


class Switchboard:
    """The switches of a world. ``moment`` locks the world and returns its time; ``shown`` are its instruments."""

    def __init__(  # noqa: PLR0917 - World alone makes it
        self,
        plant: Plant,
        faults: Faults,
        moment: Callable[[], AbstractContextManager[float]],
        shown: Instruments,
        writes: WriteLog,
        works: Works,
        times: ChangeTimes,
    ) -> None:
        self._plant = plant
        self._faults = faults
        self._moment = moment
        self._shown = shown
        self._writes = writes
        self._works = works
        self._times = times
        self._reverts: dict[str, _Revert] = {}

    def forget(self) -> None:
        """Disarm all revert timers."""
        self._reverts.clear()

    @contextmanager
    def held(self, device: str) -> Iterator[SwitchState]:
        """One switch, to be read or changed while the world is locked.

        Raises:
            UsageError: there is no such switch.
            DeviceUnreachableError: the switch is down.
        """
        with self._still(device) as (state, _):
            yield state

    @contextmanager
    def _still(self, device: str) -> Iterator[tuple[SwitchState, float]]:
        with self._moment() as now:
            if device not in self._plant.switches:
                raise UsageError(f"the simulator has no switch {device!r}")
            if misbehaviour_of(self._faults, device).down:
                raise DeviceUnreachableError(f"{device} does not answer (it is down)")
            state = self._plant.switches[device].state
            before = _lit_by(state)
            try:
                yield state, now
            finally:
                if _lit_by(state) != before:
                    self._plant.relight(now)

    def write(
        self, device: str, joins: Mapping[int, int | None], *, receipt: str = "", revert_after_s: float | None = None
    ) -> None:
        """Change joins together; with ``revert_after_s`` they revert unless ``receipt`` is confirmed in time.

        Returns when the change is made, or begun by a switch with the fault ``slow-commit``.

        Raises:
            DeviceUnreachableError: the switch is down.
            DeviceRefusedError: a port is wrong or in use, and nothing changed. Or a fault makes the switch refuse the
                change, after none or half of it was made.
        """
        with self._times.turn(device):
            with self._still(device) as (state, now):
                before = dict(state.joins)
                self._writes.add(device, f"{len(joins)} joins", now)
                conduct = misbehaviour_of(self._faults, device)
                if conduct.half:
                    # Half of a change may be impossible alone, for example half of a swap.
                    with suppress(DeviceRefusedError):
                        state.set(dict(conduct.taken(joins.items())))
                elif not (conduct.lying or conduct.refuses):
                    self._works.require_none(device)
                    held = {ingress: state.partner(ingress) for ingress in joins}
                    self._set(device, state, joins, held, now, conduct.commit_s)
                    self._arm(_Revert(device, now + (revert_after_s or 0.0), held), receipt, armed=bool(revert_after_s))
                if self._times.of(device):
                    state.begin(before)
            self._settle(device)
            if conduct.says_no:
                raise DeviceRefusedError(f"{device}: {conduct.complaint}")

    @contextmanager
    def changed(self, device: str) -> Iterator[SwitchState]:
        """One switch, to be changed while the world is locked; when this returns, the change is made.

        Joins that it makes take the change time of the switch, and are dark until then. The caller serves one change of
        a switch at a time. Raises: as :meth:`held`.
        """
        with self._still(device) as (state, now):
            before = dict(state.joins)
            yield state
            after = dict(state.joins)
            if after != before:
                self._writes.add(device, _moved(before, after), now)
                if self._times.of(device):
                    state.begin(before)
        if after != before:
            self._settle(device)

    def _settle(self, device: str) -> None:
        if self._times.of(device):
            self._times.wait(device)
            with self._moment() as now:
                self._plant.switches[device].state.settle()
                self._plant.relight(now)

    def _set(
        self,
        device: str,
        state: SwitchState,
        joins: Mapping[int, int | None],
        before: Mapping[int, int | None],
        now: float,
        commit_s: float,
    ) -> None:
        held = dict(state.joins)
        # Also with `commit_s`: an impossible change is refused now, not when it would end.
        state.set(joins)
        if commit_s:  # the old joins are parted at once, and the new joins are made at the end
            state.joins = held
            state.part((ingress, egress) for ingress, egress in before.items() if egress is not None)
            self._works.begin(device, Work(0, len(joins), now + commit_s, lambda: state.set(joins)))

    def set_port(self, device: str, port: int, *, on: bool) -> None:
        """Enable or disable light through a port, as far as the device's faults allow. Raises: as :meth:`write`."""
        self._configure(device, port, lambda state, ports: state.switch(ports, on=on))

    def set_label(self, device: str, port: int, label: str) -> None:
        """Set the label of a port, as far as the device's faults allow. Raises: as :meth:`write`."""
        self._configure(device, port, lambda state, ports: state.labels.update(dict.fromkeys(ports, label)))

    def _configure(self, device: str, port: int, change: Callable[[SwitchState, tuple[int, ...]], None]) -> None:
        with self._still(device) as (state, _):
            conduct = misbehaviour_of(self._faults, device)
            state.require((port,))
            change(state, conduct.taken((port,)))
        if conduct.says_no:
            raise DeviceRefusedError(f"{device}: {conduct.complaint}")

    def confirm(self, receipt: str) -> bool:
        """Keep a change: disarm its revert timer. Returns false if no timer was armed, or it has expired."""
        with self._moment():
            return self._reverts.pop(receipt, None) is not None

    def powers(self, device: str, ports: tuple[int, ...]) -> dict[int, float]:
        """The power at each port's monitor, in dBm; ``-inf`` for no light."""
        with self._still(device) as (state, now):
            state.require(ports)
            seen = {port: self._plant.seen((device, port)) for port in ports}
            return {
                port: dbm + self._shown.noise(f"{device}/{port}", now, POWER_NOISE_DB) if dbm > -math.inf else dbm
                for port, dbm in seen.items()
            }

    def temperature(self, device: str) -> float:
        """Temperature in degrees Celsius."""
        with self._still(device) as (_, now):
            return self._shown.device_c(device, now)

    def alarms(self, device: str) -> tuple[Alarm, ...]:
        """The alarms that a switch raises."""
        with self._still(device):
            return self._shown.alarms(device)

    def next_revert(self) -> float:
        """The time when the next revert timer expires; ``inf`` if none is armed."""
        return min((revert.at for revert in self._reverts.values()), default=math.inf)

    def revert(self, due: float) -> None:
        """Revert the changes whose timer is due. A revert that would take a port from another join is skipped."""
        for receipt, revert in [(r, v) for r, v in self._reverts.items() if v.at <= due]:
            del self._reverts[receipt]
            # The rest of a change that is reverted must not be made later.
            self._works.drop(revert.device)
            with suppress(DeviceRefusedError):
                self._plant.switches[revert.device].state.set(revert.before)

    def _arm(self, revert: _Revert, receipt: str, *, armed: bool) -> None:
        """Arm the revert timer of a change, if ``armed``.

        Ports that are written again are excluded from the revert of earlier changes. If the same change is written
        again, its revert restores the joins from before its first write.
        """
        earlier = self._reverts.pop(receipt, None)
        for other, waiting in self._reverts.items():
            if waiting.device == revert.device:
                kept = {ingress: egress for ingress, egress in waiting.before.items() if ingress not in revert.before}
                self._reverts[other] = replace(waiting, before=kept)
        if armed:
            self._reverts[receipt] = replace(revert, before=earlier.before) if earlier else revert


def _lit_by(state: SwitchState) -> tuple[dict[int, int], frozenset[int]]:
    """Everything that determines where light goes: the joins, and the ports that are disabled or failed."""
    return dict(state.joins), frozenset(state.disabled | state.failed.keys())


def _moved(before: Mapping[int, int], after: Mapping[int, int]) -> str:
    """The joins that a change removes and makes, for the log of writes."""
    sides = {"removes": before.items() - after.items(), "makes": after.items() - before.items()}
    return "; ".join(
        f"{verb} {', '.join(f'{a}-{b}' for a, b in sorted(joins))}" for verb, joins in sides.items() if joins
    )
