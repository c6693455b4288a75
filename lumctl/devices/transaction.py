"""Writes to a device; afterwards its state is either known or marked as unknown.

A driver's ``commit`` may end without a clear answer, and an answer may be wrong. A readable device is read after
every write; nothing is sent a second time before that. A device that completes a change after its answer is read only
when it reports that nothing is in progress (:mod:`lumctl.devices.progress`). If a device cannot be read, an unclear
outcome stays unclear, and the caller must treat the device as unknown until its known state is written again.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lumctl.devices.errors import DeviceError, InconsistentError, NotTakenError, OutcomeUnknownError
from lumctl.devices.progress import Watch, await_idle, require_idle
from lumctl.devices.protocols import MeshDriver, SwitchDriver
from lumctl.devices.types import Capability, JoinChange, Progress, PucChange, PucState, Receipt, Staged, cell_of
from lumctl.inventory.wiring import FREE

if TYPE_CHECKING:
    from typing_extensions import TypeIs

LightDriver = MeshDriver | SwitchDriver
Cell = tuple[int, str | None, str]
"""One cell of a change as in plans: its number, its value before (``None`` if unknown), its value after.

For a mesh: a PUC and its states; for a switch: an ingress port and its egress ports, see lumctl.inventory.wiring.
"""


READ_BACK = "no answer came; read the device back"
"""Text of a receipt for a change that is known only from reading back. Whether its timer runs is uncertain."""


_NAMED = 4


def is_switch(driver: LightDriver) -> "TypeIs[SwitchDriver]":
    """Whether a driver's cells are the ingress ports of a switch."""
    return driver.kind == "switch"


def readable(driver: LightDriver) -> bool:
    """Whether the state of the device can be read back."""
    return is_switch(driver) or Capability.READ_STATES in driver.capabilities


def stage(driver: LightDriver, cells: Iterable[Cell]) -> Staged[Any]:
    """Stage a change given as the cells of a plan."""
    if is_switch(driver):
        return driver.stage({ingress: _egress(after) for ingress, _, after in cells})
    return driver.stage({puc: PucState(after) for puc, _, after in cells})


def held_before(staged: Staged[Any]) -> dict[int, str]:
    """The values before a staged change, by cell, as in plans; cells with an unknown value are omitted.

    On a switch every value is known: an ingress port without a join is free.
    """
    return {
        cell_of(change): _text(change.before) if isinstance(change, JoinChange) else str(change.before)
        for change in staged.changes
        if isinstance(change, JoinChange) or change.before is not None
    }


def _text(egress: int | None) -> str:
    return FREE if egress is None else str(egress)


def committed(driver: LightDriver, cells: Iterable[Cell], token: str) -> Staged[Any]:
    """A committed change, restored from its plan; the driver may have lost its own record of it."""
    if is_switch(driver):
        joins = (JoinChange(ingress, _egress(before or FREE), _egress(after)) for ingress, before, after in cells)
        return Staged(tuple(joins), token)
    pucs = (PucChange(puc, PucState(before) if before else None, PucState(after)) for puc, before, after in cells)
    return Staged(tuple(pucs), token)


def read_cells(driver: LightDriver, own: Iterable[int]) -> dict[int, str]:
    """The values of these cells of a readable device; PUCs between bar and cross are omitted.

    Raises:
        DeviceBusyError: the device is still working on an earlier change.
        DeviceError: the device does not answer.
    """
    require_idle(driver)
    if is_switch(driver):
        # Inputs have the lower numbers; on an any-to-any switch the lower port of a join counts as the ingress.
        joins = {min(join): max(join) for join in driver.read_circuits().items()}
        return {ingress: str(joins.get(ingress, FREE)) for ingress in own}
    states = driver.read_states()
    return {puc: str(states[puc]) for puc in own if puc in states}


def _egress(text: str) -> int | None:
    return None if text == FREE else int(text)


def _unwatched(_progress: Progress) -> None:
    return None


