"""What a device is at work on is waited for, and nothing that it shows before is believed."""

import pytest

from lumctl.devices import transaction
from lumctl.devices.base import BaseMesh, BaseSwitch
from lumctl.devices.drivers import _complaint
from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceUnreachableError,
    InconsistentError,
    NotTakenError,
    OutcomeUnknownError,
    UnsupportedError,
)
from lumctl.devices.progress import await_idle, goes_on_for_s, in_words, require_idle
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, Progress, PucChange, PucState, Receipt, Staged

BAR, CROSS = PucState.BAR, PucState.CROSS
LOST = OutcomeUnknownError("it was sent, no answer came")
GONE = DeviceUnreachableError("nobody answers")
CELLS = [(0, "=", "x"), (1, "=", "x")]


class Mesh(BaseMesh):
    """A mesh whose writes are made when it was asked so many times how far it has come."""

    capabilities = frozenset({Capability.READ_STATES, Capability.PROGRESS})
    slow_calls = {"commit": 5.0}  # noqa: RUF012 - a driver that is written by hand

    def __init__(self, *, needs=3, answers=(), makes=True):
        super().__init__(DriverContext(device="m1"))
        self.cells = dict.fromkeys(range(4), BAR)
        self.needs, self.answers, self.makes = needs, list(answers), makes
        self.said = []
        self.under_way = None
        self.calls = []

    def _begin(self, states):
        assert self.under_way is None, "it was written while it was at work"
        self.under_way, self.left = states, self.needs
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def read_progress(self):
        self.calls.append("progress")
        if self.said:
            said = self.said.pop(0)
            if isinstance(said, Exception):
                raise said
        if self.under_way is None:
            return None
        if self.left > 0:
            self.left -= 1
            return Progress(self.needs - self.left - 1, self.needs)
        self.cells |= self.under_way if self.makes else {}
        self.under_way = None
        return None

    def read_states(self):
        self.calls.append("read")
        return dict(self.cells)

    def stage(self, states):
        return Staged(tuple(PucChange(puc, self.cells[puc], after) for puc, after in states.items()), "t")

    def compare(self, staged):
        self.calls.append("compare")
        return tuple(
            PucChange(c.puc, self.cells[c.puc], c.after) for c in staged.changes if self.cells[c.puc] is not c.after
        )

    def commit(self, staged, *, revert_after_s=None):
        self._begin({c.puc: c.after for c in staged.changes})
        return Receipt(staged, revert_armed=revert_after_s is not None)

    def roll_back(self, receipt):
        self._begin({c.puc: c.before for c in receipt.staged.changes})


def write(mesh, **more):
    return transaction.write(mesh, transaction.stage(mesh, CELLS), **more)


@pytest.mark.parametrize("answer", [None, LOST], ids=["answered", "no answer"])
def test_a_device_that_goes_on_is_read_when_it_has_ended_and_not_before(answer):
    mesh, watched = Mesh(answers=[answer]), []
    write(mesh, watch=watched.append)
    assert mesh.calls == ["progress"] * 4 + ["compare"]
    assert watched == [Progress(0, 3), Progress(1, 3), Progress(2, 3)]
    assert mesh.cells[0] is mesh.cells[1] is CROSS


@pytest.mark.parametrize("answer", [None, LOST], ids=["answered", "no answer"])
def test_what_it_made_of_the_change_is_judged_then(answer):
    mesh = Mesh(answers=[answer], makes=False)
    with pytest.raises(NotTakenError if answer else InconsistentError):
        write(mesh)


def test_one_that_cannot_be_asked_for_a_while_is_asked_again():
    mesh = Mesh(answers=[LOST])
    mesh.said = [None, GONE, GONE]
    write(mesh)
    assert mesh.cells[0] is CROSS


@pytest.mark.parametrize("unreadable", [False, True])
def test_work_without_an_end_is_an_unknown_outcome_and_nothing_is_read(unreadable):
    mesh = Mesh(needs=10**9, answers=[LOST])
    mesh.slow_calls = {"commit": 0.05}
    mesh.capabilities -= {Capability.READ_STATES} if unreadable else set()
    with pytest.raises(OutcomeUnknownError, match=r"no answer came; m1 is still at work: \d+ of 1000000000 cells"):
        write(mesh)
    assert set(mesh.calls) == {"progress"}


