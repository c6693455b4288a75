"""Random changes under random faults: whatever goes wrong, the program's record of a device is true or empty.

Every driver of a mesh or a switch must fulfil this; many seeded sequences test it. A sequence changes a device a few
times with the code of the change engine (:mod:`lumctl.devices.transaction`), while bytes are lost, answers are wrong
and changes are half applied. After each step, the state that the outcome implies is compared with the device itself.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.devices import transaction
from lumctl.devices.errors import DeviceError, DeviceRefusedError, DeviceUnreachableError, UnsupportedError
from lumctl.devices.testing.faults import FaultyWay
from lumctl.devices.testing.troubles import STEPS, TroubleCount, account, heal, trouble
from lumctl.devices.transaction import Cell, LightDriver
from lumctl.devices.types import Capability, Receipt
from lumctl.inventory.wiring import FREE

TIMER_S = 60.0
Cells = dict[int, str]


@dataclass
class Rig:
    """A device on which the sequences are run.

    ``open`` returns a new driver over ``way``; the driver gets known states if the device cannot be read. ``truth``
    returns the real state of the device, read independently of any driver. ``own`` are the cells that may be changed,
    ``states`` their possible states (for a switch: egress ports, besides none); all other cells belong to other users.
    ``misbehave`` makes the device itself behave badly in one of ``habits``, or well again (``None``). Faults on the way
    strike after up to ``most_bytes``: about as many as a change and the readings before and after it take.
    ``pass_time`` lets seconds pass for a device whose driver declares a confirm timer.
    """

    open: Callable[[Mapping[int, str]], LightDriver]
    truth: Callable[[], Mapping[int, str]]
    own: Sequence[int]
    states: Sequence[str]
    way: FaultyWay | None
    habits: Sequence[str] = ()
    misbehave: Callable[[str | None], object] = lambda _habit: None
    most_bytes: int = 300
    pass_time: Callable[[float], object] = lambda _seconds: None


class Steps:
    """The steps of one sequence. Methods that change the device return the state that may be assumed afterwards."""

    def __init__(self, rig: Rig, driver: LightDriver, dice: random.Random, tally: TroubleCount) -> None:
        self._rig = rig
        self._driver = driver
        self._dice = dice
        self._tally = tally
        self._timed = Capability.CONFIRM_TIMER in driver.capabilities

    def change(self, belief: Cells) -> Cells | None:
        """Try a change under random faults and undo it if it fails; ``None``: no state may be assumed."""
        cells = self._cells(belief)
        self._require_no_theft(belief)
        heal(self._rig)
        in_time = self._dice.random() < 0.7  # noqa: PLR2004 - mostly it was read before the trouble came
        if not in_time:
            trouble(self._rig, self._dice, self._tally)
        timer = TIMER_S if self._timed and self._dice.random() < 0.7 else None  # noqa: PLR2004 - mostly
        try:
            staged = transaction.stage(self._driver, cells)
        except DeviceError:
            self._tally.count("not staged")
            return belief  # reading sends nothing that changes anything
        if in_time:
            trouble(self._rig, self._dice, self._tally)
        try:
            receipt = transaction.write(self._driver, staged, revert_after_s=timer)
        except (DeviceUnreachableError, DeviceRefusedError, UnsupportedError) as error:
            self._tally.count(_kind(error))
            return belief
        except DeviceError as error:
            self._tally.count(_kind(error))
            return self._undone(belief, cells, None)
        self._tally.count("done")
        after = belief | {cell: state for cell, _, state in cells}
        if self._dice.random() < 0.2:  # noqa: PLR2004 - something else went wrong
            return self._undone(belief, cells, receipt)
        return self._kept(belief, after, cells, receipt) if receipt.revert_armed else after

    def found_again(self, last: Cells) -> Cells:
        """End all faults, then read the device or write its known state again, as before relying on a device."""
        heal(self._rig)
        if self._timed:
            self._rig.pass_time(TIMER_S + 1)  # until then the device may still revert by itself
        if transaction.readable(self._driver):
            self._tally.count("read again")
            return transaction.read_cells(self._driver, sorted(self._rig.truth()))
        # Only our own cells: cells of other users were part of no change, so they are known.
        own: list[Cell] = [(cell, None, last[cell]) for cell in self._rig.own]
        transaction.write(self._driver, transaction.stage(self._driver, own))
        self._tally.count("asserted again")
        return dict(last)

    def reads_true(self, belief: Cells) -> bool:
        """Whether a reading is true or fails: during faults a reading may fail, but must not be wrong."""
        if not transaction.readable(self._driver):
            return True
        try:
            return transaction.read_cells(self._driver, sorted(belief)) == belief
        except DeviceError:
            self._tally.count("not read")
            return True

    def _kept(self, before: Cells, after: Cells, cells: list[Cell], receipt: Receipt[Any]) -> Cells | None:
        """Confirm a change that the device would revert by itself, or wait until it does."""
        if self._dice.random() < 0.3:  # noqa: PLR2004 - the one that was to confirm it is gone
            self._rig.pass_time(TIMER_S + 1)
            self._tally.count("ran out")
            # If a commit is known only from reading back, it is unknown whether its timer ran.
            return before if receipt.text != transaction.READ_BACK else None
        if self._dice.random() < 0.5:  # noqa: PLR2004 - other trouble than that of the commit
            trouble(self._rig, self._dice, self._tally)
        try:
            self._driver.confirm(receipt)
        except DeviceError as error:
            self._tally.count(f"confirm: {_kind(error)}")
            return self._undone(before, cells, receipt)
        self._rig.pass_time(TIMER_S + 1)
        self._tally.count("confirmed")
        return after

    def _undone(self, belief: Cells, cells: list[Cell], receipt: Receipt[Any] | None) -> Cells | None:
        if receipt is None:
            self._require_doubt(cells)
        if self._dice.random() < 0.5:  # noqa: PLR2004 - some troubles pass
            heal(self._rig)
        meant = transaction.committed(self._driver, cells, receipt.staged.token if receipt else "")
        armed = receipt is not None and receipt.revert_armed
        try:
            transaction.take_back(self._driver, Receipt(meant, revert_armed=armed))
        except DeviceError as error:
            self._tally.count(f"undo: {_kind(error)}")
            return None
        if self._timed:
            self._rig.pass_time(TIMER_S + 1)
        self._tally.count("undone")
        return belief

    def _require_doubt(self, cells: list[Cell]) -> None:
        """Require that a driver that cannot read reports the state after a failed change as unknown and undoes nothing.

        Raises:
            AssertionError: the driver continues as if it knew the state.
        """
        if transaction.readable(self._driver):
            return
        staged = transaction.stage(self._driver, cells)
        if any(change.before is not None for change in staged.changes):
            raise AssertionError(f"after a change with an unclear outcome the driver claims to know: {staged.changes}")
        try:
            self._driver.roll_back(Receipt(staged, revert_armed=False))
        except DeviceRefusedError:
            self._tally.count("unknown")
            return
        raise AssertionError("the driver undid a change although it does not know the previous state")

    def _require_no_theft(self, belief: Cells) -> None:
        """Require that a switch takes no egress port from an ingress port that the change does not list.

        Raises:
            AssertionError: the driver would take it.
        """
        taken = [state for cell, state in belief.items() if cell not in self._rig.own and state != FREE]
        if not transaction.is_switch(self._driver) or not taken or self._dice.random() < 0.8:  # noqa: PLR2004
            return
        heal(self._rig)
        theft = {self._dice.choice(list(self._rig.own)): int(self._dice.choice(taken))}
        try:
            self._driver.stage(theft)
        except DeviceRefusedError:
            self._tally.count("theft refused")
            return
        raise AssertionError(f"an egress port that belongs to somebody else was staged: {theft}")

    def _cells(self, belief: Cells) -> list[Cell]:
        """A random change of own cells; on a switch, no egress is used twice or taken from another user."""
        chosen = self._dice.sample(list(self._rig.own), k=self._dice.randint(1, len(self._rig.own)))
        states = list(self._rig.states)
        if not transaction.is_switch(self._driver):
            return [(cell, belief[cell], self._dice.choice(states)) for cell in sorted(chosen)]
        free = [state for state in states if state not in {s for c, s in belief.items() if c not in chosen}]
        self._dice.shuffle(free)
        joined = {cell for cell in chosen if self._dice.random() < 0.7}  # noqa: PLR2004 - mostly
        return [(cell, belief[cell], free.pop() if free and cell in joined else FREE) for cell in sorted(chosen)]


def _kind(error: DeviceError) -> str:
    """The name of an error; subclasses of unreachable and refused count as these."""
    for kind in (DeviceUnreachableError, DeviceRefusedError):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


__all__ = ["STEPS", "Rig", "TroubleCount", "run_sequence"]


def run_sequence(rig: Rig, seed: int, tally: TroubleCount) -> None:
    """Run one sequence. An assertion fails if an assumed state is not true, or if another user's cells changed."""
    heal(rig)
    last: Cells = dict(rig.truth())
    foreign = {cell: state for cell, state in last.items() if cell not in rig.own}
    belief: Cells | None = dict(last)
    driver = rig.open(last)
    steps = Steps(rig, driver, random.Random(seed), tally)  # noqa: S311 - the same sequence in every run
    try:
        for _ in range(STEPS):
            tally.steps += 1
            if belief is None:
                belief = steps.found_again(last)
            # The last certain states: found_again() writes them if the device cannot be read.
            last = dict(belief)
            belief = steps.change(belief)
            account(rig, tally)
            _require_true(rig, belief, foreign, seed)
            if belief is not None and not steps.reads_true(belief):
                raise AssertionError(
                    f"sequence {seed}: a reading during faults differs from the expected state, {belief}"
                )
        heal(rig)
        if belief is None:
            belief = steps.found_again(last)
        _require_true(rig, belief, foreign, seed)
    except DeviceError as error:
        raise AssertionError(f"sequence {seed}: after all faults were cleared: {error!r}") from error
    finally:
        driver.close()
    _require_fresh(rig, belief, seed)


def _require_true(rig: Rig, belief: Cells | None, foreign: Mapping[int, str], seed: int) -> None:
    truth = rig.truth()
    changed = {cell: (state, truth[cell]) for cell, state in foreign.items() if truth[cell] != state}
    if changed:
        raise AssertionError(f"sequence {seed}: cells that belong to somebody else have changed: {changed}")
    wrong = {cell: (state, truth[cell]) for cell, state in (belief or {}).items() if truth[cell] != state}
    if wrong:
        raise AssertionError(f"sequence {seed}: the expected and the true state differ in {wrong}")


def _require_fresh(rig: Rig, belief: Cells, seed: int) -> None:
    """Require that a newly opened driver reads the assumed state."""
    fresh = rig.open(belief)
    try:
        if transaction.readable(fresh):
            read = transaction.read_cells(fresh, sorted(belief))
            if read != belief:
                raise AssertionError(
                    f"sequence {seed}: a fresh reading {read} differs from the expected state, {belief}"
                )
    finally:
        fresh.close()
