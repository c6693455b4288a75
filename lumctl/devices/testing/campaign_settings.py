"""Random settings under random faults, for drivers that set single values: drivers of transponders and power.

As in :mod:`lumctl.devices.testing.campaign`, the state implied by each outcome is compared with the device itself.
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
    """One setting: its possible values, and how a driver sets it.

    If a driver returns when a change is only accepted (power), ``turn`` reads whether the change took effect.
    """

    values: Sequence[Any]
    turn: Callable[[Any, Any], object]


@dataclass
class SettingsRig:
    """A device on which the sequences are run.

    ``open`` returns a new driver over ``way``; ``read`` returns the settings that a driver reads, by name of ``knobs``.
    ``truth`` returns the real settings of the device, ``others`` the state that belongs to other users; both are read
    independently of any driver. The rest is as in :class:`lumctl.devices.testing.campaign.Rig`.
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
    """Run one sequence. An assertion fails if an assumed state is not true, or if state of other users changed."""
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
                # Unknown or inconsistent: nothing may be believed of this setting.
                belief.pop(name, None)
            _require_true(rig, belief, seed)
            _require_true(rig, _read(rig, driver, tally), seed)
    finally:
        driver.close()
    heal(rig)
    if rig.others() != others:
        raise AssertionError(f"sequence {seed}: settings that belong to somebody else have changed")
    fresh = rig.open()
    try:
        read = dict(rig.read(fresh))
    except DeviceError as error:
        raise AssertionError(f"sequence {seed}: after all faults were cleared: {error!r}") from error
    finally:
        fresh.close()
    if {name: read.get(name) for name in belief} != belief:
        raise AssertionError(f"sequence {seed}: a fresh reading {read} differs from the expected state, {belief}")
    _require_true(rig, read, seed)


def _turned(knob: Knob, driver: Driver, value: Any) -> str:
    """Set a value and return the outcome; subclasses of unreachable and refused count as these."""
    try:
        knob.turn(driver, value)
    except DeviceError as error:
        for kind in (DeviceUnreachableError, DeviceRefusedError, UnsupportedError):
            if isinstance(error, kind):
                return kind.__name__
        return type(error).__name__
    return "done"


def _read(rig: SettingsRig, driver: Driver, tally: TroubleCount) -> Values:
    """The settings read during faults; empty if the reading fails."""
    try:
        return rig.read(driver)
    except DeviceError:
        tally.count("not read")
        return {}


def _require_true(rig: SettingsRig, belief: Values, seed: int) -> None:
    truth = rig.truth()
    wrong = {name: (value, truth[name]) for name, value in belief.items() if truth[name] != value}
    if wrong:
        raise AssertionError(f"sequence {seed}: the expected and the true state differ in {wrong}")
