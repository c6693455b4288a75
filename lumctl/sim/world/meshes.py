"""The meshes of one simulated world, as their services read and change them; light settles after each change."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.types import Alarm, PucState
from lumctl.errors import UsageError
from lumctl.sim.world.faults import Faults
from lumctl.sim.world.instruments import Instruments
from lumctl.sim.world.light import SimulatedChip
from lumctl.sim.world.misbehaviour import misbehaviour_of
from lumctl.sim.world.plant import Plant
from lumctl.sim.world.work import ChangeTimes, Work, Works, WriteLog


@dataclass(frozen=True, slots=True)
class _Revert:
    device: str
    at: float
    before: Mapping[int, PucState]


class Meshes:
    """The meshes of a world, as ``Switchboard`` has its switches.

    ``moment`` locks the world and returns its time; ``shown`` are the world's instruments.
    """

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

    @contextmanager
    def held(self, device: str) -> Iterator[tuple[SimulatedChip, float]]:
        """One mesh and the time, while the world is locked.

        Raises:
            UsageError: there is no such mesh.
            DeviceUnreachableError: its controller is down.
        """
        with self._moment() as now:
            if device not in self._plant.chips:
                raise UsageError(f"the simulator has no mesh {device!r}")
            if misbehaviour_of(self._faults, device).down:
                raise DeviceUnreachableError(f"{device} does not answer (its controller is down)")
            yield self._plant.chips[device], now

    def states(self, device: str) -> dict[int, PucState]:
        """The state of every PUC of a mesh. Raises: as :meth:`held`."""
        with self.held(device) as (chip, _):
            return chip.states()

    def write(
        self, device: str, changes: Mapping[int, PucState], *, receipt: str = "", revert_after_s: float | None = None
    ) -> None:
        """Set PUCs of a mesh; with ``revert_after_s`` they revert unless ``receipt`` is confirmed in time.

        Returns when the change is made, or begun by a mesh with the fault ``slow-commit``.

        Raises:
            DeviceUnreachableError: its controller is down.
            DeviceRefusedError: the mesh has no such PUC, and nothing changed. Or a fault makes the mesh refuse the
                change, after none or half of it was made.
        """
        with self._times.turn(device):
            with self.held(device) as (chip, now):
                chip.require(changes)
                self._writes.add(device, _named(changes), now)
                conduct = misbehaviour_of(self._faults, device)
                if not (conduct.lying or conduct.refuses):
                    self._works.require_none(device)
                    taken = dict(conduct.taken(changes.items()))
                    self._set(chip, taken, now, receipt, revert_after_s, commit_s=conduct.commit_s)
            if self._times.of(device):
                self._times.wait(device)
                with self._moment() as now:
                    chip.settle()
                    self._plant.relight(now)
            if conduct.says_no:
                raise DeviceRefusedError(f"{device}: {conduct.complaint}")

    def _set(
        self,
        chip: SimulatedChip,
        changes: Mapping[int, PucState],
        now: float,
        receipt: str,
        revert_after_s: float | None,
        *,
        commit_s: float,
    ) -> None:
        armed = self._reverts.pop(receipt, None)
        self._supersede(chip.device.id, changes)
        if revert_after_s is not None:
            states = chip.states()
            # Written again, the same change reverts to what was there before its first write.
            before = armed.before if armed else {puc: states[puc] for puc in changes}
            self._reverts[receipt] = _Revert(chip.device.id, now + revert_after_s, before)
        parts = list(changes.items())
        at_once = parts[: len(parts) // 2] if commit_s else parts
        if self._times.of(chip.device.id) and not commit_s:
            chip.begin(changes)
        else:
            chip.write(dict(at_once))
        if commit_s:
            rest = dict(parts[len(at_once) :])
            self._works.begin(chip.device.id, Work(len(at_once), len(parts), now + commit_s, lambda: chip.write(rest)))
        self._plant.relight(now)

    def _supersede(self, device: str, pucs: Iterable[int]) -> None:
        """Exclude PUCs that are written again from the revert of earlier changes that are not confirmed yet."""
        written = set(pucs)
        for receipt, revert in self._reverts.items():
            if revert.device == device:
                kept = {puc: state for puc, state in revert.before.items() if puc not in written}
                self._reverts[receipt] = replace(revert, before=kept)

    def confirm(self, receipt: str) -> bool:
        """Keep a change: disarm its revert timer. Returns false if no timer was armed, or it has expired."""
        with self._moment():
            return self._reverts.pop(receipt, None) is not None

    def powers(self, device: str, ports: tuple[int, ...]) -> dict[int, float]:
        """Power that leaves each port, in dBm; ``-inf`` for no light."""
        with self.held(device) as (_, now):
            leaving = self._plant.leaving
            return {port: self._shown.power_dbm(leaving.get((device, port)), f"{device}/{port}", now) for port in ports}

    def temperature(self, device: str) -> float:
        """Temperature of a mesh's chip in degrees Celsius."""
        with self.held(device) as (_, now):
            return self._shown.device_c(device, now)

    def alarms(self, device: str) -> tuple[Alarm, ...]:
        """The alarms that a mesh raises."""
        with self.held(device):
            return self._shown.alarms(device)

    def forget(self) -> None:
        """Disarm every revert timer."""
        self._reverts.clear()

    def next_revert(self) -> float:
        """The time when the next revert timer expires; ``inf`` if none is armed."""
        return min((revert.at for revert in self._reverts.values()), default=math.inf)

    def revert(self, due: float) -> None:
        """Revert the changes whose timer is due."""
        for receipt, revert in [(r, v) for r, v in self._reverts.items() if v.at <= due]:
            del self._reverts[receipt]
            # The rest of a change that is reverted must not be made later.
            self._works.drop(revert.device)
            self._plant.chips[revert.device].write(revert.before)


def _named(changes: Mapping[int, PucState]) -> str:
    """The PUCs that a change sets, for the log of writes."""
    return f"{len(changes)} PUCs: {', '.join(f'{puc} {state.word}' for puc, state in sorted(changes.items()))}"
