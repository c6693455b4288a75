"""A worker's part in the protocol of phases: no transfer without light, and none left behind when light is left."""

import threading
from queue import Empty, SimpleQueue

import pytest

from lumctl.training.phase_order import COMPARED, FIRST_COMPARED
from lumctl.training.phase_traffic import NO_PEER
from lumctl.training.protocol import DARK, LIT, NO_PHASE
from lumctl.training.torch.phase_light import PhaseDarkError, WorkerPhase
from lumctl.training.torch.stores import GivenUpError

WITHIN_S = 20.0
GENERATION = 3


class Transfer:
    """A transfer that ends when the test says so."""

    def __init__(self, *, ended=False):
        self.over = threading.Event()
        if ended:
            self.over.set()

    def is_completed(self):
        return self.over.is_set()


class Wait:
    def in_script(self, work):
        assert work.over.wait(WITHIN_S)

    in_helper = in_script


class Worker:
    """A worker whose requests the test answers."""

    def __init__(self):
        self.asked = SimpleQueue()
        self.light = WorkerPhase(GENERATION, lambda *request: self.asked.put(request), Wait())

    def answer(self, number, do=LIT, generation=GENERATION, **more):
        self.light.answered({"do": do, "generation": generation, "number": number, **more})

    def answer_all(self):
        """Answer each request at once, from another thread as the agent's line does."""

        def answer():
            while (request := self.asked.get()) is not None:
                self.answer(request[0])

        threading.Thread(target=answer, daemon=True).start()


@pytest.fixture
def worker():
    made = Worker()
    yield made
    made.light.give_up()
    made.asked.put(None)


class Starting:
    """Starts a transfer in a thread of its own."""

    def __init__(self, worker, phase, transfer=None):
        self.transfer, self.error = transfer or Transfer(ended=True), None
        self.begun, self._light, self._phase = threading.Event(), worker.light, phase
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            self._light.start(self._phase, NO_PEER, self._begin)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def _begin(self):
        self.begun.set()
        return self.transfer

    def end(self):
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()
        return self.error


def has_light(worker, phase, transfer=None):
    """The worker starts a transfer in a phase, for which its request is granted."""
    starting = Starting(worker, phase, transfer)
    worker.answer(worker.asked.get(timeout=WITHIN_S)[0])
    assert starting.end() is None


def test_a_transfer_starts_when_its_phase_has_light_and_the_next_one_at_once(worker):
    first = Starting(worker, "gradients")
    assert worker.asked.get(timeout=WITHIN_S) == (1, "gradients", False)
    assert not first.begun.is_set()
    worker.answer(1)
    assert first.end() is None
    assert Starting(worker, "gradients").end() is None
    assert worker.asked.empty()


def test_another_phase_is_asked_for_when_the_transfers_of_the_held_one_have_ended(worker):
    under_way = Transfer()
    has_light(worker, "pipeline", under_way)
    second = Starting(worker, "gradients")
    with pytest.raises(Empty):
        worker.asked.get(timeout=0.05)
    under_way.over.set()
    assert worker.asked.get(timeout=WITHIN_S) == (2, "gradients", False)
    worker.answer(2)
    assert second.end() is None


@pytest.mark.parametrize(
    "stale",
    [
        {"number": 1},
        {"number": 2, "generation": GENERATION - 1},
        {"number": 3},
        {"number": None},
        {"number": 2, "do": "load"},
    ],
)
def test_an_answer_to_another_request_lights_nothing(worker, stale):
    has_light(worker, "pipeline")
    second = Starting(worker, "gradients")
    worker.asked.get(timeout=WITHIN_S)
    worker.answer(**stale)
    assert not second.begun.wait(0.05)
    worker.answer(2)
    assert second.end() is None
    worker.answer(2, DARK)
    assert Starting(worker, "gradients").end() is None, "an answer twice changes nothing"


def test_a_phase_without_light_is_an_error_of_the_group_that_says_why(worker):
    starting = Starting(worker, "gradients")
    worker.answer(worker.asked.get(timeout=WITHIN_S)[0], DARK, why="rail0 refused\nport 3")
    error = starting.end()
    assert isinstance(error, PhaseDarkError)
    assert str(error) == "phase gradients has no light: rail0 refused port 3"
    assert worker.light.is_dark
    assert not starting.begun.is_set()


