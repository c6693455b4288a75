"""Which runs need a revert guard, what it covers, and how long it lets the engine be silent."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

from lumctl.change.concurrency import MOST_AT_A_HOST, MOST_AT_ONCE
from lumctl.change.guard import Arm, Guard
from lumctl.change.plan import Do, Plan, Step
from lumctl.devices.progress import goes_on_for_s
from lumctl.devices.types import Capability
from lumctl.errors import RefusedError
from lumctl.inventory.model import Evidence
from lumctl.jobs.hooks import may_take_s
from lumctl.site import Site
from lumctl.store import Lease

BLINK_WAITS = 4
"""A blink waits for light so many times at most, each time up to the light's deadline."""
SETTING_S = 240.0
"""A machine may take minutes to go off."""

TURN_S = 30.0
"""What each round of a stage takes whose steps do not all go at once: through a slow host, each look and each word."""

PERSON_S = 600.0
"""Who was asked whether to go on may think for so long; then all is taken back."""


@dataclass(frozen=True, slots=True)
class GuardScope:
    """What is covered by a revert guard, and the guard; without one, nothing is covered."""

    guard: Guard | None = None
    silent_s: float = 0.0
    names: frozenset[str] = frozenset()

    @property
    def is_in_doubt(self) -> bool:
        """Whether the guard may be taking the run back at this moment."""
        return self.guard is not None and self.guard.has_hung_up

    def require_watched(self) -> None:
        """Refuse to begin where the guard has ended: this process may have been frozen since it was armed.

        Raises:
            RefusedError: it has; nothing was touched.
        """
        if self.is_in_doubt:
            raise RefusedError("the revert guard ended before the run began; nothing was touched", hint="try again")

    def asked(self) -> None:
        """A person is asked now, and is given more time than a machine."""
        if self.guard is not None:
            self.guard.allow(PERSON_S)

    def alive(self, site: Site, steps: Iterable[Step]) -> None:
        """The engine goes on with these steps at once."""
        if self.guard is not None:
            steps = tuple(steps)
            longest_s, turns = max((_may_take_s(site, step) for step in steps), default=0.0), _turns(site, steps)
            self.guard.allow(self.silent_s + turns * longest_s + (turns - 1) * TURN_S)


@contextmanager
def guarded(
    site: Site, plan: Plan, lease: Lease, silent_s: float, *, arm: Arm, progress: Callable[[str], None]
) -> Iterator[GuardScope]:
    """Cover what a plan changes by a revert guard until the block ends, unless all of it goes back by itself.

    Raises:
        RefusedError: the guard cannot be started.
    """
    names = unguarded(site, plan)
    if not names:
        yield GuardScope()
        return
    guard = arm(site, lease, silent_s)
    try:
        progress(_described(names, silent_s))
        yield GuardScope(guard, silent_s, frozenset(names))
    finally:
        guard.dismiss()


def unguarded(site: Site, plan: Plan) -> list[str]:
    """What a plan changes and can put back, and what would not go back by itself: devices and components.

    What is written whole is left out, for there is no way back from that.
    """
    touching = [step for step in plan.steps if step.touches and not step.has_no_undo]
    touching.sort(key=lambda step: step.do is not Do.PROGRAM)  # what matters most is named first
    names = dict.fromkeys(step.touches for step in touching if step.touches)
    return [name for name in names if not _goes_back(site, name)]


def _goes_back(site: Site, name: str) -> bool:
    device = site.inventory.devices.get(name)
    if device is None or not device.kind.carries_light:
        return False
    return Capability.CONFIRM_TIMER in site.devices.changing(name).capabilities


def _described(names: list[str], silent_s: float) -> str:
    others = f" and {len(names) - 1} more have" if len(names) > 1 else " has"
    return f"{names[0]}{others} no revert timer: ours is armed ({silent_s:.0f} s)"


def _turns(site: Site, steps: Sequence[Step]) -> int:
    """How many times over the steps of a stage take their time, at most: not all of them go at once."""
    lanes = [site.inventory.transponders[step.data["transponder"]] for step in steps if step.do is Do.TRANSMIT]
    in_turn = sum(1 for lane in lanes if lane.module is not None)  # a chassis is told one thing after the other
    at_hosts, others = len(lanes) - in_turn, len(steps) - len(lanes)
    return max(1, in_turn + ceil(at_hosts / MOST_AT_A_HOST) + ceil(others / MOST_AT_ONCE))


def _may_take_s(site: Site, step: Step) -> float:
    """How long a step may take beyond what any step may, in seconds."""
    inventory = site.inventory
    if step.do is Do.PROGRAM:
        device = inventory.devices[step.data["device"]]
        # Undoing a step may wait twice: for the change still in progress, and for the one that undoes it.
        return device.settle_ms / 1000 + 2 * goes_on_for_s(site.devices.changing(device.id))
    if step.do is Do.VERIFY:
        blinked = sum(1 for lane in inventory.transponders.values() if lane.verify[0] is Evidence.BLINK)
        return BLINK_WAITS * blinked * inventory.thresholds.light_deadline_s
    if step.do is Do.JOB:
        return may_take_s(inventory, step.data["job"])
    return SETTING_S if step.do is Do.SET else 0.0
