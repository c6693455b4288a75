"""Writing to a device so that afterwards it is known what it holds, or known that nobody knows.

A driver's ``commit`` may end without a clear answer, and an answer may be a lie. Where a device can be read, it is read
after every write; nothing is ever sent a second time before that. A device that completes a change after its answer is
read only when it reports that nothing is in progress (:mod:`lumctl.devices.progress`). If a device cannot be read, an
unclear outcome stays unclear, and the caller must treat the device as unknown until its known state is written again.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lumctl.devices.errors import DeviceError, DeviceRefusedError, InconsistentError, OutcomeUnknownError
from lumctl.devices.progress import Watch, await_idle, require_idle
from lumctl.devices.protocols import MeshDriver, SwitchDriver
from lumctl.devices.types import Capability, JoinChange, Progress, PucChange, PucState, Receipt, Staged
from lumctl.inventory.wiring import FREE

if TYPE_CHECKING:
    from typing_extensions import TypeIs

LightDriver = MeshDriver | SwitchDriver
Cell = tuple[int, str | None, str]
"""One cell of a change as plans write it: its number, what it held (``None`` where not known), what it is to hold.

Of a mesh: a PUC and its states; of a switch: an ingress port and the egress ports, see lumctl.inventory.wiring.
"""


READ_BACK = "no answer came; read back"
"""The text of a receipt for a change that was only seen by reading. Whether its timer runs is then not certain."""


class NotTakenError(DeviceRefusedError):
    """No clear answer came, and the device was read since: it holds what it held."""


def is_switch(driver: LightDriver) -> "TypeIs[SwitchDriver]":
    """Whether a driver's cells are the ingress ports of a switch."""
    return driver.kind == "switch"


def readable(driver: LightDriver) -> bool:
    """Whether the device itself says what it holds."""
    return is_switch(driver) or Capability.READ_STATES in driver.capabilities


def stage(driver: LightDriver, cells: Iterable[Cell]) -> Staged[Any]:
    """Stage a change as a plan writes it."""
    if is_switch(driver):
        return driver.stage({ingress: _egress(after) for ingress, _, after in cells})
    return driver.stage({puc: PucState(after) for puc, _, after in cells})


def held_before(staged: Staged[Any]) -> dict[int, str]:
    """What the device held in the cells of a staged change, as plans write it; cells that it did not tell are left out.

    Of a switch every cell is told: one that is joined to nothing is free.
    """
    return {
        _cell(change): _text(change.before) if isinstance(change, JoinChange) else str(change.before)
        for change in staged.changes
        if isinstance(change, JoinChange) or change.before is not None
    }


def _text(egress: int | None) -> str:
    return FREE if egress is None else str(egress)


def committed(driver: LightDriver, cells: Iterable[Cell], token: str) -> Staged[Any]:
    """A change that was staged and committed, as its plan has it: what a driver itself knows of it may be gone."""
    if is_switch(driver):
        joins = (JoinChange(ingress, _egress(before or FREE), _egress(after)) for ingress, before, after in cells)
        return Staged(tuple(joins), token)
    pucs = (PucChange(puc, PucState(before) if before else None, PucState(after)) for puc, before, after in cells)
    return Staged(tuple(pucs), token)


def read_cells(driver: LightDriver, own: Iterable[int]) -> dict[int, str]:
    """The values of these cells of a readable device; PUCs between bar and cross are left out.

    Raises:
        DeviceBusyError: it is still working on an earlier change.
        DeviceError: it does not answer.
    """
    require_idle(driver)
    if is_switch(driver):
        # Inputs have the lower numbers; where any port may be joined to any, the lower one counts as the ingress.
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
    """Commit a change; when this returns, a device that can be read was seen to hold it.

    Waits for a device that completes the change after its answer, and reports its progress to ``watch``.

    Raises:
        DeviceUnreachableError, DeviceRefusedError, UnsupportedError: the device holds what it held
            (:class:`NotTakenError` where that was only found by reading).
        OutcomeUnknownError: the device's state is unknown: it gave no clear answer and cannot be read (now), or it is
            still working at the deadline.
        InconsistentError: the device was read and holds something else.
    """
    try:
        receipt = driver.commit(wanted, revert_after_s=revert_after_s)
    except OutcomeUnknownError as unknown:
        _await_end(driver, watch, unknown)
        if not readable(driver):
            raise
        _require(_difference(driver, wanted, unknown), wanted, unknown)
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
    """Write what was before a change; when this returns, a device that can be read was seen to hold it.

    Waits until the device has finished earlier work before sending anything, as after a write.

    A lost answer is followed by a read-back, and by one second attempt if that shows that the first did not arrive.

    Raises: as :func:`write`.
    """
    before = Staged(tuple(_inverse(change) for change in receipt.staged.changes), receipt.staged.token)
    _await_end(driver, watch, None)
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
    """What the device, read now, does not hold of a change; if it cannot be read now, its state is unknown."""
    try:
        return driver.compare(wanted)
    except DeviceError as error:
        said = f"{unknown.message}; " if unknown else ""
        raise OutcomeUnknownError(
            f"{said}the device took a change and cannot be read back: {error.message}", hint=error.hint
        ) from error


def _require(left: tuple[Any, ...], wanted: Staged[Any], unknown: OutcomeUnknownError | None) -> None:
    if not left:
        return
    at = {_cell(change): change.before for change in left}
    untouched = all(at.get(_cell(change), change.after) == change.before for change in wanted.changes)
    if unknown is not None and untouched:
        raise NotTakenError(f"{unknown.message}; it was read back and holds what it held", hint="try again")
    effect = "none" if untouched else "some"
    raise InconsistentError(
        f"{_said(unknown)}the device was read back and shows {effect} of the change: "
        f"{len(left)} of {len(wanted.changes)} cells are not as written"
    )


def _said(unknown: OutcomeUnknownError | None) -> str:
    return f"{unknown.message}; " if unknown else ""


def _cell(change: Any) -> int:
    return int(change.ingress if isinstance(change, JoinChange) else change.puc)
