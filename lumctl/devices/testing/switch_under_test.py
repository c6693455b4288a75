"""A driver of a switch, as the contract is given it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lumctl.devices.protocols import DriverContext, SwitchDriver
from lumctl.devices.testing.rules import broken
from lumctl.devices.types import JoinChange, Receipt

_THEIRS = 2


@dataclass(frozen=True)
class SwitchUnderTest:
    """A driver and its switch, which has six inputs and six outputs at least, none of which carries light.

    ``truth`` gives the joins that the switch really holds, seen apart from the driver; without it the driver's
    ``read_circuits`` is believed. ``other`` is a second driver of the same switch, ``unreachable`` one aimed at where
    nothing answers, ``wrong_size`` one that was told another size. ``stops_midway`` makes the switch stop in the middle
    of each change for as long as its ``with`` block takes. ``dark`` is a port without light, ``lit`` one with.
    ``context`` and ``opens`` are as in :class:`lumctl.devices.testing.MeshUnderTest`.
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
        """Joins that belong to somebody else."""
        last = range(1, _THEIRS + 1)
        return {self._first_output - at: self.port_count - at for at in last}

    @property
    def _first_output(self) -> int:
        return self.port_count // 2 if self.any_to_any else self.input_count

    def held(self) -> dict[int, int]:
        """Every join, by the best witness there is."""
        return dict(self.truth() if self.truth is not None else self.driver.read_circuits())

    def holds(self, joins: Mapping[int, int]) -> bool:
        """Whether these are the joins, beside the foreign ones, and no others."""
        return self.held() == {**self.foreign, **joins}

    def write(self, joins: Mapping[int, int | None]) -> Receipt[JoinChange]:
        """Stage, commit and confirm."""
        receipt = self.driver.commit(self.driver.stage(joins))
        if not isinstance(receipt, Receipt):
            broken("types", f"commit() gave {receipt!r:.100}, which is not a Receipt")
        self.driver.confirm(receipt)
        return receipt