def test_an_abandoned_group_wakes_who_waits_and_starts_nothing_more(worker):
    starting = Starting(worker, "gradients")
    worker.asked.get(timeout=WITHIN_S)
    worker.light.give_up()
    assert isinstance(starting.end(), GivenUpError)
    worker.answer(1)
    again = Starting(worker, "gradients")
    assert isinstance(again.end(), GivenUpError)
    assert not again.begun.is_set()


def test_an_abandoned_group_gives_up_the_phase_it_holds(worker):
    worker.answer_all()
    assert Starting(worker, "gradients").end() is None
    worker.light.give_up()
    assert isinstance(Starting(worker, "gradients").end(), GivenUpError)


def test_a_phase_wanted_early_is_asked_for_when_all_transfers_have_ended_and_again_when_it_is_needed(worker):
    under_way = Transfer()
    has_light(worker, "pipeline", under_way)
    worker.light.want("gradients")
    with pytest.raises(Empty):
        worker.asked.get(timeout=0.05)
    under_way.over.set()
    assert worker.asked.get(timeout=WITHIN_S) == (2, "gradients", True)
    second = Starting(worker, "gradients")
    assert worker.asked.get(timeout=WITHIN_S) == (3, "gradients", False)
    worker.answer(2)
    assert not second.begun.wait(0.05)
    worker.answer(3)
    assert second.end() is None
    assert worker.asked.empty()


def test_a_worker_that_needs_no_light_lets_go_of_it_once_its_transfers_have_ended(worker):
    under_way = Transfer()
    has_light(worker, "pipeline", under_way)
    under_way.over.set()
    worker.light.release()
    assert worker.asked.get(timeout=WITHIN_S) == (2, NO_PHASE, False)
    worker.light.release()
    second = Starting(worker, "pipeline")
    assert worker.asked.get(timeout=WITHIN_S) == (3, "pipeline", False)
    worker.answer(3)
    assert second.end() is None
    assert worker.asked.empty()


def test_a_wrong_guess_costs_another_request_and_never_light(worker):
    has_light(worker, "pipeline")
    worker.light.want("gradients")
    assert worker.asked.get(timeout=WITHIN_S) == (2, "gradients", True)
    second = Starting(worker, "pipeline")
    assert worker.asked.get(timeout=WITHIN_S) == (3, "pipeline", False)
    worker.answer(2)
    assert not second.begun.wait(0.05)
    worker.answer(3)
    assert second.end() is None


def test_an_early_request_is_dropped_if_the_phase_is_used_again_first(worker):
    worker.answer_all()
    under_way = Transfer()
    assert Starting(worker, "pipeline", under_way).end() is None
    worker.light.want("gradients")
    assert Starting(worker, "pipeline").end() is None
    under_way.over.set()
    assert Starting(worker, "gradients").end() is None
    record = worker.light.end_step()
    assert record["changes"] == 2
    assert [row[:5] for row in record["boundaries"]] == [["pipeline", "gradients", "on-demand", None, 1]]


def test_a_phase_is_asked_for_ahead_when_the_last_transfer_of_the_one_before_has_ended(worker):
    def step(*, ahead):
        for phase in ("pipeline", "pipeline", "gradients"):
            enters = worker.light.holds != phase
            if ahead and enters:
                assert worker.asked.get(timeout=WITHIN_S)[1:] == (phase, True), "before it is needed"
            starting = Starting(worker, phase)
            if enters:
                number, asked, early = worker.asked.get(timeout=WITHIN_S)
                assert (asked, early) == (phase, False), "when it is needed"
                worker.answer(number, change_s=0.5)
            assert starting.end() is None
        return worker.light.end_step()

    for _ in range(FIRST_COMPARED + COMPARED):
        record = step(ahead=False)
    assert [row[2] for row in record["boundaries"]] == ["on-demand", "on-demand"]
    assert [row[6:] for row in record["boundaries"]] == [[None, 0.5]] * 2, "a window is measured only ahead"
    worker.light.want("pipeline")  # the first boundary is still on demand
    record = step(ahead=True)
    assert [row[2] for row in record["boundaries"]] == ["ahead", "ahead"]
    assert record["hidden_s"] > 0
    assert all(0 < window_s < record["step_s"] for *_, window_s, _ in record["boundaries"])
