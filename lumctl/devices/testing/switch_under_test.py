"""A switch driver and its switch, as input to the contract."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, SwitchDriver
from lumctl.devices.testing.rules import broken
from lumctl.devices.types import Alarm, DeviceReading, JoinChange, PortReading, Receipt

_THEIRS = 2


@dataclass(frozen=True)
class SwitchUnderTest:
    """A driver and its switch, which has at least six inputs and six outputs, none of which carries traffic.

    ``truth`` returns the joins that the switch really holds, read independently of the driver; without it the tests use
    the driver's ``read_circuits``. ``ports`` likewise returns what the switch says of each port. ``other`` is a second
    driver of the same switch, ``unreachable`` a driver for an address where nothing answers, ``wrong_size`` one with a
    size that the switch does not have. Inside ``stops_midway``, the switch stops in the middle of each change. ``dark``
    is a port without light, ``lit`` one with. ``context``, ``opens``, ``reading``, ``alarms`` and ``completes_late``
    are as in :class:`lumctl.devices.testing.MeshUnderTest`.
    """

    driver: SwitchDriver
    port_count: int
    input_count: int
    truth: Callable[[], Mapping[int, int]] | None = None
    other: SwitchDriver | None = None
    unreachable: SwitchDriver | None = None
    wrong_size: SwitchDriver | None = None
    stops_midway: Callable[[], AbstractContextManager[object]] | None = None
    dark: int | None = None
    lit: int | None = None
    context: DriverContext | None = None
    opens: Callable[[DriverContext], Any] | None = None
    ports: Callable[[], Mapping[int, PortReading]] | None = None
    reading: Callable[[], DeviceReading] | None = None
    alarms: Sequence[Callable[[], AbstractContextManager[Alarm]]] = ()
    completes_late: Callable[[], AbstractContextManager[object]] | None = None

    @property
    def any_to_any(self) -> bool:
        """Whether any port may be joined to any other."""
        return self.input_count == self.port_count

    @property
    def inputs(self) -> list[int]:
        """Ports that the tests use as ingress."""
        return list(range(self._first_output))[:-_THEIRS]

    @property
    def outputs(self) -> list[int]:
        """Ports that the tests use as egress."""
        return list(range(self._first_output, self.port_count))[:-_THEIRS]

    @property
    def foreign(self) -> dict[int, int]:
        """Joins that belong to other users."""
        last = range(1, _THEIRS + 1)
        return {self._first_output - at: self.port_count - at for at in last}

    @property
    def _first_output(self) -> int:
        return self.port_count // 2 if self.any_to_any else self.input_count

    def held(self) -> dict[int, int]:
        """Every join, by ``truth`` or else by the driver."""
        return dict(self.truth() if self.truth is not None else self.driver.read_circuits())

    def holds(self, joins: Mapping[int, int]) -> bool:
        """Whether these and the foreign joins are all joins of the switch."""
        return self.held() == {**self.foreign, **joins}

    def write(self, joins: Mapping[int, int | None]) -> Receipt[JoinChange]:
        """Stage, commit and confirm."""
        receipt = self.driver.commit(self.driver.stage(joins))
        if not isinstance(receipt, Receipt):
            broken("types", f"commit() gave {receipt!r:.100}, which is not a Receipt")
        self.driver.confirm(receipt)
        return receipt
