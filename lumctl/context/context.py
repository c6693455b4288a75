"""Everything that commands and the dashboard work on, opened on first use and closed together."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lumctl.context import phase_log
from lumctl.context.device_answers import READ_EVERY_S, DeviceAnswers, DeviceReader, FirstAnswers
from lumctl.context.health_memory import LookResult, Recollection
from lumctl.context.job_files import late_ranks
from lumctl.devices import transaction
from lumctl.devices.endpoints import Endpoints, gateways_of, rack_endpoints, sim_endpoints
from lumctl.devices.errors import DeviceError
from lumctl.devices.gateway.racks import GatewayMeans
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import Capability, DeviceReading, PucState
from lumctl.errors import LumctlError, RefusedError
from lumctl.fabric import FabricStates, LightPath
from lumctl.fleet.fleet import Fleet
from lumctl.health.lateness import NOBODY_LATE
from lumctl.health.look import LightEvidence
from lumctl.health.observation import Observation, current_role
from lumctl.health.remedy import without_vain_spares
from lumctl.health.replaced_faults import ReplacedFault
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.phase_records import phase_permit, with_phases
from lumctl.inventory.slice_records import is_job, with_slices
from lumctl.inventory.wiring import Assignment, Circuit, circuits_of, own_cells, placed_words, record_misfit
from lumctl.store import Lease, Store, open_store

RECORD = "LUMCTL_RECORD"
"""The variable that names the folder into which all calls of drivers are written."""
_Traced = tuple[tuple[Circuit, ...], dict[str, LightPath | None], dict[str, float]]
TICK_PATIENCE_S = 1.0
"""How long each of many observations waits for a host or a device that has always answered so far, in seconds."""


class Context:
    """An inventory and a target. Use it as a context manager; nothing is contacted before it is needed.

    ``direct`` is for the gateway itself: it drives devices directly, although the inventory names a gateway.
    """

    def __init__(
        self,
        inventory: Inventory,
        target: str,
        *,
        endpoints: Endpoints | None = None,
        store: Callable[[str], Store] | None = None,
        now: Callable[[], float] = time.time,
        direct: bool = False,
    ) -> None:
        self._inventory = with_slices(inventory, {})
        self._slices_were_read = False
        self.target = target
        self.now = now
        self._endpoints = endpoints
        self._open_store = store or (lambda rack: open_store(inventory, rack, target))
        self._stores: dict[str, Store] = {}
        self._direct = direct
        self._fences: dict[str, int] = {}
        self._last_traced: tuple[Any, _Traced] | None = None

    @property
    def inventory(self) -> Inventory:
        """The inventory as the stores were when they were last read: with their slices, and the links that have light.

        :meth:`assignment` reads them again.
        """
        if not self._slices_were_read:
            self._read_records({rack: self._stored(rack) for rack in self._with_records})
        return self._inventory

    @inventory.setter
    def inventory(self, inventory: Inventory) -> None:
        self._inventory, self._slices_were_read = inventory, False

    @property
    def _with_records(self) -> list[str]:
        """The racks whose stores say more of jobs than where they run."""
        phased = {job.rack for job in self._inventory.jobs.values() if job.phases}
        return [rack for rack, each in self._inventory.racks.items() if each.torus or rack in phased]

    def _read_records(self, stored: Mapping[str, Assignment]) -> None:
        """Take slices and phases from what the stores of such racks have."""
        records = {name: record for placed in stored.values() for name, record in placed.items()}
        self._inventory = with_phases(with_slices(self._inventory, records), records)
        self._slices_were_read = True

    def _stored(self, rack: str) -> Assignment:
        return self.store(rack).fabric.assignment()

    @cached_property
    def endpoints(self) -> Endpoints:
        """Where hosts and devices answer."""
        if self._endpoints is not None:
            return self._endpoints
        found = sim_endpoints(self.inventory) if self.target == "sim" else rack_endpoints(self.inventory)
        if self._direct:
            return found
        return replace(found, gateways=gateways_of(self.inventory, self.target, found.hosts))

    @cached_property
    def fleet(self) -> Fleet:
        """The sessions to the hosts."""
        return Fleet(self.inventory, self.endpoints, now=self.now)

    @cached_property
    def devices(self) -> DeviceSet:
        """The drivers of meshes and transponders."""
        return DeviceSet(
            self.inventory,
            self.endpoints,
            shell_of=self.fleet.shell,
            way_of=self.fleet.way,
            known_states=self.known_states,
            now=self.now,
            record_in=Path(folder) if (folder := os.environ.get(RECORD)) else None,
            gateways=GatewayMeans(self._fences.get, self.fleet.dial),
        )

    def act_under(self, lease: Lease) -> None:
        """Write to the rack's devices under this lease from now on: a gateway refuses writes under an older one."""
        self._fences[lease.rack] = lease.fence

    def is_gated(self, rack: str) -> bool:
        """Whether a rack is written through a gateway; ``False`` if that is unknown because there is no target."""
        with suppress(LumctlError):
            return rack in self.endpoints.gateways
        return False

    def store(self, rack: str) -> Store:
        """The store of one rack."""
        if rack not in self._stores:
            self._stores[rack] = self._open_store(rack)
        return self._stores[rack]

    def assignment(self, *, sound: bool = True) -> dict[str, tuple[str, ...]]:
        """The accelerators of each job now, over all racks: the inventory's placement, updated by the stores.

        With ``sound=False`` a placement that no longer fits the inventory is ignored.

        Raises:
            RefusedError: a store places a job on accelerators that the inventory no longer has, or with another
                number of ranks.
        """
        stored = {rack: self._stored(rack) for rack in self._inventory.racks}
        self._read_records({rack: stored[rack] for rack in self._with_records})
        placed = {name: () if job.is_slice else job.ranks for name, job in self._inventory.jobs.items()}
        for recorded in stored.values():
            for job, accelerators in recorded.items():
                # A job that was removed from the inventory leaves its placement in the store; that is no error.
                if job not in self._inventory.jobs and is_job(job):
                    continue
                complaint = self._misfit(job, accelerators)
                if complaint is None:
                    placed[job] = accelerators
                elif sound:
                    raise RefusedError(
                        f"the record of where {placed_words(job)} no longer fits {self.inventory.path}: {complaint}",
                        hint="correct the inventory, or place jobs as it says: lumctl fabric apply --as-written",
                    )
        return placed

    def _misfit(self, job: str, accelerators: tuple[str, ...]) -> str | None:
        if not is_job(job):
            return record_misfit(self._inventory, job, accelerators)
        ranks = len(self._inventory.jobs[job].ranks)
        if len(accelerators) != ranks:
            return f"it has {ranks} ranks, but the store has placed {len(accelerators)}"
        gone = [accelerator for accelerator in accelerators if accelerator not in self._inventory.accelerators]
        return f"{gone[0]} is not in it" if gone else None

    def known_cells(self, device: str) -> dict[int, str]:
        """The states that a device was last proved to hold.

        For a mesh the state of each PUC, for a switch the egress port of each ingress port; see
        :mod:`lumctl.inventory.wiring`. Empty if they are uncertain, or belong to another geometry or kind of device.
        """
        written = self.inventory.devices[device]
        cells = self.store(written.rack).fabric.device_cells(device)
        if cells.keys() != set(own_cells(self.inventory, written)):
            return {}
        of_a_mesh = set(cells.values()) <= set(PucState)
        return cells if of_a_mesh is (written.geometry is not None) else {}

    def known_fabric(self, rack: str) -> dict[str, dict[int, str]]:
        """The last proved states of each mesh and switch of a rack; see :meth:`known_cells`."""
        return {d.id: self.known_cells(d.id) for d in self.inventory.light_devices if d.rack == rack}

    def known_states(self, device: str) -> dict[int, PucState]:
        """The states last written to a mesh; empty if they are uncertain, or the device is not a mesh."""
        if self.inventory.devices[device].geometry is None:
            return {}
        return {puc: PucState(state) for puc, state in self.known_cells(device).items()}

    @cached_property
    def recollection(self) -> Recollection:
        """The memory of health from earlier observations."""
        return Recollection(self.inventory, self.store)

    @cached_property
    def _device_reader(self) -> DeviceReader:
        return DeviceReader(self.inventory, self.devices.changing, self.now)

    @cached_property
    def _device_answers(self) -> DeviceAnswers[DeviceReading]:
        return DeviceAnswers([d.id for d in self.inventory.light_devices], self._device_reader)

    @cached_property
    def _first_answers(self) -> FirstAnswers:
        return FirstAnswers([*self.inventory.hosts, *(device.id for device in self.inventory.light_devices)])

    def observe(self, *, tick: bool = False, remember: bool = False) -> Observation:
        """Read everything and judge it with the memory of earlier observations.

        Without ``tick`` everything is read again. With it, each probe is read at its own cadence, waits are short,
        and the newest reading of everything is judged. With ``remember`` the observation is written to the racks'
        stores for the next process; if that fails, the observation has the reason. Nothing is written before all
        first answers have arrived: until then, an unknown state only means that it was not read yet.
        """
        assignment = self.assignment()
        cells = {device.id: self.known_cells(device.id) for device in self.inventory.light_devices}
        circuits, paths, losses = self._traced(assignment, cells)
        # Devices are asked first and collected last, so that they are read while the hosts are.
        self._device_reader.every_s = READ_EVERY_S if tick else 0.0
        self._device_answers.begin()
        snapshot = self.fleet.tick(patience_s=TICK_PATIENCE_S) if tick else self.fleet.collect()
        devices = self._device_answers.gathered(TICK_PATIENCE_S if tick else None)
        # After all readings, so that none of them is newer than the observation.
        at = self.now()
        swapped_out = {
            a for a in self.inventory.accelerators if current_role(self.inventory, assignment, a) is Role.DISABLED
        }
        light = LightEvidence(cells, self._port_power, self._read_cells)
        # Another world, such as that of a replay, has no jobs on this machine.
        own = self._endpoints is None
        late = late_ranks(self.inventory, self.target, assignment, at) if own else NOBODY_LATE
        changing = self._changing(circuits, assignment, at)
        look = LookResult(at, snapshot, circuits, losses, devices, swapped_out, light, late, changing)
        # A collection has waited until each host and device answered or ran out of time: a miss is its answer.
        awaited = self._first_answers.outstanding(snapshot, devices) if tick else ()
        remember = remember and not awaited
        judged = self.recollection.judge(look, to_be_kept=remember)
        unfinished = tuple(run for rack in self.inventory.racks for run in self.store(rack).runs.unfinished(now=at))
        return Observation(
            at,
            self.target,
            self.inventory,
            assignment,
            circuits,
            losses,
            snapshot,
            without_vain_spares(judged.report, self.inventory, assignment),
            unfinished,
            judged.acknowledgements,
            judged.windows,
            devices,
            not_kept=self.recollection.keep(look, judged.report) if remember else None,
            awaited=awaited,
            paths=paths,
            replaced=self._replaced_faults(assignment),
        )

    def _changing(self, circuits: Iterable[Circuit], assignment: Assignment, at: float) -> dict[str, bool]:
        """The circuits of jobs that change their phase, and whether the job has shown lately that light is right."""
        own = [circuit for circuit in circuits if phase_permit(circuit.owner, assignment)]
        racks = {self.inventory.jobs[circuit.owner].rack for circuit in own}
        right = {job for rack in racks for job in phase_log.shown(self.store(rack), self.inventory, assignment, at)}
        return {circuit.id: circuit.owner in right for circuit in own}

    def _replaced_faults(self, assignment: Assignment) -> dict[str, tuple[ReplacedFault, ...]]:
        """The faults because of which runs replaced accelerators, spares too, that run no rank since."""
        by_rack: dict[str, list[str]] = {}
        idle = frozenset({Role.DISABLED, Role.SPARE})
        for name, each in self.inventory.accelerators.items():
            if each.role is not Role.DISABLED and current_role(self.inventory, assignment, name) in idle:
                by_rack.setdefault(each.rack, []).append(name)
        return {
            name: tuple(ReplacedFault(**f) for f in run.plan.get("faults", ()) if f["accelerator"] == name)
            for rack, names in by_rack.items()
            for name, run in self.store(rack).runs.newest_replacements(names).items()
        }

    def _traced(self, assignment: Assignment, cells: Mapping[str, Mapping[int, str]]) -> _Traced:
        """The circuits, their paths in these states and their losses; traced again if a state changes."""
        # Tracing follows every circuit through every PUC, and between two ticks hardly ever anything changes.
        if self._last_traced is None or self._last_traced[0] != (assignment, cells):
            circuits = circuits_of(self.inventory, assignment)
            states = FabricStates(self.inventory, cells)
            paths = {circuit.id: states.path_of(circuit) for circuit in circuits}
            losses = {name: states.loss_db(path) for name, path in paths.items() if path is not None}
            self._last_traced = ((assignment, cells), (circuits, paths, losses))
        return self._last_traced[1]

    def _port_power(self, device: str, port: int) -> float | None:
        """Power (dBm) that a device measures at a port; ``None`` if it does not measure or report it."""
        try:
            driver = self.devices.changing(device)
            return driver.read_powers((port,)).get(port) if Capability.READ_POWERS in driver.capabilities else None
        except DeviceError:
            return None

    def _read_cells(self, device: str) -> dict[int, str]:
        """The states of a mesh, read from the device; empty if it cannot be read back, or is not a mesh."""
        if self.inventory.devices[device].geometry is None:
            return {}
        try:
            driver = self.devices.mesh(device)
            if Capability.READ_STATES not in driver.capabilities:
                return {}
            return transaction.read_cells(driver, own_cells(self.inventory, self.inventory.devices[device]))
        except DeviceError:
            return {}

    def close(self) -> None:
        """Close sessions, sockets and the databases."""
        # Drivers work through the sessions of the fleet, so they are closed before it.
        for opened in ("_device_answers", "devices", "fleet"):
            # A cached property is in ``__dict__`` only once it was used: nothing is opened here only to be closed.
            if opened in self.__dict__:
                self.__dict__[opened].close()
        for store in self._stores.values():
            store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
