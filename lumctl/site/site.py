"""Everything that commands and the dashboard work on, opened on first use and closed together."""

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Self

from lumctl.devices.endpoints import Endpoints, rack_endpoints, sim_endpoints
from lumctl.devices.errors import DeviceError
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import PucState
from lumctl.fabric import circuit_losses
from lumctl.fleet.fleet import Fleet
from lumctl.health.evaluate import evaluate
from lumctl.inventory.model import Inventory, Role
from lumctl.inventory.wiring import Assignment, circuits_of, initial_assignment
from lumctl.site.observation import Observation, current_role
from lumctl.store import Store, open_store


class Site:
    """One inventory aimed at one target. Use it as a context manager; nothing is contacted before it is needed."""

    def __init__(
        self,
        inventory: Inventory,
        target: str,
        *,
        endpoints: Endpoints | None = None,
        store: Callable[[str], Store] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.inventory = inventory
        self.target = target
        self.now = now
        self._endpoints = endpoints
        self._open_store = store or (lambda rack: open_store(inventory, rack, target))
        self._stores: dict[str, Store] = {}

    @cached_property
    def endpoints(self) -> Endpoints:
        """Where hosts and devices answer."""
        if self._endpoints is not None:
            return self._endpoints
        return sim_endpoints(self.inventory) if self.target == "sim" else rack_endpoints(self.inventory)

    @cached_property
    def fleet(self) -> Fleet:
        """The sessions to the hosts."""
        return Fleet(self.inventory, self.endpoints, now=self.now)

    @cached_property
    def devices(self) -> DeviceSet:
        """The drivers of meshes and transponders."""
        return DeviceSet(
            self.inventory, self.endpoints, shell_of=self.fleet.shell, known_states=self.known_states, now=self.now
        )

    def store(self, rack: str) -> Store:
        """The store of one rack."""
        if rack not in self._stores:
            self._stores[rack] = self._open_store(rack)
        return self._stores[rack]

    def assignment(self) -> dict[str, tuple[str, ...]]:
        """Who runs where now, over all racks: the inventory's placement, changed by what the stores say."""
        return initial_assignment(self.inventory) | {
            job: accelerators
            for rack in self.inventory.racks
            for job, accelerators in self.store(rack).assignment().items()
            if job in self.inventory.jobs
        }

    def known_states(self, device: str) -> dict[int, PucState]:
        """The states last written to a device and proved; empty when it was never programmed from this store."""
        return self.store(self.inventory.devices[device].rack).device_states(device)

    def observe(self) -> Observation:
        """Read everything once and judge it."""
        assignment = self.assignment()
        circuits = circuits_of(self.inventory, assignment)
        losses = self._losses(assignment)
        snapshot = self.fleet.collect()
        devices = self._device_answers()
        at = self.now()
        swapped_out = {
            a for a in self.inventory.accelerators if current_role(self.inventory, assignment, a) is Role.DISABLED
        }
        report = evaluate(
            self.inventory, snapshot, circuits, losses=losses, devices=devices, now=at, disabled=swapped_out
        )
        return Observation(at, self.target, self.inventory, assignment, circuits, losses, snapshot, report)

    def _losses(self, assignment: Assignment) -> Mapping[str, float]:
        losses: dict[str, float] = {}
        for device in self.inventory.devices.values():
            states = self.known_states(device.id)
            if states:
                wanted = [c for c in circuits_of(self.inventory, assignment) if c.device == device.id]
                losses |= circuit_losses(device, states, wanted)
        return losses

    def _device_answers(self) -> dict[str, str | None]:
        """For each device, ``None`` if it answers, else what went wrong."""
        answers: dict[str, str | None] = {}
        for device in self.inventory.devices:
            try:
                self.devices.mesh(device).identify()
            except DeviceError as error:
                answers[device] = error.message
            else:
                answers[device] = None
        return answers

    def close(self) -> None:
        """Give back sessions, sockets and the database."""
        for opened in ("devices", "fleet"):
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
