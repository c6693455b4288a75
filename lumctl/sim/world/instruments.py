"""The instruments of the world: light, temperatures and power draw with noise, and the neighbours of receivers."""

import math
import random
from collections.abc import Mapping

from lumctl.devices.types import Alarm
from lumctl.sim.world.faults import SEVERITIES, FaultKind, Faults
from lumctl.sim.world.gpus import SLOWDOWN_C, GpuCondition, SimulatedGpu
from lumctl.sim.world.light import Light
from lumctl.sim.world.links import LinkView, Neighbours, SimulatedLink
from lumctl.sim.world.plant import Plant

_IDLE_C, _BUSY_C, _CHIP_C, _SWITCH_C, _MODULE_C = 38.0, 63.0, 31.5, 34.0, 37.0
_OVERHEATED_C = 95.0
POWER_NOISE_DB, _TEMPERATURE_NOISE_C = 0.02, 0.6
_STANDBY_W, _HOST_W, _ACCELERATOR_W, _DRAW_NOISE = 14.0, 420.0, 310.0, 0.01


class Instruments:
    """Readings of one world at one time. The caller holds the world's lock."""

    def __init__(self, seed: int, plant: Plant, faults: Faults, gpus: Mapping[str, SimulatedGpu]) -> None:
        self._seed = seed
        self._plant = plant
        self._faults = faults
        self._gpus = gpus
        self._worked: dict[str, tuple[float, float]] = {}
        """The seconds that each GPU was seen to work, and the time of the last reading."""

    def noise(self, what: str, now: float, sigma: float) -> float:
        """Noise that depends only on the seed, the quantity and the second, not on the order of readings."""
        # Not cryptography: readings must be the same each time for one seed.
        return random.Random(f"{self._seed}/{what}/{int(now)}").gauss(0.0, sigma)  # noqa: S311

    def power_dbm(self, light: Light | None, what: str, now: float) -> float:
        """Light as a monitor shows it; ``-inf`` for none."""
        return light.power_dbm + self.noise(what, now, POWER_NOISE_DB) if light else -math.inf

    def device_c(self, device: str, now: float) -> float:
        """Temperature of a mesh's chip, or inside a switch, in degrees Celsius."""
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
        """The power that a host with this number of accelerators draws, in W."""
        drawn = _STANDBY_W
        if host not in self._plant.off:
            drawn += _HOST_W + _ACCELERATOR_W * accelerators
        return drawn + self.noise(f"{host} power", now, drawn * _DRAW_NOISE)

    def condition(self, accelerator: str, now: float) -> GpuCondition:
        """A GPU with its faults, its temperature, and the seconds that it was seen to work."""
        faults = {fault.kind: fault.value for fault in self._faults.of(accelerator)}
        gpu = self._gpus[accelerator]
        busy = gpu.job is not None and FaultKind.PROCESS_DIED not in faults
        warmth = (_BUSY_C if busy else _IDLE_C) + self.noise(accelerator, now, _TEMPERATURE_NOISE_C)
        if FaultKind.OVERHEAT in faults:
            asked = faults[FaultKind.OVERHEAT]
            warmth = SLOWDOWN_C + 4 if asked is None else asked
        worked_s, at = self._worked.get(accelerator, (0.0, now))
        self._worked[accelerator] = (worked_s + max(now - at, 0.0) * busy, now)
        return GpuCondition(gpu, faults, warmth, self._worked[accelerator][0])

    def view(self, link: SimulatedLink, now: float) -> LinkView:
        """All that is shown of an interface and its module."""
        name = link.transponder.id
        return LinkView(
            transponder=link.transponder,
            admin_up=link.admin_up,
            carrier=link.carrier,
            carrier_changes=link.carrier_changes,
            carried_s=link.carried_until(now),
            tx_power_dbm=self._plant.emits(link) + self.noise(f"{name} tx", now, POWER_NOISE_DB),
            rx_power_dbm=self.power_dbm(link.light, f"{name} rx", now),
            temperature_c=_MODULE_C + self.noise(f"{name} module", now, _TEMPERATURE_NOISE_C),
            neighbours=self.heard(link, now),
            laser_on=link.laser_on,
            frequency_mhz=link.frequency_mhz,
            target_power_dbm=link.target_power_dbm,
        )

    def heard(self, link: SimulatedLink, now: float) -> Neighbours:
        """The neighbours of a receiver's interface: new or changed ones at the end, as in lldpd."""
        heard = sorted(link.neighbours(now).items(), key=lambda item: item[1].changed_at)
        return tuple(
            (self._plant.links[source].transponder, now - entry.changed_at, entry.mark) for source, entry in heard
        )
