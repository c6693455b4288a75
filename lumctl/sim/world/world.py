"""The one world behind every simulated service: cells, light, links, GPUs and faults. It uses no sockets.

Nothing happens between calls. Each call first processes all events that were due since the last call (revert timers,
flapping links, LLDP frames) in the order of time. So the result is as if the world had run all the time.
"""

import math
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from lumctl.devices.types import Progress
from lumctl.errors import UsageError
from lumctl.inventory.model import Inventory
from lumctl.sim.world.faults import FaultKind, Faults, SimulatedFault, component_kinds, parse_fault
from lumctl.sim.world.gpus import GpuCondition, gpus_of
from lumctl.sim.world.instruments import Instruments
from lumctl.sim.world.kernel import KernelLog, boot_at, boot_of
from lumctl.sim.world.links import LLDP_INTERVAL_S, InterfaceView, LinkView, Neighbours, SimulatedLink
from lumctl.sim.world.meshes import Meshes
from lumctl.sim.world.misbehaviour import Misbehaviour, misbehaviour_of
from lumctl.sim.world.plant import Plant
from lumctl.sim.world.switchboard import Switchboard
from lumctl.sim.world.work import ChangeTimes, Works, WriteInProgress, WriteLog


class World:
    """All simulated state of one inventory. Thread-safe; ``now`` returns epoch seconds."""

    def __init__(
        self, inventory: Inventory, *, seed: int, now: Callable[[], float], times: ChangeTimes | None = None
    ) -> None:
        self.inventory = inventory
        self.seed = seed
        self._now = now
        self._lock = threading.RLock()
        self._started_at = self._caught_up_to = self._last_frames_at = now()
        self._faults = Faults()
        self._plant = Plant(inventory, self._faults)
        self._links: dict[str, dict[str, SimulatedLink]] = {host: {} for host in inventory.hosts}
        for transponder in inventory.transponders.values():
            self._links[transponder.host][transponder.interface] = self._plant.links[transponder.id]
        self._gpus = gpus_of(inventory)
        self._shown = Instruments(seed, self._plant, self._faults, self._gpus)
        self.boots = {host: boot_of(host, seed=seed, started_at=self._started_at) for host in inventory.hosts}
        self._kernels = {host: KernelLog(boot.at, inventory.hosts[host].probe) for host, boot in self.boots.items()}
        self.writes = WriteLog()
        self._works = Works()
        shared = (self._plant, self._faults, self._caught_up, self._shown, self.writes, self._works)
        times = times or ChangeTimes()
        self.meshes = Meshes(*shared, times)
        self.switches = Switchboard(*shared, times)
        self._plant.relight(self._started_at)

    # --- the fabric ---

    def writes_after(self, number: int) -> list[WriteInProgress]:
        """The newest writes to all devices with a higher number, oldest first."""
        with self._lock:
            return self.writes.after(number)

    def progress(self, device: str) -> Progress | None:
        """The progress of a change that a mesh or a switch is still making; ``None``: there is none.

        Raises:
            DeviceUnreachableError: the device is down.
        """
        devices = self.meshes if device in self._plant.chips else self.switches
        with devices.held(device):
            return self._works.progress(device)

    def lit_lanes(self) -> tuple[list[tuple[str, str]], float]:
        """The lit lanes (transmitter and receiver), and the time until which they do not change by themselves.

        Lanes of a host that cannot be reached are omitted.
        """
        with self._caught_up():
            lit = [
                (sent.id, by.id)
                for sent, by in self._plant.heard()
                if self.answers(sent.host) and self.answers(by.host)
            ]
            return lit, self._next_event()

    def follow_light(self, relit: Callable[[], None] | None) -> None:
        """Call this function from now on whenever light has settled; it must return at once and not use the world."""
        with self._lock:
            self._plant.follow(relit)

    # --- hosts ---

    def gpus(self, host: str) -> list[GpuCondition]:
        """The GPUs that a host's driver sees now, in the order of their minor numbers."""
        with self._caught_up() as now:
            every = [self._shown.condition(accelerator.id, now) for accelerator in self.inventory.accelerators_of(host)]
            seen = [condition for condition in every if FaultKind.GPU_LOST not in condition.faults]
            return sorted(seen, key=lambda condition: condition.gpu.accelerator.index)

    def kernel_log(self, host: str, *, iso: bool) -> str:
        """The kernel log of a host, with times in seconds since its boot, or in ISO format (``iso``)."""
        with self._lock:
            return self._kernels[host].text(iso=iso)

    def link(self, host: str, interface: str) -> LinkView | None:
        """One interface of a host to the fabric; ``None`` if there is none of that name."""
        with self._caught_up() as now:
            link = self._interfaces(host).get(interface)
            return self._shown.view(link, now) if link else None

    def interfaces(self, host: str) -> dict[str, InterfaceView]:
        """The interfaces of a host to the fabric, without the readings of their modules and lldpd."""
        with self._caught_up() as now:
            return {
                name: InterfaceView(
                    link.transponder, link.admin_up, link.carrier, link.carrier_changes, link.carried_until(now)
                )
                for name, link in self._interfaces(host).items()
            }

    def neighbours(self, host: str) -> dict[str, Neighbours]:
        """The neighbours in a host's lldpd, by interface."""
        with self._caught_up() as now:
            return {name: self._shown.heard(link, now) for name, link in self._interfaces(host).items()}

    def _interfaces(self, host: str) -> dict[str, SimulatedLink]:
        """The interfaces of a host that are on its bus, by name."""
        return {} if self._plant.has_lost_nic(host) else self._links[host]

    def set_interface(self, host: str, interface: str, *, up: bool) -> bool:
        """Switch an interface and its transmitter on or off. Returns false if the host has no such interface."""
        with self._caught_up() as now:
            link = self._interfaces(host).get(interface)
            if link is not None:
                self.writes.add(link.transponder.id, f"interface {'up' if up else 'down'}", now)
                link.admin_up = up
                self._plant.relight(now)
            return link is not None

    def announce(self, host: str, mark: str | None = None) -> None:
        """Send a frame of the host's lldpd on every interface now. A given ``mark`` is announced from now on."""
        with self._caught_up() as now:
            if mark is not None:
                self._plant.marks[host] = mark
            for link in self._plant.links.values():
                if link.light and self._plant.links[link.light.source].transponder.host == host:
                    self._plant.frame(link, now)

    # --- power ---

    def is_on(self, host: str) -> bool:
        """Whether a host has power."""
        with self._lock:
            return host not in self._plant.off

    def answers(self, host: str) -> bool:
        """Whether a host can be reached: it is on, and no fault makes it unreachable."""
        with self._lock:
            return host not in self._plant.off and not self._faults.has(host, FaultKind.UNREACHABLE)

    def switch_host(self, host: str, *, on: bool) -> None:
        """Switch a host's power on, so that it boots, or off; do nothing if it already is in that state."""
        with self._caught_up() as now:
            self.writes.add(host, f"power {'on' if on else 'off'}", now)
            if on is (host in self._plant.off):
                self._plant.off ^= {host}
                self._plant.relight(now)
                if on:
                    self._boot(host, now)

    def restart_host(self, host: str) -> None:
        """Switch a host's power off and on again."""
        self.switch_host(host, on=False)
        self.switch_host(host, on=True)

    def host_watts(self, host: str) -> float:
        """The power that a host draws, in W."""
        with self._caught_up() as now:
            return self._shown.host_w(host, len(self.inventory.accelerators_of(host)), now)

    def _boot(self, host: str, now: float) -> None:
        """Reset everything that a boot resets: boot id, kernel log, interfaces, and lldpd's announcements."""
        self._begin_boot(host, now)
        self._plant.marks.pop(host, None)
        for link in self._links[host].values():
            link.admin_up = True
        self._plant.relight(now)

    def _begin_boot(self, host: str, now: float) -> None:
        """Give a host the id and the kernel log of a new boot; the driver reports the faults that outlast it again."""
        self.boots[host] = boot_at(host, seed=self.seed, at=now)
        self._kernels[host] = KernelLog(now, self.inventory.hosts[host].probe)
        for accelerator in self.inventory.accelerators_of(host):
            for fault in self._faults.of(accelerator.id):
                self._log(fault, now)

    def _log(self, fault: SimulatedFault, now: float) -> None:
        """Write what the driver of a GPU reports about a fault to the kernel log of its host."""
        if (gpu := self._gpus.get(fault.component)) is not None:
            self._kernels[gpu.accelerator.host].tell(fault.kind, gpu.pci, gpu.pid, now)

    # --- modules, as a chassis that manages them does ---

    def module(self, transponder: str) -> LinkView:
        """One transponder's module and interface.

        Raises:
            UsageError: there is no such transponder.
        """
        with self._caught_up() as now:
            return self._shown.view(self._module(transponder), now)

    def set_laser(self, transponder: str, *, on: bool) -> None:
        """Switch a module's laser, independently of its host's interface."""
        with self._caught_up() as now:
            self.writes.add(transponder, f"laser {'on' if on else 'off'}", now)
            self._module(transponder).laser_on = on
            self._plant.relight(now)

    def set_channel(self, transponder: str, frequency_mhz: int) -> None:
        """Tune a module.

        Raises:
            DeviceRefusedError: the frequency is outside the module's range.
        """
        with self._caught_up() as now:
            self.writes.add(transponder, f"frequency {frequency_mhz} MHz", now)
            self._module(transponder).tune(frequency_mhz)

    def set_output_power(self, transponder: str, dbm: float) -> None:
        """Set a module's launch power.

        Raises:
            DeviceRefusedError: the power is outside the module's range.
        """
        with self._caught_up() as now:
            self.writes.add(transponder, f"output power {dbm} dBm", now)
            self._module(transponder).send_with(dbm)
            self._plant.relight(now)

    def _module(self, transponder: str) -> SimulatedLink:
        if transponder not in self._plant.links:
            raise UsageError(f"the simulator has no transponder {transponder!r}")
        return self._plant.links[transponder]

    # --- faults ---

    def inject(self, component: str, kind: str, value: float | None = None) -> SimulatedFault:
        """Make a component faulty; injecting the same kind again replaces the value.

        Raises:
            UsageError: see :func:`lumctl.sim.world.faults.parse_fault`.
        """
        with self._caught_up() as now:
            fault = parse_fault(self.inventory, component, kind, value, since=now)
            self._faults.add(fault)
            self._plant.take_fault(fault)
            self._log(fault, now)
            self._plant.relight(now)
            return fault

    def clear(self, component: str | None = None) -> list[SimulatedFault]:
        """Clear the faults of one component or of all; return the cleared faults.

        A GPU is repaired as an operator would do it: a lost GPU by a boot of its host, which here does not change the
        interfaces, and another faulty GPU by a reset.

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
                # Without the fault the device has nothing to wait for.
                if fault.kind is FaultKind.SLOW_COMMIT:
                    self._works.finish_of(fault.component)
                gpu = self._gpus.get(fault.component)
                if gpu is not None:
                    self._kernels[gpu.accelerator.host].tell_reset(fault.kind, gpu.pci, now)
            lost = [self._gpus[fault.component] for fault in healed if fault.kind is FaultKind.GPU_LOST]
            for host in {gpu.accelerator.host for gpu in lost}:
                self._begin_boot(host, now)
            self._plant.relight(now)
            return healed

    def renew(self) -> None:
        """Reset the world: nothing programmed, nothing switched off, no fault, each job where it first ran.

        Hosts and their logs continue.
        """
        self.clear()
        with self._caught_up() as now:
            self._works.forget()
            self.meshes.forget()
            self.switches.forget()
            self._plant.renew()
            self._gpus.update(gpus_of(self.inventory))
            self._plant.relight(now)

    def faults(self) -> list[SimulatedFault]:
        """All faults, in the order of injection."""
        with self._lock:
            return self._faults.of(None)

    def has_fault(self, component: str, kind: FaultKind) -> bool:
        """Whether a component has a fault of this kind."""
        with self._lock:
            return self._faults.has(component, kind)

    def fault_value(self, component: str, kind: FaultKind) -> float | None:
        """The value of a fault; ``None`` if the component does not have the fault."""
        with self._lock:
            return self._faults.value(component, kind)

    def misbehaviour(self, device: str) -> Misbehaviour:
        """How a device misbehaves now."""
        with self._lock:
            return misbehaviour_of(self._faults, device)

    # --- jobs ---

    def resume(self, job: str, accelerators: Collection[str]) -> None:
        """Run a job on these accelerators only, with a new process on each.

        Raises:
            UsageError: there is no such accelerator.
        """
        with self._caught_up() as now:
            if unknown := sorted(set(accelerators) - self._gpus.keys()):
                raise UsageError(f"the simulator has no accelerator {unknown[0]!r}")
            for name, gpu in self._gpus.items():
                if name not in accelerators and gpu.job != job:
                    continue
                self._shown.condition(name, now)  # counts the work until now
                self._gpus[name] = replace(gpu, job=job if name in accelerators else None)
                if (died := self._faults.get(name, FaultKind.PROCESS_DIED)) is not None and name in accelerators:
                    self._faults.remove(died)

    # --- time ---

    @contextmanager
    def _caught_up(self) -> Iterator[float]:
        with self._lock:
            # If the clock is set back, time must not go backwards for the events.
            now = max(self._now(), self._caught_up_to)
            while (due := self._next_event()) <= now:
                # First, because frames from before the event went over the light of that time.
                self._frames_until(due)
                self._works.finish(due)
                self.meshes.revert(due)
                self.switches.revert(due)
                self._caught_up_to = due
                # Even if nothing above changed anything: a flapping link turns at this time.
                self._plant.relight(due)
            self._frames_until(now)
            self._caught_up_to = now
            yield now

    def _next_event(self) -> float:
        timers = (self.meshes.next_revert(), self.switches.next_revert())
        return min(*timers, self._works.next_end(), self._plant.next_turn(self._caught_up_to))

    def _frames_until(self, until: float) -> None:
        """Let every host announce itself at each whole interval; only the last interval before ``until`` matters."""
        intervals = math.floor((until - self._started_at) / LLDP_INTERVAL_S)
        last = self._started_at + intervals * LLDP_INTERVAL_S
        if last > self._last_frames_at:
            self._last_frames_at = last
            for link in self._plant.links.values():
                self._plant.frame(link, last)