def write(
    driver: LightDriver, wanted: Staged[Any], *, revert_after_s: float | None = None, watch: Watch = _unwatched
) -> Receipt[Any]:
    """Commit a change; on a readable device, a reading confirms the change before this returns.

    Waits for a device that completes the change after its answer, and reports its progress to ``watch``.

    Raises:
        DeviceUnreachableError, DeviceRefusedError, UnsupportedError: the device's state did not change
            (:class:`NotTakenError` if only reading back showed that).
        OutcomeUnknownError: the device's state is unknown: it gave no clear answer and cannot be read (now), or it is
            still working at the deadline.
        InconsistentError: the device was read and is in another state.
    """
    try:
        receipt = driver.commit(wanted, revert_after_s=revert_after_s)
    except OutcomeUnknownError as unknown:
        _await_end(driver, watch, unknown)
        if not readable(driver):
            raise
        _require(_difference(driver, wanted, unknown), wanted, unknown)
        # Taken as armed: to confirm a timer that does not run is harmless, but one that runs must be confirmed.
        return Receipt(wanted, revert_armed=revert_after_s is not None, text=READ_BACK)
    if not receipt.complete:
        _await_end(driver, watch, None)
    if readable(driver):
        _require(_difference(driver, wanted, None), wanted, None)
    return receipt


def _await_end(driver: LightDriver, watch: Watch, unknown: OutcomeUnknownError | None) -> None:
    try:
        await_idle(driver, watch)
    except OutcomeUnknownError as error:
        raise OutcomeUnknownError(f"{_said(unknown)}{error.message}", hint=error.hint) from error


def take_back(driver: LightDriver, receipt: Receipt[Any], *, watch: Watch = _unwatched) -> None:
    """Write the state before a change; on a readable device, a reading confirms it before this returns.

    Waits until the device has finished earlier work before sending anything, as after a write.

    After a lost answer the device is read back; if that shows that the undo did not arrive, it is sent once more.

    Raises: as :func:`write`.
    """
    before = Staged(tuple(_inverse(change) for change in receipt.staged.changes), receipt.staged.token)
    _await_end(driver, watch, None)
    # It may be sent twice, because roll_back writes values and not differences.
    for attempt in ("first", "last"):
        unknown: OutcomeUnknownError | None = None
        try:
            driver.roll_back(receipt)
        except OutcomeUnknownError as error:
            unknown = error
        _await_end(driver, watch, unknown)
        if unknown is not None and not readable(driver):
            raise unknown
        left = _difference(driver, before, unknown) if readable(driver) else ()
        if not left:
            return
        if attempt == "last":
            raise InconsistentError(f"{_said(unknown)}of {len(before.changes)} cells {len(left)} were not undone")


def _inverse(change: Any) -> Any:
    if isinstance(change, JoinChange):
        return JoinChange(change.ingress, change.after, change.before)
    return PucChange(change.puc, change.after, change.before)


def _difference(driver: LightDriver, wanted: Staged[Any], unknown: OutcomeUnknownError | None) -> tuple[Any, ...]:
    """The part of a change that the device does not show when read now.

    Raises:
        OutcomeUnknownError: the device cannot be read now, so its state is unknown.
    """
    try:
        return driver.compare(wanted)
    except DeviceError as error:
        said = f"{unknown.message}; " if unknown else ""
        raise OutcomeUnknownError(
            f"{said}the device accepted a change but cannot be read back: {error.message}", hint=error.hint
        ) from error


def _require(left: tuple[Any, ...], wanted: Staged[Any], unknown: OutcomeUnknownError | None) -> None:
    if not left:
        return
    at = {cell_of(change): change.before for change in left}
    # compare() leaves out a cell that holds its new value: such a cell is untouched only if that is its old value too.
    untouched = all(at.get(cell_of(change), change.after) == change.before for change in wanted.changes)
    if unknown is not None and untouched:
        raise NotTakenError(f"{unknown.message}; it was read back and its state is unchanged", hint="try again")
    effect = "none" if untouched else "some"
    pucs = () if untouched else tuple(change.puc for change in left if isinstance(change, PucChange))
    named = f" ({', '.join(f'PUC {puc}' for puc in pucs[:_NAMED])}{', ...' if pucs[_NAMED:] else ''})" if pucs else ""
    raise InconsistentError(
        f"{_said(unknown)}the device was read back and reports {effect} of the change: {len(left)} of "
        f"{len(wanted.changes)} cells are not as written{named}",
        pucs=pucs,
    )


def _said(unknown: OutcomeUnknownError | None) -> str:
    return f"{unknown.message}; " if unknown else ""
