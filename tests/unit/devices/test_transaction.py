"""After a write it is known what the device holds, or known that nobody knows."""

import pytest

from lumctl.devices import transaction
from lumctl.devices.errors import (
    DeviceRefusedError,
    DeviceUnreachableError,
    InconsistentError,
    NotTakenError,
    OutcomeUnknownError,
)
from lumctl.devices.types import Capability, JoinChange, PucChange, PucState, Receipt, Staged

BAR, CROSS = PucState.BAR, PucState.CROSS
LOST = OutcomeUnknownError("it was sent, no answer came")


class Mesh:
    """A mesh that takes so many cells of each write, and then answers or not."""

    kind = "mesh"

    def __init__(self, *, readable=True, takes=(), answers=()):
        self.capabilities = frozenset({Capability.READ_STATES} if readable else ())
        self.cells = dict.fromkeys(range(4), BAR)
        self.takes, self.answers = list(takes), list(answers)
        self.writes = 0
        self.silent = False

    def _write(self, states):
        self.writes += 1
        count = self.takes.pop(0) if self.takes else len(states)
        self.cells |= dict(list(states.items())[:count])
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer

    def stage(self, states):
        return Staged(tuple(PucChange(puc, self.cells[puc], after) for puc, after in states.items()), "t")

    def compare(self, staged):
        if self.silent:
            raise DeviceUnreachableError("nobody answers")
        return tuple(
            PucChange(c.puc, self.cells[c.puc], c.after) for c in staged.changes if self.cells[c.puc] is not c.after
        )

    def commit(self, staged, *, revert_after_s=None):
        self._write({c.puc: c.after for c in staged.changes})
        return Receipt(staged, revert_armed=revert_after_s is not None)

    def roll_back(self, receipt):
        self._write({c.puc: c.before for c in receipt.staged.changes})


CELLS = [(0, "=", "x"), (1, "=", "x"), (2, "=", "=")]


def write(mesh, **more):
    return transaction.write(mesh, transaction.stage(mesh, CELLS), **more)


def test_a_write_that_took_is_taken():
    mesh = Mesh()
    assert not write(mesh).revert_armed
    assert mesh.cells == {0: CROSS, 1: CROSS, 2: BAR, 3: BAR}


def test_a_lost_answer_is_found_by_reading_and_nothing_is_sent_twice():
    mesh = Mesh(answers=[LOST])
    receipt = write(mesh, revert_after_s=60.0)
    assert receipt.revert_armed
    assert mesh.writes == 1


def test_a_write_that_did_not_arrive_is_known_not_to_have():
    mesh = Mesh(takes=[0], answers=[LOST])
    with pytest.raises(NotTakenError, match="its state is unchanged"):
        write(mesh)
    assert mesh.writes == 1


@pytest.mark.parametrize("answer", [LOST, None], ids=["no answer", "a lie"])
def test_half_a_write_is_inconsistent(answer):
    mesh = Mesh(takes=[1], answers=[answer])
    with pytest.raises(InconsistentError, match="reports some of the change: 1 of 3"):
        write(mesh)


def test_an_answer_may_be_a_lie():
    with pytest.raises(InconsistentError, match="reports none of the change"):
        write(Mesh(takes=[0]))


def test_without_reading_an_unclear_outcome_stays_unclear():
    mesh = Mesh(readable=False, answers=[LOST])
    with pytest.raises(OutcomeUnknownError):
        write(mesh)
    assert mesh.writes == 1


@pytest.mark.parametrize("answer", [LOST, None], ids=["no answer", "an answer"])
def test_a_device_that_cannot_be_read_any_more_is_unknown(answer):
    mesh = Mesh(answers=[answer])
    staged = transaction.stage(mesh, CELLS)
    mesh.silent = True
    with pytest.raises(OutcomeUnknownError, match="nobody answers"):
        transaction.write(mesh, staged)


def test_a_refusal_is_passed_on():
    with pytest.raises(DeviceRefusedError, match="no"):
        write(Mesh(takes=[0], answers=[DeviceRefusedError("no")]))


def taken(mesh):
    for puc in (0, 1):
        mesh.cells[puc] = CROSS
    return Receipt(transaction.committed(mesh, CELLS, "t"), revert_armed=False)


def test_taking_back_is_read_back_too():
    mesh = Mesh()
    transaction.take_back(mesh, taken(mesh))
    assert set(mesh.cells.values()) == {BAR}
    assert mesh.writes == 1


def test_taking_back_is_tried_once_more_when_reading_shows_that_it_did_not_arrive():
    mesh = Mesh(takes=[0], answers=[LOST])
    transaction.take_back(mesh, taken(mesh))
    assert set(mesh.cells.values()) == {BAR}
    assert mesh.writes == 2


def test_but_no_more_than_once():
    mesh = Mesh(takes=[0, 0, 0])
    with pytest.raises(InconsistentError, match="2 were not undone"):
        transaction.take_back(mesh, taken(mesh))
    assert mesh.writes == 2


def test_taking_back_what_cannot_be_read_is_done_once():
    mesh = Mesh(readable=False, answers=[LOST])
    with pytest.raises(OutcomeUnknownError):
        transaction.take_back(mesh, taken(mesh))
    assert mesh.writes == 1


class Switch:
    """Just what tells that it is one, and what it holds."""

    kind = "switch"
    api_version, capabilities, proven = 1, frozenset(), "a test"
    identify = compare = commit = confirm = roll_back = close = read_powers = read_temperature = None
    read_alarms = read_ports = set_port = set_label = None

    def __init__(self, joins):
        self.joins = joins

    def stage(self, joins):
        return joins

    def read_circuits(self):
        return self.joins


def test_the_cells_of_a_switch_are_its_ingress_ports():
    switch = Switch({1: 6, 7: 2})
    assert transaction.stage(switch, [(0, "5", "6"), (1, "6", "-")]) == {0: 6, 1: None}
    assert transaction.committed(switch, [(0, "-", "6")], "t").changes == (JoinChange(0, None, 6),)
    assert transaction.read_cells(switch, (0, 1, 2)) == {0: "-", 1: "6", 2: "7"}
