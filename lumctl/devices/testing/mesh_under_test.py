"""A driver of a mesh, as the contract is given it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, MeshDriver
from lumctl.devices.testing.rules import broken
from lumctl.devices.types import Capability, PucChange, PucState, Receipt


@dataclass(frozen=True)
class MeshUnderTest:
    """A driver and its mesh, which has eight PUCs at least.

    ``truth`` gives what the chip really holds, seen apart from the driver; without it ``read_states`` is believed,
    and without that the driver's own ``compare``. ``other`` is a second driver of the same mesh, ``unreachable`` one
    aimed at where nothing answers, ``wrong_size`` one that was told another number of PUCs than the device shows.
    ``put_between`` sets a PUC between bar and cross. Inside ``stops_midway``, the device stops in the middle of a
    change and reports that in its own protocol. ``context`` and ``opens`` (by default the driver's ``context`` and
    class) open more drivers of the device, so that the kit can inject faults between them and the device.
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

    @property
    def readable(self) -> bool:
        """Whether the device itself says what it holds."""
        return Capability.READ_STATES in self.driver.capabilities

    def holds(self, states: Mapping[int, PucState]) -> bool:
        """Whether the mesh is in these states, by the best witness there is."""
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
