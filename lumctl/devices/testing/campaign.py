"""Random changes under random faults: whatever goes wrong, what the program believes of a device is true, or nothing.

This is a contract of every driver of a mesh or a switch, shown by many seeded sequences. A sequence changes a device a
few times, as the change engine does it (:mod:`lumctl.devices.transaction`), while bytes are lost, answers lie and
changes are half applied. After each step the belief that the outcome allows is held against the device itself.
"""

import random
from collections.abc import Mapping

from lumctl.devices import transaction
from lumctl.devices.errors import DeviceError
from lumctl.devices.testing.campaign_steps import Cells, Rig, Steps
from lumctl.devices.testing.troubles import STEPS, Tally, account, heal

__all__ = ["STEPS", "Rig", "Tally", "run_sequence"]


def run_sequence(rig: Rig, seed: int, tally: Tally) -> None:
    """One sequence. Fails by an assertion where a belief is not true, or somebody else's cells have changed."""
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
            last = dict(belief)
            belief = steps.change(belief)
            account(rig, tally)
            _require_true(rig, belief, foreign, seed)
            if belief is not None and not steps.reads_true(belief):
                raise AssertionError(f"sequence {seed}: what was read in trouble is not what is believed, {belief}")
        heal(rig)
        if belief is None:
            belief = steps.found_again(last)
        _require_true(rig, belief, foreign, seed)
    except DeviceError as error:
        raise AssertionError(f"sequence {seed}: with all well again: {error!r}") from error
    finally:
        driver.close()
    _require_fresh(rig, belief, seed)


def _require_true(rig: Rig, belief: Cells | None, foreign: Mapping[int, str], seed: int) -> None:
    truth = rig.truth()
    changed = {cell: (state, truth[cell]) for cell, state in foreign.items() if truth[cell] != state}
    if changed:
        raise AssertionError(f"sequence {seed}: cells of somebody else have changed: {changed}")
    wrong = {cell: (state, truth[cell]) for cell, state in (belief or {}).items() if truth[cell] != state}
    if wrong:
        raise AssertionError(f"sequence {seed}: believed and true differ in {wrong}")


def _require_fresh(rig: Rig, belief: Cells, seed: int) -> None:
    """What a driver reads that was just opened is what is believed."""
    fresh = rig.open(belief)
    try:
        if transaction.readable(fresh):
            read = transaction.read_cells(fresh, sorted(belief))
            if read != belief:
                raise AssertionError(f"sequence {seed}: a fresh reading {read} is not what is believed, {belief}")
    finally:
        fresh.close()
