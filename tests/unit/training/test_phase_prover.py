"""Proofs of light while ranks use it: what is wrong, what is not known, and what is of no use any more."""

import threading
from queue import Empty, SimpleQueue
from types import SimpleNamespace

import pytest

from lumctl.change.light_proof import BlinkError, NotProvedError
from lumctl.training.phase_control import Rail
from lumctl.training.phase_permission import PermitCircuit, PhasePermit
from lumctl.training.phase_prover import PhaseProver

WITHIN_S = 20.0


class Proof:
    """Plays the proof of light: what it finds is set by the test."""

    def __init__(self):
        self.missing, self.wrong, self.silent = set(), {}, set()
        self.error = None
        self.asked, self.proved, self.begun = [], [], SimpleQueue()
        self.go_on = threading.Event()
        self.go_on.set()

    def recheck(self, circuits):
        self.asked.append([circuit.id for circuit in circuits])
        self.begun.put(None)
        assert self.go_on.wait(WITHIN_S)
        if isinstance(self.error, OSError):
            raise self.error
        return self.missing, self.wrong

    def prove(self, circuits):
        self.proved.append([circuit.id for circuit in circuits])
        if self.error is not None:
            raise self.error
        return []

    def silent_hosts(self, _circuits):
        return self.silent


def permit(*, blinks=False):
    rails = tuple(Rail((f"rail{at}",), {"a": frozenset({(at, at + 2)})}) for at in range(2))
    circuits = [PermitCircuit("a", (at, at + 2), SimpleNamespace(id=f"c{at}"), blinks) for at in range(2)]
    return PhasePermit("plan-1", rails, "a", tuple(circuits))


@pytest.fixture
def proof():
    return Proof()


@pytest.fixture
def found():
    return SimpleQueue()


@pytest.fixture
def prover(proof, found):
    made = PhaseProver(lambda _clock: proof, lambda _permit, result: found.put(result), now=lambda: 7.0)
    made.begin()
    yield made
    proof.go_on.set()
    made.close()


def result_of(prover, found, how=None):
    prover.prove(how or permit(), 0, "a")
    result = found.get(timeout=WITHIN_S)
    assert (result.rail, result.phase, result.began) == (0, "a", 7.0)
    return result.wrong, result.unknown


def test_light_that_arrives_is_proved(prover, found):
    assert result_of(prover, found) == ("", "")


def test_a_receiver_that_hears_another_transmitter_is_wrong_at_once(prover, proof, found):
    proof.missing, proof.wrong = {"c0"}, {"c0": "t2 hears t9 instead of t0"}
    assert result_of(prover, found) == ("t2 hears t9 instead of t0", "")
    assert proof.proved == []


def test_a_receiver_that_hears_nothing_is_looked_at_longer(prover, proof, found):
    proof.missing = {"c0"}
    assert result_of(prover, found) == ("", "")
    proof.error = NotProvedError("t2 hears no transmitter")
    assert result_of(prover, found) == ("t2 hears no transmitter", "")


def test_a_host_that_does_not_answer_shows_nothing_of_the_light(prover, proof, found):
    proof.missing, proof.error, proof.silent = {"c0"}, NotProvedError("t2 received no new announcement"), {"h1", "h2"}
    assert result_of(prover, found) == ("", "no answer from h[1-2]")


def test_an_error_of_the_proof_itself_is_not_known(prover, proof, found):
    proof.error = OSError("no more files")
    assert result_of(prover, found) == ("", "OSError: no more files")


def test_what_only_a_blink_can_prove_is_proved_by_itself(prover, proof, found):
    assert result_of(prover, found, permit(blinks=True)) == ("", "")
    proof.error = BlinkError("t2 did not go dark")
    assert result_of(prover, found, permit(blinks=True)) == ("t2 did not go dark", "")
    assert proof.asked == []


def test_what_waits_is_proved_together(prover, proof, found):
    proof.go_on.clear()
    prover.prove(permit(), 0, "a")
    proof.begun.get(timeout=WITHIN_S)
    prover.prove(permit(), 1, "a")
    prover.prove(permit(), 0, "a")
    proof.go_on.set()
    results = [found.get(timeout=WITHIN_S).rail for _ in range(3)]
    assert (results, proof.asked) == ([0, 1, 0], [["c0"], ["c1", "c0"]])


def test_nothing_is_proved_or_reported_after_a_stop_and_the_next_group_does_not_wait(prover, proof, found):
    proof.go_on.clear()
    prover.prove(permit(), 0, "a")
    proof.begun.get(timeout=WITHIN_S)
    prover.stop()
    prover.prove(permit(), 1, "a")
    hangs, proof.go_on = proof.go_on, threading.Event()
    proof.go_on.set()
    prover.begin()
    assert result_of(prover, found) == ("", "")
    hangs.set()
    assert proof.asked == [["c0"], ["c0"]]
    with pytest.raises(Empty):
        found.get(timeout=0.05)
