"""What the steps of one run share: the rack, the circuits before and after, and what earlier steps found."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from lumctl.change.light_proof import LightProof
from lumctl.context import Context
from lumctl.devices.progress import in_words
from lumctl.devices.types import Progress, Receipt
from lumctl.inventory.wiring import Circuit
from lumctl.jobs.hooks import NOBODY

Circuits = Mapping[str, Circuit]


class RunScope:
    """Shared by the steps of one run: the rack, the circuits before and after, and what earlier steps found."""

    def __init__(
        self, context: Context, before: Circuits, after: Circuits, *, covered: frozenset[str] = frozenset()
    ) -> None:
        self.context = context
        self.before = before
        self.after = after
        self.covered = covered
        """Devices and components that lumctl's own revert guard would restore."""
        self.light = LightProof(context.inventory, context.fleet, context.devices, now=context.now)
        self.sound: dict[str, str] = {}
        """Receivers proved to hear their intended transmitter before anything changed, with that transmitter."""
        self.lit: dict[str, bool] = {}
        """Whether the transmitters that the run switches were on before anything changed."""
        self.switched: Sequence[str] = ()
        """The transmitters that the run switches."""
        self.proved: Sequence[str] = ()
        """The new circuits without whose proof the run fails."""
        self.powers: dict[str, float] = {}
        """Received powers (dBm) before anything changed, for receivers that cannot identify their transmitter."""
        self.receipts: dict[str, Receipt[Any]] = {}
        self.held: dict[str, dict[int, str]] = {}
        """By device, its states before it was written, if the plan did not know them and the device could be read."""
        self.stuck: list[str] = []
        """PUCs that did not take the states that were written, by reading them back."""
        self.unproved: Collection[str] = ()
        """The circuits of which a proof failed."""
        self.unasked = False
        """Whether a guard undoes the run, without an operator's consent."""
        self.facts = NOBODY
        """What hooks of jobs are told about the run."""
        self.say: Callable[[str], None] = lambda _line: None
        """Reports progress within a step; called from several threads."""
        chassis = {lane.module.device for lane in context.inventory.transponders.values() if lane.module}
        self._turns = {device: threading.Lock() for device in chassis}

    def turn(self, transponder: str) -> AbstractContextManager[Any]:
        """Serialize the transmitters of one chassis: it allows one configuration session at a time."""
        module = self.context.inventory.transponders[transponder].module
        return self._turns[module.device] if module else nullcontext()

    def watch(self, device: str, progress: Progress) -> None:
        """Report the progress of a device."""
        self.say(f"{device} {in_words(progress)}")

    def settle(self, device: str) -> None:
        """Wait until a device's cells have settled. No event reports that; the inventory gives the time."""
        threading.Event().wait(self.context.inventory.devices[device].settle_ms / 1000)
