"""The contract of every driver of a mesh."""

import random

import pytest

from lumctl.devices.contained_driver import class_of
from lumctl.devices.errors import (
    DeviceError,
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.protocols import MeshDriver
from lumctl.devices.testing.checks import CONFIRMED_AFTER_S, becomes_true, stays, supported
from lumctl.devices.testing.common_contract import AlarmsContract, CommonContract
from lumctl.devices.testing.rules import not_tested, proves
from lumctl.devices.testing.subjects import Subject, another, gone, of_mesh, require_size_found_out
from lumctl.devices.testing.under_test import MeshUnderTest
from lumctl.devices.types import Capability, PucChange, PucState, Receipt, Staged

BAR, CROSS = PucState.BAR, PucState.CROSS
HALF_OF = 4
"""PUCs of a change that is stopped in the middle."""
ROUNDS = 12
"""Number of random changes that are compared with a model, one after the other."""


class MeshContract(AlarmsContract, CommonContract):
    """Subclass it and define the fixture ``mesh``, the driver under test."""

    @pytest.fixture
    def subject(self, mesh: MeshUnderTest) -> Subject:
        """The set-up in the form that the common tests use."""
        return of_mesh(mesh)

    @proves("declaration")
    def test_it_declares_itself(self, mesh: MeshUnderTest) -> None:
        """Version, kind, capabilities and ``proven`` are stated for `plugin list`."""
        driver = class_of(mesh.driver)
        assert (driver.api_version, driver.kind) == (1, "mesh")
        assert all(isinstance(each, Capability) for each in driver.capabilities)
        assert driver.proven
        assert isinstance(mesh.driver, MeshDriver)

    @proves("identity")
    def test_it_identifies_itself_in_one_line(self, mesh: MeshUnderTest) -> None:
        """The line proves that the device answers."""
        assert len(mesh.driver.identify().splitlines()) == 1

    @proves("commit")
    def test_a_commit_writes_what_was_staged_and_nothing_else(self, mesh: MeshUnderTest) -> None:
        """PUCs that are not listed keep their states."""
        mesh.write(mesh.everywhere(BAR))
        mesh.write({0: CROSS, mesh.puc_count - 1: CROSS})
        assert mesh.holds(mesh.everywhere(BAR) | {0: CROSS, mesh.puc_count - 1: CROSS})

    @proves("commit")
    def test_a_commit_returns_when_the_device_holds_it(self, mesh: MeshUnderTest) -> None:
        """The state is checked before the confirm, because an undo and the proof of light read the device then."""
        mesh.write(mesh.everywhere(BAR))
        receipt = mesh.driver.commit(mesh.driver.stage({6: CROSS}))
        assert isinstance(receipt, Receipt)
        assert mesh.holds(mesh.everywhere(BAR) | {6: CROSS})
        mesh.driver.confirm(receipt)

    @proves("staging")
    def test_staging_and_comparing_touch_nothing(self, mesh: MeshUnderTest) -> None:
        """Only a commit writes."""
        mesh.write(mesh.everywhere(BAR))
        staged = mesh.driver.stage({1: CROSS, 2: BAR})
        assert mesh.driver.compare(staged) == (PucChange(1, BAR, CROSS),)
        assert mesh.holds(mesh.everywhere(BAR))

    @proves("staging")
    def test_staging_states_what_was_before(self, mesh: MeshUnderTest) -> None:
        """An undo writes these states."""
        mesh.write({0: BAR, 1: CROSS})
        assert mesh.driver.stage({1: BAR, 0: BAR}).changes == (PucChange(0, BAR, BAR), PucChange(1, CROSS, BAR))

    @proves("commit")
    def test_comparing_after_a_commit_shows_no_difference(self, mesh: MeshUnderTest) -> None:
        """The device holds what was written."""
        receipt = mesh.write({3: CROSS, 4: BAR})
        assert mesh.driver.compare(receipt.staged) == ()

    @proves("idempotent")
    def test_committing_again_is_harmless(self, mesh: MeshUnderTest) -> None:
        """A repeated write is harmless: the engine writes the state again that it assumes."""
        mesh.write(mesh.everywhere(BAR))
        staged = mesh.driver.stage({5: CROSS})
        mesh.driver.confirm(mesh.driver.commit(staged))
        mesh.driver.confirm(mesh.driver.commit(staged))
        assert mesh.holds(mesh.everywhere(BAR) | {5: CROSS})

    @proves("commit")
    def test_an_empty_change_is_no_error(self, mesh: MeshUnderTest) -> None:
        """A comparison changes nothing."""
        mesh.write(mesh.everywhere(CROSS))
        mesh.write({})
        assert mesh.holds(mesh.everywhere(CROSS))

    @pytest.mark.parametrize("beyond", [-1, 0], ids=["below", "above"])
    @proves("refused")
    def test_a_puc_that_does_not_exist_is_refused_whole(self, mesh: MeshUnderTest, beyond: int) -> None:
        """One wrong number stops the whole change."""
        mesh.write(mesh.everywhere(BAR))
        with pytest.raises(DeviceRefusedError):
            mesh.driver.stage({0: CROSS, beyond if beyond < 0 else mesh.puc_count: CROSS})
        assert mesh.holds(mesh.everywhere(BAR))

    @proves("roll-back")
    def test_rolling_back_restores_the_states_before(self, mesh: MeshUnderTest) -> None:
        """An undo restores the earlier states, even if other PUCs were written in between."""
        mesh.write(mesh.everywhere(BAR) | {1: CROSS})
        receipt = mesh.driver.commit(mesh.driver.stage({0: CROSS, 1: BAR, 2: BAR}))
        mesh.write({7: CROSS})
        mesh.driver.roll_back(receipt)
        assert mesh.holds(mesh.everywhere(BAR) | {1: CROSS, 7: CROSS})

    @proves("roll-back")
    def test_rolling_back_to_the_unknown_is_refused_whole(self, mesh: MeshUnderTest) -> None:
        """An undo is never made in part."""
        mesh.write(mesh.everywhere(BAR) | {0: CROSS, 1: CROSS})
        unknown = Staged((PucChange(0, BAR, CROSS), PucChange(1, None, CROSS)), token="")
        with pytest.raises(DeviceRefusedError):
            mesh.driver.roll_back(Receipt(unknown, revert_armed=False))
        assert mesh.holds({0: CROSS, 1: CROSS})

    @proves("commit")
    def test_random_changes_leave_what_a_model_says(self, mesh: MeshUnderTest) -> None:
        """Commits and undos in any order give the states of a dictionary."""
        dice = random.Random(72)  # noqa: S311 - the same changes in every run
        model = mesh.everywhere(BAR)
        mesh.write(model)
        for _ in range(ROUNDS):
            pucs = dice.sample(range(mesh.puc_count), k=dice.randint(1, mesh.puc_count))
            change = {puc: dice.choice([BAR, CROSS]) for puc in pucs}
            receipt = mesh.write(change)
            if dice.random() < 0.5:  # noqa: PLR2004 - a coin
                mesh.driver.roll_back(receipt)
            else:
                model |= change
            assert mesh.holds(model)

    @proves("revert-timer")
    def test_a_revert_timer_is_armed_or_refused(self, mesh: MeshUnderTest) -> None:
        """Without the capability a timer is refused at once; with it the device reverts by itself."""
        mesh.write(mesh.everywhere(BAR))
        staged = mesh.driver.stage({2: CROSS})
        if Capability.CONFIRM_TIMER not in mesh.driver.capabilities:
            with pytest.raises(UnsupportedError):
                mesh.driver.commit(staged, revert_after_s=0.2)
            assert mesh.holds(mesh.everywhere(BAR))
            return
        assert mesh.driver.commit(staged, revert_after_s=0.2).revert_armed
        assert becomes_true(lambda: mesh.holds(mesh.everywhere(BAR)))

    @proves("confirm")
    def test_a_confirmed_change_stays(self, mesh: MeshUnderTest) -> None:
        """Confirming disarms the timer, and is harmless without one."""
        mesh.write(mesh.everywhere(BAR))
        timed = Capability.CONFIRM_TIMER in mesh.driver.capabilities
        stays(
            lambda: mesh.driver.commit(
                mesh.driver.stage({2: CROSS}), revert_after_s=CONFIRMED_AFTER_S if timed else None
            ),
            mesh.driver.confirm,
            lambda: mesh.holds({2: CROSS}),
            timed=timed,
        )

    @proves("undeclared")
    def test_readings_are_given_or_refused_as_declared(self, mesh: MeshUnderTest) -> None:
        """A reading that is not declared raises UnsupportedError; a declared one answers."""
        driver = mesh.driver
        if supported(driver, Capability.READ_STATES, driver.read_states):
            assert set(driver.read_states()) == set(range(mesh.puc_count))
        if supported(driver, Capability.READ_POWERS, lambda: driver.read_powers((0, 1))):
            assert set(driver.read_powers((0, 1))) == {0, 1}
        if supported(driver, Capability.READ_TEMPERATURE, driver.read_temperature):
            assert isinstance(driver.read_temperature(), float)

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
        """Every reading shows what another driver has written."""
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
        """A PUC between the states is omitted from the reading, has no ``before`` state, and cannot be rolled back."""
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

        The change does not count as made, and its undo is refused, until the PUCs are written again.
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
        """Whether the mesh is in these states; ``None`` if only the driver's own record shows them."""
        return mesh.holds(states) if mesh.truth is not None or mesh.readable else None

    @proves("unreachable")
    def test_a_device_that_does_not_answer_is_unreachable(self, mesh: MeshUnderTest, subject: Subject) -> None:
        """Both reading and writing raise; staging needs the device only if its states can be read."""
        driver = mesh.unreachable
        if driver is None:
            driver = gone(subject)
        with pytest.raises(DeviceUnreachableError):
            driver.identify()
        with pytest.raises(DeviceUnreachableError):
            driver.commit(driver.stage({0: CROSS}))

    @proves("closing")
    def test_closing_twice_is_harmless(self, mesh: MeshUnderTest) -> None:
        """The second call does nothing."""
        mesh.driver.close()
        mesh.driver.close()
