"""The one world behind every simulated service: cells, light, links, GPUs and faults. It knows no sockets.

Nothing happens by itself: each call first catches up with what was due since the last one (revert timers, flapping
links, LLDP frames), event by event in the order of time, so that nobody can tell it from a world that ran all along.
"""

import math
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from lumctl.devices.errors import DeviceUnreachableError
from lumctl.devices.types import PucState
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.sim.boot import boot_of
from lumctl.sim.faults import Fault, FaultKind, Faults, component_kinds, parse_fault
from lumctl.sim.gpus import SLOWDOWN_C, GpuCondition, gpus_of
from lumctl.sim.kernel import KernelLog
from lumctl.sim.light import Chip, Light
from lumctl.sim.links import LLDP_INTERVAL_S, Link
from lumctl.sim.plant import Plant
from lumctl.sim.views import InterfaceView, LinkView, Neighbours

_IDLE_C, _BUSY_C, _CHIP_C, _MODULE_C = 38.0, 63.0, 31.5, 37.0
_POWER_NOISE_DB, _TEMPERATURE_NOISE_C = 0.02, 0.6


@dataclass(frozen=True, slots=True)
class _Revert:
    device: str
    at: float
    before: Mapping[int, PucState]


class World:
    """All that is simulated of one inventory. Thread-safe; ``now`` gives epoch seconds."""

    def __init__(self, inventory: Inventory, *, seed: int, now: Callable[[], float]) -> None:
        self.inventory = inventory
        self.seed = seed
        self._now = now
        self._lock = threading.RLock()
        self._started_at = self._caught_up_to = self._last_frames_at = now()
        self._faults = Faults()
        self._plant = Plant(inventory, self._faults)
        self._links: dict[str, dict[str, Link]] = {host: {} for host in inventory.hosts}
        for transponder in inventory.transponders.values():
            self._links[transponder.host][transponder.interface] = self._plant.links[transponder.id]
        self._gpus = gpus_of(inventory)
        self.boots = {host: boot_of(host, seed=seed, started_at=self._started_at) for host in inventory.hosts}
        self._kernels = {host: KernelLog(boot.at) for host, boot in self.boots.items()}
        self._reverts: dict[str, _Revert] = {}
        self._plant.relight(self._started_at)

    # --- the fabric ---

    def puc_states(self, device: str) -> dict[int, PucState]:
        """The state of every cell of a mesh.

        Raises:
            DeviceUnreachableError: its controller is down.
        """
        with self._caught_up():
            return self._answering(device).states()

    def write_pucs(
        self, device: str, changes: Mapping[int, PucState], *, receipt: str = "", revert_after_s: float | None = None
    ) -> None:
        """Set cells of a mesh; with ``revert_after_s`` they go back unless ``receipt`` is confirmed in time.

        Raises:
            DeviceUnreachableError: its controller is down.
            DeviceRefusedError: it has no such cell; nothing changed.
        """
        with self._caught_up() as now:
            chip = self._answering(device)
            chip.require(changes)
            if self._faults.has(device, FaultKind.MESH_LYING):
                return
            armed = self._reverts.pop(receipt, None)
            self._supersede(device, changes)
            if revert_after_s is not None:
                states = chip.states()
                before = armed.before if armed else {puc: states[puc] for puc in changes}
                self._reverts[receipt] = _Revert(device, now + revert_after_s, before)
            chip.write(changes)
            self._plant.relight(now)

    def confirm(self, receipt: str) -> bool:
        """Keep a change: disarm its revert timer. False if none was armed (any more)."""
        with self._caught_up():
            return self._reverts.pop(receipt, None) is not None

    def port_powers(self, device: str, ports: tuple[int, ...]) -> dict[int, float]:
        """Power that leaves each port, in dBm; ``-inf`` for no light."""
        with self._caught_up() as now:
            self._answering(device)
            leaving = self._plant.leaving
            return {port: self._measured(leaving.get((device, port)), f"{device}/{port}", now) for port in ports}

    def chip_temperature(self, device: str) -> float:
        """Temperature of a mesh's chip in degrees Celsius."""
        with self._caught_up() as now:
            self._answering(device)
            return _CHIP_C + self._noise(device, now, _TEMPERATURE_NOISE_C)

    # --- hosts ---

    def gpus(self, host: str) -> list[GpuCondition]:
        """The GPUs that a host's driver sees now, in the order of their minor numbers."""
        with self._caught_up() as now:
            every = [self._condition(accelerator.id, now) for accelerator in self.inventory.accelerators_of(host)]
            seen = [condition for condition in every if FaultKind.GPU_LOST not in condition.faults]
            return sorted(seen, key=lambda condition: condition.gpu.accelerator.index)

    def kernel_log(self, host: str, *, iso: bool) -> str:
        """The kernel log of a host, with times since its boot or (``iso``) of day."""
        with self._lock:
            return self._kernels[host].text(iso=iso)

    def links(self, host: str) -> dict[str, LinkView]:
        """The interfaces of a host that meet the fabric, by name."""
        with self._caught_up() as now:
            return {name: self._view(link, now) for name, link in self._links[host].items()}

    def link(self, host: str, interface: str) -> LinkView | None:
        """One of them."""
        with self._caught_up() as now:
            link = self._links[host].get(interface)
            return self._view(link, now) if link else None

    def interfaces(self, host: str) -> dict[str, InterfaceView]:
        """The same interfaces, without what their modules and lldpd say."""
        with self._caught_up() as now:
            return {
                name: InterfaceView(
                    link.transponder, link.admin_up, link.carrier, link.carrier_changes, link.carried_until(now)
                )
                for name, link in self._links[host].items()
            }

    def neighbours(self, host: str) -> dict[str, Neighbours]:
        """Whom a host's lldpd has heard, by interface."""
        with self._caught_up() as now:
            return {name: self._heard(link, now) for name, link in self._links[host].items()}

    def set_interface(self, host: str, interface: str, *, up: bool) -> bool:
        """Switch an interface, and with it its transmitter, on or off. False if the host has no such interface."""
        with self._caught_up() as now:
            link = self._links[host].get(interface)
            if link is not None:
                link.admin_up = up
                self._plant.relight(now)
            return link is not None

    def announce(self, host: str, mark: str | None = None) -> None:
        """The host's lldpd sends a frame on every interface at once; a mark, if given, it says from now on."""
        with self._caught_up() as now:
            if mark is not None:
                self._plant.marks[host] = mark
            for link in self._plant.links.values():
                if link.light and self._plant.links[link.light.source].transponder.host == host:
                    self._plant.frame(link, now)

    # --- faults ---

    def inject(self, component: str, kind: str, value: float | None = None) -> Fault:
        """Make a component faulty; the same kind again replaces the value.

        Raises:
            UsageError: see :func:`lumctl.sim.faults.parse_fault`.
        """
        with self._caught_up() as now:
            fault = parse_fault(self.inventory, component, kind, value, since=now)
            self._faults.add(fault)
            self._plant.take_fault(fault)
            gpu = self._gpus.get(component)
            if gpu is not None:
                self._kernels[gpu.accelerator.host].tell(fault.kind, gpu.pci, gpu.pid, now)
            self._plant.relight(now)
            return fault

    def clear(self, component: str | None = None) -> list[Fault]:
        """Heal one component or all of them; the faults that are gone.

        Raises:
            UsageError: there is no such component.
        """
        with self._caught_up() as now:
            if component is not None:
                component_kinds(self.inventory, component)
            healed = self._faults.of(component)
            for fault in healed:
                self._faults.remove(fault)
                self._plant.lose_fault(fault)
                gpu = self._gpus.get(fault.component)
                if gpu is not None:
                    self._kernels[gpu.accelerator.host].forget(gpu.pci)
            self._plant.relight(now)
            return healed

    def faults(self) -> list[Fault]:
        """All faults, in the order in which they came."""
        with self._lock:
            return self._faults.of(None)

    def has_fault(self, component: str, kind: FaultKind) -> bool:
        """Whether a component has a fault of this kind."""
        with self._lock:
            return self._faults.has(component, kind)

    def fault_value(self, component: str, kind: FaultKind) -> float | None:
        """The value of a fault; ``None`` without it."""
        with self._lock:
            return self._faults.value(component, kind)

    # --- time ---

    @contextmanager
    def _caught_up(self) -> Iterator[float]:
        with self._lock:
            # A clock that is set back must not turn the order of events round.
            now = max(self._now(), self._caught_up_to)
            while (due := self._next_event()) <= now:
                self._frames_until(due)
                for receipt, revert in [(r, v) for r, v in self._reverts.items() if v.at <= due]:
                    del self._reverts[receipt]
                    self._plant.chips[revert.device].write(revert.before)
                self._caught_up_to = due
                self._plant.relight(due)
            self._frames_until(now)
            self._caught_up_to = now
            yield now

    def _supersede(self, device: str, pucs: Iterable[int]) -> None:
        """Cells that are written again do not go back with an earlier change that still waits to be confirmed."""
        written = set(pucs)
        for receipt, revert in self._reverts.items():
            if revert.device == device:
                kept = {puc: state for puc, state in revert.before.items() if puc not in written}
                self._reverts[receipt] = replace(revert, before=kept)

    def _next_event(self) -> float:
        timers = min((revert.at for revert in self._reverts.values()), default=math.inf)
        return min(timers, self._plant.next_turn(self._caught_up_to))

    def _frames_until(self, until: float) -> None:
        """Every host announces itself at each whole interval; while nothing else happens only the last one counts."""
        intervals = math.floor((until - self._started_at) / LLDP_INTERVAL_S)
        last = self._started_at + intervals * LLDP_INTERVAL_S
        if last > self._last_frames_at:
            self._last_frames_at = last
            for link in self._plant.links.values():
                self._plant.frame(link, last)

    # --- what a reader is shown ---

    def _answering(self, device: str) -> Chip:
        if device not in self._plant.chips:
            raise UsageError(f"the simulator has no mesh {device!r}")
        if self._faults.has(device, FaultKind.MESH_DOWN):
            raise DeviceUnreachableError(f"{device} does not answer (its controller is down)")
        return self._plant.chips[device]

    def _condition(self, accelerator: str, now: float) -> GpuCondition:
        faults = {fault.kind: fault.value for fault in self._faults.of(accelerator)}
        gpu = self._gpus[accelerator]
        busy = gpu.job is not None and FaultKind.PROCESS_DIED not in faults
        warmth = (_BUSY_C if busy else _IDLE_C) + self._noise(accelerator, now, _TEMPERATURE_NOISE_C)
        if FaultKind.OVERHEAT in faults:
            asked = faults[FaultKind.OVERHEAT]
            warmth = SLOWDOWN_C + 4 if asked is None else asked
        return GpuCondition(gpu, faults, warmth)

    def _view(self, link: Link, now: float) -> LinkView:
        name = link.transponder.id
        return LinkView(
            transponder=link.transponder,
            admin_up=link.admin_up,
            carrier=link.carrier,
            carrier_changes=link.carrier_changes,
            carried_s=link.carried_until(now),
            tx_power_dbm=self._plant.emits(link) + self._noise(f"{name} tx", now, _POWER_NOISE_DB),
            rx_power_dbm=self._measured(link.light, f"{name} rx", now),
            temperature_c=_MODULE_C + self._noise(f"{name} module", now, _TEMPERATURE_NOISE_C),
            neighbours=self._heard(link, now),
        )

    def _heard(self, link: Link, now: float) -> Neighbours:
        # lldpd puts an entry that is new, or says something new, at the end.
        heard = sorted(link.neighbours(now).items(), key=lambda item: item[1].changed_at)
        return tuple(
            (self._plant.links[source].transponder, now - entry.changed_at, entry.mark) for source, entry in heard
        )

    def _measured(self, light: Light | None, what: str, now: float) -> float:
        return light.power_dbm + self._noise(what, now, _POWER_NOISE_DB) if light else -math.inf

    def _noise(self, what: str, now: float, sigma: float) -> float:
        """Noise that depends on the seed, the quantity and the second only: the order of readings is no part of it."""
        # Not cryptography: readings that repeat with the seed are the point.
        return random.Random(f"{self.seed}/{what}/{int(now)}").gauss(0.0, sigma)  # noqa: S311
