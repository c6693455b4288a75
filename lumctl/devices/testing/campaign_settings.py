"""Random settings under random faults: the contract of drivers that set single values, as transponders and power do.

As in :mod:`lumctl.devices.testing.campaign`: what may be believed after each outcome is held against the device itself.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.protocols import Driver
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.testing.troubles import STEPS, TroubleCount, account, heal, trouble

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Knob:
    """One value that can be set: what it may be, and how a driver is told.

    Where a driver only has a change accepted, and reading tells whether it came (power), ``turn`` reads.
    """

    values: Sequence[Any]
    turn: Callable[[Any, Any], object]


@dataclass
class SettingsRig:
    """A device on which the sequences are run.

    ``open`` gives a new driver over ``way``; ``read`` has a driver say what is set, by the names of ``knobs``.
    ``truth`` is what the device really holds, and ``others`` whatever belongs to somebody else, both seen apart from
    any driver. The rest is as of :class:`lumctl.devices.testing.campaign.Rig`.
    """

    open: Callable[[], Driver]
    read: Callable[[Any], Values]
    truth: Callable[[], Values]
    knobs: Mapping[str, Knob]
    way: FaultyWay | None
    others: Callable[[], object] = lambda: None
    habits: Sequence[str] = ()
    misbehave: Callable[[str | None], object] = lambda _habit: None
    most_bytes: int = 1500


def run_settings(rig: SettingsRig, seed: int, tally: TroubleCount) -> None:
    """One sequence. Fails by an assertion where a belief is not true, or something of somebody else has changed."""
    dice = random.Random(seed)  # noqa: S311 - the same sequence in every run
    heal(rig)
    belief: dict[str, Any] = dict(rig.truth())
    others = rig.others()
    driver = rig.open()
    try:
        for _ in range(STEPS):
            tally.steps += 1
            name = dice.choice(sorted(rig.knobs))
            value = dice.choice(list(rig.knobs[name].values))
            trouble(rig, dice, tally)
            outcome = _turned(rig.knobs[name], driver, value)
            tally.count(outcome)
            account(rig, tally)
            if outcome == "done":
                belief[name] = value
            elif outcome not in {"DeviceUnreachableError", "DeviceRefusedError", "UnsupportedError"}:
                belief.pop(name, None)
            _require_true(rig, belief, seed)
            _require_true(rig, _read(rig, driver, tally), seed)
    finally:
        driver.close()
    heal(rig)
    if rig.others() != others:
        raise AssertionError(f"sequence {seed}: what belongs to somebody else has changed")
    fresh = rig.open()
    try:
        read = dict(rig.read(fresh))
    except DeviceError as error:
        raise AssertionError(f"sequence {seed}: with all well again: {error!r}") from error
    finally:
        fresh.close()
    if {name: read.get(name) for name in belief} != belief:
        raise AssertionError(f"sequence {seed}: a fresh reading {read} is not what is believed, {belief}")
    _require_true(rig, read, seed)


def _turned(knob: Knob, driver: Driver, value: Any) -> str:
    """Set it, and say how that ended; the kinds of unreachable and refused count as those."""
    try:
        knob.turn(driver, value)
    except DeviceError as error:
        for kind in (DeviceUnreachableError, DeviceRefusedError, UnsupportedError):
            if isinstance(error, kind):
                return kind.__name__
        return type(error).__name__
    return "done"


def _read(rig: SettingsRig, driver: Driver, tally: TroubleCount) -> Values:
    """What is read in the midst of trouble, if anything is."""
    try:
        return rig.read(driver)
    except DeviceError:
        tally.count("not read")
        return {}


def _require_true(rig: SettingsRig, belief: Values, seed: int) -> None:
    truth = rig.truth()
    wrong = {name: (value, truth[name]) for name, value in belief.items() if truth[name] != value}
    if wrong:
        raise AssertionError(f"sequence {seed}: believed and true differ in {wrong}")
