"""A mesh driver and its mesh, as input to the contract."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, MeshDriver
from lumctl.devices.testing.rules import broken
from lumctl.devices.types import Alarm, Capability, DeviceReading, PucChange, PucState, Receipt


@dataclass(frozen=True)
class MeshUnderTest:
    """A driver and its mesh, which has at least eight PUCs.

    ``truth`` returns the states that the chip really holds, read independently of the driver; without it the tests use
    ``read_states``, or else the driver's own ``compare``. ``other`` is a second driver of the same mesh,
    ``unreachable`` a driver for an address where nothing answers, ``wrong_size`` one with a number of PUCs that the
    device does not have. ``put_between`` sets a PUC between bar and cross. Inside ``stops_midway``, the device stops in
    the middle of a change and reports that in its own protocol. ``context`` and ``opens`` (by default the driver's
    ``context`` and class) open more drivers of the device, so that the kit can inject faults between them and the
    device.

    ``reading`` returns the temperature and the power at some ports, ``None`` if not known, read independently of the
    driver; two ports next to each other must have different powers. Each of ``alarms`` returns a context manager:
    inside it, the device raises the alarm that entering it returns. Inside ``completes_late``, the device answers a
    change before it has made all of it, and is not done before the end.
    """

    driver: MeshDriver
    puc_count: int
    truth: Callable[[], Mapping[int, PucState]] | None = None
    unreachable: MeshDriver | None = None
    other: MeshDriver | None = None
    wrong_size: MeshDriver | None = None
    put_between: Callable[[int], object] | None = None
    stops_midway: Callable[[], AbstractContextManager[object]] | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    reading: Callable[[], DeviceReading] | None = None
    alarms: Sequence[Callable[[], AbstractContextManager[Alarm]]] = ()
    completes_late: Callable[[], AbstractContextManager[object]] | None = None

    @property
    def readable(self) -> bool:
        """Whether the device itself says what it holds."""
        return Capability.READ_STATES in self.driver.capabilities

    def holds(self, states: Mapping[int, PucState]) -> bool:
        """Whether the mesh is in these states, by ``truth`` or the next best source."""
        if self.truth is None and not self.readable:
            return not self.driver.compare(self.driver.stage(states))
        seen = self.truth() if self.truth is not None else self.driver.read_states()
        return all(seen[puc] is state for puc, state in states.items())

    def write(self, states: Mapping[int, PucState]) -> Receipt[PucChange]:
        """Stage, commit and confirm."""
        receipt = self.driver.commit(self.driver.stage(states))
        if not isinstance(receipt, Receipt):
            broken("types", f"commit() gave {receipt!r:.100}, which is not a Receipt")
        self.driver.confirm(receipt)
        return receipt

    def everywhere(self, state: PucState) -> dict[int, PucState]:
        """Every PUC in one state."""
        return dict.fromkeys(range(self.puc_count), state)
