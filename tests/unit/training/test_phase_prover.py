"""Proofs of light while ranks use it: what is wrong, what is not known, and what is of no use any more."""

import threading
import time
from queue import Empty, SimpleQueue
from types import SimpleNamespace

import pytest

from lumctl.change.light_proof import BlinkError, blink
from lumctl.training.phase_control import Rail
from lumctl.training.phase_permission import PermitCircuit, PhasePermit
from lumctl.training.phase_prover import PhaseProver

WITHIN_S = 20.0


class Proof:
    """Plays the proof of light: what it finds is set by the test."""

    def __init__(self):
        self.missing, self.wrong, self.silent = {}, {}, set()
        self.error = None
        self.looks_before_light = 0
        """So many looks find nothing, then there is light."""
        self.asked, self.proved, self.begun = [], [], SimpleQueue()
        self.go_on = threading.Event()
        self.go_on.set()

    def recheck(self, circuits):
        self.asked.append([circuit.id for circuit in circuits])
        self.begun.put(None)
        assert self.go_on.wait(WITHIN_S)
        if isinstance(self.error, OSError):
            raise self.error
        if self.looks_before_light:
            self.looks_before_light -= 1
            self.missing = self.missing if self.looks_before_light else {}
            return {"c0": "t2 hears no transmitter"}, {}
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
    made = PhaseProver(lambda _pause: proof, lambda _permit, result: found.put(result), 0.0, now=lambda: 7.0)
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
    proof.missing = proof.wrong = {"c0": "t2 hears t9 instead of t0"}
    assert result_of(prover, found) == ("t2 hears t9 instead of t0", "")
    assert proof.proved == []


def test_a_receiver_that_hears_nothing_is_looked_at_longer(prover, proof, found):
    proof.missing = {"c0": "t2 hears no transmitter"}
    assert result_of(prover, found) == ("t2 hears no transmitter", "")
    slow = PhaseProver(lambda _pause: proof, lambda _permit, result: found.put(result), WITHIN_S, now=lambda: 7.0)
    proof.looks_before_light = 3
    slow.begin()
    assert result_of(slow, found) == ("", "")
    assert len(proof.asked) == 1 + 4
    slow.close()


def test_a_host_that_does_not_answer_shows_nothing_of_the_light(prover, proof, found):
    proof.missing, proof.silent = {"c0": "t2 received no new announcement"}, {"h1", "h2"}
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


def test_a_group_that_ends_in_the_middle_of_a_blink_leaves_the_transmitter_on(found):
    class Lane:
        def __init__(self):
            self.on, self.off = True, threading.Event()

        def set_transmit(self, on):
            self.on = on
            if not on:
                self.off.set()

        def read_optics(self):  # the receiver hears somebody else, whatever the transmitter does
            return SimpleNamespace(rx_power_dbm=-3.0)

    lane, ended = Lane(), threading.Event()

    class Blinking:
        def __init__(self, pause):
            self.pause = pause

        def prove(self, _circuits):
            try:
                blink(lane, lane, name="t2", deadline_s=WITHIN_S, clock=time.monotonic, pause=self.pause)
            finally:
                ended.set()

    prover = PhaseProver(Blinking, lambda _permit, result: found.put(result), 0.0)
    prover.begin()
    prover.prove(permit(blinks=True), 0, "a")
    assert lane.off.wait(WITHIN_S)
    prover.stop()
    assert ended.wait(WITHIN_S)
    assert lane.on
    assert found.empty()
