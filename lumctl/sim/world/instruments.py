"""Instruments of the world.

Light, temperatures and power draw with their noise, and the neighbours of receivers.
"""

import math
import random
from collections.abc import Mapping

from lumctl.devices.types import Alarm
from lumctl.sim.world.faults import SEVERITIES, FaultKind, Faults
from lumctl.sim.world.gpus import SLOWDOWN_C, GpuCondition, SimulatedGpu
from lumctl.sim.world.light import Light
from lumctl.sim.world.links import SimulatedLink
from lumctl.sim.world.plant import Plant
from lumctl.sim.world.views import LinkView, Neighbours

_IDLE_C, _BUSY_C, _CHIP_C, _SWITCH_C, _MODULE_C = 38.0, 63.0, 31.5, 34.0, 37.0
_OVERHEATED_C = 95.0
_POWER_NOISE_DB, _TEMPERATURE_NOISE_C = 0.02, 0.6
_STANDBY_W, _HOST_W, _ACCELERATOR_W, _DRAW_NOISE = 14.0, 420.0, 310.0, 0.01


class Instruments:
    """Readings of one world at one time. The caller holds the world's lock."""

    def __init__(self, seed: int, plant: Plant, faults: Faults, gpus: Mapping[str, SimulatedGpu]) -> None:
        self._seed = seed
        self._plant = plant
        self._faults = faults
        self._gpus = gpus

    def noise(self, what: str, now: float, sigma: float) -> float:
        """Noise that depends on the seed, the quantity and the second only: the order of readings is no part of it."""
        # Not cryptography: readings that repeat with the seed are the point.
        return random.Random(f"{self._seed}/{what}/{int(now)}").gauss(0.0, sigma)  # noqa: S311

    def power_dbm(self, light: Light | None, what: str, now: float) -> float:
        """Light as a monitor shows it; ``-inf`` for none."""
        return light.power_dbm + self.noise(what, now, _POWER_NOISE_DB) if light else -math.inf

    def device_c(self, device: str, now: float) -> float:
        """Temperature of a mesh's chip, or inside a switch."""
        usual = _SWITCH_C if device in self._plant.switches else _CHIP_C
        if (fault := self._faults.get(device, FaultKind.OVERHEAT)) is not None:
            usual = _OVERHEATED_C if fault.value is None else fault.value
        return usual + self.noise(device, now, _TEMPERATURE_NOISE_C)

    def alarms(self, device: str) -> tuple[Alarm, ...]:
        """The alarms of a mesh or a switch: those of faults, and one for each failed port."""
        told = []
        if (fault := self._faults.get(device, FaultKind.ALARM)) is not None:
            severity = SEVERITIES[int(fault.value or 1) - 1]
            told.append(Alarm("power supply 1 has failed", severity, "psu/1", fault.since))
        failed = self._plant.switches[device].state.failed if device in self._plant.switches else {}
        ports = (Alarm(f"port {port} has failed", source=f"port/{port}", since=since) for port, since in failed.items())
        return (*told, *ports)

    def host_w(self, host: str, accelerators: int, now: float) -> float:
        """What a host with so many accelerators draws."""
        drawn = _STANDBY_W
        if host not in self._plant.off:
            drawn += _HOST_W + _ACCELERATOR_W * accelerators
        return drawn + self.noise(f"{host} power", now, drawn * _DRAW_NOISE)

    def condition(self, accelerator: str, now: float) -> GpuCondition:
        """A GPU with its faults and its warmth."""
        faults = {fault.kind: fault.value for fault in self._faults.of(accelerator)}
        gpu = self._gpus[accelerator]
        busy = gpu.job is not None and FaultKind.PROCESS_DIED not in faults
        warmth = (_BUSY_C if busy else _IDLE_C) + self.noise(accelerator, now, _TEMPERATURE_NOISE_C)
        if FaultKind.OVERHEAT in faults:
            asked = faults[FaultKind.OVERHEAT]
            warmth = SLOWDOWN_C + 4 if asked is None else asked
        return GpuCondition(gpu, faults, warmth)

    def view(self, link: SimulatedLink, now: float) -> LinkView:
        """All that is shown of an interface and its module."""
        name = link.transponder.id
        return LinkView(
            transponder=link.transponder,
            admin_up=link.admin_up,
            carrier=link.carrier,
            carrier_changes=link.carrier_changes,
            carried_s=link.carried_until(now),
            tx_power_dbm=self._plant.emits(link) + self.noise(f"{name} tx", now, _POWER_NOISE_DB),
            rx_power_dbm=self.power_dbm(link.light, f"{name} rx", now),
            temperature_c=_MODULE_C + self.noise(f"{name} module", now, _TEMPERATURE_NOISE_C),
            neighbours=self.heard(link, now),
            laser_on=link.laser_on,
            frequency_mhz=link.frequency_mhz,
            target_power_dbm=link.target_power_dbm,
        )

    def heard(self, link: SimulatedLink, now: float) -> Neighbours:
        """The neighbours of a receiver's host: new or changed ones at the end, as in lldpd."""
        heard = sorted(link.neighbours(now).items(), key=lambda item: item[1].changed_at)
        return tuple(
            (self._plant.links[source].transponder, now - entry.changed_at, entry.mark) for source, entry in heard
        )