def test_so_is_one_that_does_not_say():
    mesh = Mesh(answers=[LOST])
    mesh.said = [GONE]
    with pytest.raises(
        OutcomeUnknownError, match="no answer came; m1 does not report whether it is still working on a change: nobody"
    ):
        write(mesh)
    assert mesh.calls == ["progress"]


def test_a_mesh_that_cannot_be_read_stays_unclear_when_it_has_ended():
    mesh = Mesh(answers=[LOST])
    mesh.capabilities -= {Capability.READ_STATES}
    with pytest.raises(OutcomeUnknownError, match=r"no answer came$"):
        write(mesh)
    assert mesh.under_way is None


def test_nothing_is_taken_back_from_a_device_at_work_before_it_has_ended():
    mesh = Mesh()
    mesh.under_way, mesh.left = {0: CROSS, 1: CROSS}, 2
    meant = transaction.committed(mesh, CELLS, "t")
    transaction.take_back(mesh, Receipt(meant, revert_armed=False))
    assert set(mesh.cells.values()) == {BAR}


def test_an_undo_without_an_answer_is_waited_for_too():
    mesh = Mesh(answers=[LOST])
    mesh.cells |= {0: CROSS, 1: CROSS}
    transaction.take_back(mesh, Receipt(transaction.committed(mesh, CELLS, "t"), revert_armed=False))
    assert set(mesh.cells.values()) == {BAR}
    assert mesh.calls.count("compare") == 1


def test_what_a_device_at_work_holds_is_not_read():
    mesh = Mesh()
    mesh.under_way, mesh.left = {0: CROSS}, 1
    with pytest.raises(DeviceBusyError, match="m1 is still at work: 2 of 3 cells"):
        transaction.read_cells(mesh, (0,))
    assert "read" not in mesh.calls
    assert transaction.read_cells(mesh, (0,)) == {0: "x"}


def test_a_driver_without_it_is_never_asked():
    mesh = Mesh()
    mesh.capabilities = frozenset()
    await_idle(mesh)
    require_idle(mesh)
    assert mesh.calls == []
    assert goes_on_for_s(mesh) == 0.0


def test_the_deadline_is_the_drivers_own_or_six_timeouts():
    mesh = Mesh()
    assert goes_on_for_s(mesh) == 5.0
    mesh.slow_calls = {}
    mesh.context = DriverContext(device="m1", timeout_s=2.0)
    assert goes_on_for_s(mesh) == 12.0


def test_it_is_asked_at_growing_distances_and_never_after_the_deadline():
    mesh, at, pauses = Mesh(needs=10**9), [0.0], []
    mesh.under_way, mesh.left = {}, 10**9

    def pause(seconds):
        pauses.append(seconds)
        at[0] += seconds

    with pytest.raises(OutcomeUnknownError):
        await_idle(mesh, clock=lambda: at[0], pause=pause)
    assert at[0] == pytest.approx(5.0)
    assert pauses[0] < 0.05
    assert max(pauses) == 1.0


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (Progress(), "is still at work"),
        (Progress(12, 40), "is still at work: 12 of 40 cells"),
        (Progress(12), "is still at work: 12 cells"),
        (Progress(None, 40, "homing mirrors"), "is still at work: 40 cells to write; homing mirrors"),
    ],
)
def test_a_progress_in_words(progress, words):
    assert in_words(progress) == words


@pytest.mark.parametrize("base", [BaseMesh, BaseSwitch])
def test_the_base_classes_refuse_it(base):
    with pytest.raises(UnsupportedError, match="no progress of changes"):
        base(DriverContext(device="d")).read_progress()


def test_a_driver_of_before_needs_no_such_call_unless_it_declares_it():
    class Old(Mesh):
        api_version = 1
        read_progress = None
        confirm = identify = Mesh.close

    assert _complaint(Old) == "lacks read_progress"
    Old.capabilities = frozenset()
    assert _complaint(Old) is None
