"""Which runs need a revert guard, what the guard covers, and how long the engine may be silent."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

from lumctl.change.concurrency import MOST_AT_A_HOST, MOST_AT_ONCE
from lumctl.change.guard import Arm, Guard
from lumctl.change.plan import Do, Plan, Step
from lumctl.context import Context
from lumctl.devices.progress import goes_on_for_s
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError
from lumctl.inventory.model import Evidence
from lumctl.jobs.hooks import may_take_s
from lumctl.printable import counted
from lumctl.store import Lease

BLINK_WAITS = 4
"""Longest wait of a blink for light; each wait may last up to the light deadline."""
SETTING_S = 240.0
"""Extra time for a setting: a machine may take minutes to power off."""

TURN_S = 30.0
"""Extra time for each further round of a stage whose steps do not all run at once: hosts may answer slowly."""

PERSON_S = 600.0
"""How long an operator may take to answer a question before the run is undone."""


@dataclass(frozen=True, slots=True)
class GuardScope:
    """A revert guard and the names of the devices and components that it covers; without a guard, both are empty."""

    guard: Guard | None = None
    silent_s: float = 0.0
    names: frozenset[str] = frozenset()

    @property
    def is_in_doubt(self) -> bool:
        """Whether the guard may be undoing the run now."""
        return self.guard is not None and self.guard.has_hung_up

    def require_watched(self) -> None:
        """Refuse to begin if the guard has ended: this process may have been frozen since the guard was armed.

        Raises:
            RefusedError: it has ended; nothing was touched.
        """
        if self.is_in_doubt:
            raise RefusedError("the revert guard ended before the run began; nothing was changed", hint="try again")

    def asked(self) -> None:
        """Extend the allowed silence by the time that an operator needs for an answer."""
        if self.guard is not None:
            self.guard.allow(PERSON_S)

    def alive(self, context: Context, steps: Iterable[Step]) -> None:
        """Extend the allowed silence by the time that these steps, which begin now, may take."""
        if self.guard is not None:
            steps = tuple(steps)
            longest_s, turns = max((_may_take_s(context, step) for step in steps), default=0.0), _turns(context, steps)
            self.guard.allow(self.silent_s + turns * longest_s + (turns - 1) * TURN_S)


@contextmanager
def guarded(
    context: Context, plan: Plan, lease: Lease, silent_s: float, *, arm: Arm, progress: Callable[[str], None]
) -> Iterator[GuardScope]:
    """Cover the changes of a plan by a revert guard until the block ends, unless all of them revert by themselves.

    Raises:
        RefusedError: the guard cannot be started.
    """
    names = unguarded(context, plan)
    if not names:
        yield GuardScope()
        return
    guard = arm(context, lease, silent_s)
    try:
        progress(_described(names, silent_s))
        yield GuardScope(guard, silent_s, frozenset(names))
    finally:
        guard.dismiss()


def unguarded(context: Context, plan: Plan) -> list[str]:
    """The devices and components that a plan changes, that can be undone, and that do not revert by themselves.

    Devices of which all cells are written are omitted: they cannot be undone.
    """
    touching = [step for step in plan.steps if step.touches and not step.has_no_undo]
    touching.sort(key=lambda step: step.do is not Do.PROGRAM)  # the most important are named first
    names = dict.fromkeys(step.touches for step in touching if step.touches)
    return [name for name in names if not _goes_back(context, name)]


def _goes_back(context: Context, name: str) -> bool:
    device = context.inventory.devices.get(name)
    if device is None or not device.kind.carries_light:
        return False
    return Capability.CONFIRM_TIMER in context.devices.changing(name).capabilities


def _described(names: list[str], silent_s: float) -> str:
    others = f" and {counted(len(names) - 1, 'other parts')} have" if len(names) > 1 else " has"
    return f"{names[0]}{others} no revert timer: lumctl undoes the run if this command is silent for {silent_s:.0f} s"


def _turns(context: Context, steps: Sequence[Step]) -> int:
    """The maximum number of rounds in a stage whose steps do not all run at once."""
    lanes = [context.inventory.transponders[step.data["transponder"]] for step in steps if step.do is Do.TRANSMIT]
    in_turn = sum(1 for lane in lanes if lane.module is not None)  # a chassis takes one change at a time
    at_hosts, others = len(lanes) - in_turn, len(steps) - len(lanes)
    return max(1, in_turn + ceil(at_hosts / MOST_AT_A_HOST) + ceil(others / MOST_AT_ONCE))


def _may_take_s(context: Context, step: Step) -> float:
    """Seconds that a step may take in addition to the time that every step may take."""
    inventory = context.inventory
    if step.do is Do.PROGRAM:
        device = inventory.devices[step.data["device"]]
        # Undoing a step may wait twice: for the change still in progress, and for the change that undoes it.
        return device.settle_ms / 1000 + 2 * goes_on_for_s(context.devices.changing(device.id))
    if step.do is Do.VERIFY:
        blinked = sum(1 for lane in inventory.transponders.values() if lane.verify[0] is Evidence.BLINK)
        return BLINK_WAITS * blinked * inventory.thresholds.light_deadline_s
    if step.do is Do.JOB:
        return may_take_s(inventory, step.data["job"])
    return SETTING_S if step.do is Do.SET else 0.0
