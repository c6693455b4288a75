"""What a mesh driver must do if it cannot be sure: another mesh, another writer, half a change."""

import pytest

from lumctl.devices.errors import (
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.testing.mesh_under_test import MeshUnderTest
from lumctl.devices.testing.rules import not_tested, proves
from lumctl.devices.testing.subjects import Subject, another, require_size_found_out
from lumctl.devices.types import Capability, PucChange, PucState, Receipt

BAR, CROSS = PucState.BAR, PucState.CROSS
HALF_OF = 4
"""PUCs of a change that is stopped in the middle."""


class MeshDoubtsContract:
    """A part of ``MeshContract``."""

    @proves("identity")
    def test_a_mesh_of_another_size_is_found_out(self, mesh: MeshUnderTest, subject: Subject) -> None:
        """The address may lead to a mesh other than the one in the inventory."""
        if mesh.wrong_size is None:
            require_size_found_out(subject, puc_count=mesh.puc_count + 1)
            return
        with pytest.raises(InconsistentError):
            mesh.wrong_size.identify()

    @proves("read-afresh")
    def test_what_is_read_is_read_afresh(self, mesh: MeshUnderTest, subject: Subject) -> None:
        """Every reading shows what another driver wrote meanwhile."""
        if not mesh.readable:
            pytest.skip("the driver does not declare read-states")
        other = another(subject)
        receipt = mesh.write(mesh.everywhere(BAR) | {1: CROSS})
        staged = mesh.driver.stage({2: CROSS})
        other.confirm(other.commit(other.stage({1: BAR, 2: CROSS})))
        assert mesh.driver.compare(receipt.staged) == (PucChange(1, BAR, CROSS), PucChange(2, CROSS, BAR))
        assert mesh.driver.compare(staged) == ()
        assert mesh.driver.read_states() == mesh.everywhere(BAR) | {2: CROSS}
        assert mesh.driver.stage({1: BAR, 2: BAR}).changes == (PucChange(1, BAR, BAR), PucChange(2, CROSS, BAR))

    @proves("read-afresh")
    def test_a_puc_between_bar_and_cross_is_neither(self, mesh: MeshUnderTest) -> None:
        """It is left out of the reading, has no state before the change, and cannot be rolled back."""
        if not mesh.readable:
            pytest.skip("the driver does not declare read-states")
        if mesh.put_between is None:
            not_tested("the set-up gives no `put_between`")
        mesh.write(mesh.everywhere(BAR))
        mesh.put_between(3)
        assert mesh.driver.read_states() == {puc: BAR for puc in range(mesh.puc_count) if puc != 3}  # noqa: PLR2004
        staged = mesh.driver.stage({2: CROSS, 3: CROSS})
        assert staged.changes == (PucChange(2, BAR, CROSS), PucChange(3, None, CROSS))
        assert mesh.driver.compare(staged) == staged.changes
        receipt = mesh.driver.commit(staged)
        assert mesh.driver.compare(staged) == ()
        with pytest.raises(DeviceRefusedError):
            mesh.driver.roll_back(receipt)
        assert mesh.holds({2: CROSS, 3: CROSS})

    @proves("half-applied")
    def test_half_a_change_is_never_called_none(self, mesh: MeshUnderTest) -> None:
        """A driver with ``ATOMIC`` changes nothing; one without must not claim that nothing changed."""
        if mesh.stops_midway is None:
            not_tested("the set-up gives no `stops_midway`, which makes the device stop in the middle of a change")
        mesh.write(mesh.everywhere(BAR))
        staged = mesh.driver.stage(dict.fromkeys(range(HALF_OF), CROSS))
        with mesh.stops_midway(), pytest.raises(DeviceError) as caught:
            mesh.driver.commit(staged)
        untouched = self._seen(mesh, mesh.everywhere(BAR))
        if Capability.ATOMIC in mesh.driver.capabilities:
            assert untouched is not False
        elif not untouched:
            assert not isinstance(caught.value, (DeviceRefusedError, DeviceUnreachableError))

    @proves("outcome")
    def test_what_nobody_knows_is_not_claimed(self, mesh: MeshUnderTest) -> None:
        """After an unknown outcome on a device that cannot be read, no PUC of the change has a known state.

        None of the change counts as made, and an undo of it is refused, until the PUCs are written again.
        """
        if mesh.readable:
            pytest.skip("the device can be read: its states are known after any outcome")
        if mesh.stops_midway is None:
            not_tested("the set-up gives no `stops_midway`, which makes the device stop in the middle of a change")
        mesh.write(mesh.everywhere(BAR))
        wanted = dict.fromkeys(range(HALF_OF), CROSS)
        with mesh.stops_midway(), pytest.raises(OutcomeUnknownError):
            mesh.driver.commit(mesh.driver.stage(wanted))
        unknown = mesh.driver.stage(wanted)
        assert unknown.changes == tuple(PucChange(puc, None, CROSS) for puc in wanted)
        assert mesh.driver.compare(unknown) == unknown.changes
        assert mesh.driver.stage({HALF_OF: CROSS}).changes == (PucChange(HALF_OF, BAR, CROSS),)
        with pytest.raises(DeviceRefusedError):
            mesh.driver.roll_back(Receipt(mesh.driver.stage({0: CROSS, HALF_OF: CROSS}), revert_armed=False))
        receipt = mesh.write(wanted)
        assert mesh.driver.compare(receipt.staged) == ()
        assert mesh.holds(mesh.everywhere(BAR) | wanted)

    @staticmethod
    def _seen(mesh: MeshUnderTest, states: dict[int, PucState]) -> bool | None:
        """Whether the mesh is in these states; ``None`` if only the driver's own record could say."""
        return mesh.holds(states) if mesh.truth is not None or mesh.readable else None
