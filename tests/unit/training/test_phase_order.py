"""When a rank asks for the next phase: by the order of the step before, and in the mode that was faster."""

import pytest

from lumctl.training.phase_model import ChangeMode
from lumctl.training.phase_order import DECIDED, FIRST_COMPARED, MOST_BOUNDARIES, Crossing, PhaseOrder, faster

STEP = [("pipeline", 4), ("gradients", 2)]
ON_DEMAND, AHEAD = ChangeMode.ON_DEMAND, ChangeMode.AHEAD


class Rank:
    """Takes steps as the order tells it to; a wait lasts as long as its mode and boundary say."""

    def __init__(self, wait_s=None):
        self.order, self.started, self.held = PhaseOrder(), 0, None
        self._wait_s = wait_s or {ON_DEMAND: 0.01, AHEAD: 0.001}
        self.requests, self._asked = [], None
        self.window_s = None

    def step(self, stretches=STEP):
        self.requests = []
        for phase, collectives in stretches:
            for _ in range(collectives):
                self._collective(phase)
        return self.order.end_step(self.started)

    def _collective(self, phase):
        if phase != self.held:
            mode = AHEAD if self._asked == phase else ON_DEMAND
            hidden = 0.009 if mode is AHEAD else 0.0
            self.order.enter(phase, self.started, Crossing(mode, self._wait_s[mode], hidden, self.window_s, 0.01))
            self.held, self._asked = phase, None
        self.started += 1
        if (found := self.order.next_request) is not None and found[0] == self.started:
            self._asked = found[1]
            self.requests.append(found[1])


def modes(record):
    return [tuple(row[:3]) for row in record["boundaries"]]


def test_a_rank_compares_both_modes_and_then_keeps_the_faster():
    rank = Rank()
    records = [rank.step() for _ in range(DECIDED + 3)]
    assert records[0]["boundaries"] == [["pipeline", "gradients", "on-demand", None, 1, 0.01, None, 0.01]]
    assert modes(records[FIRST_COMPARED]) == [
        ("gradients", "pipeline", "on-demand"),
        ("pipeline", "gradients", "on-demand"),
    ]
    assert rank.requests == ["gradients", "pipeline"]
    assert records[-1]["boundaries"][1][:4] == ["pipeline", "gradients", "ahead", True]
    assert (records[-1]["changes"], records[-1]["worst_s"]) == (2, 0.001)


def test_where_asking_ahead_gains_nothing_a_rank_asks_on_demand_and_says_that_neither_pays():
    rank = Rank({ON_DEMAND: 0.01, AHEAD: 0.01})
    records = [rank.step() for _ in range(DECIDED + 2)]
    assert rank.requests == []
    assert records[-1]["boundaries"][-1][:4] == ["pipeline", "gradients", "on-demand", False]


@pytest.mark.parametrize(
    ("on_demand", "ahead", "mode", "pays"),
    [
        ([10, 11, 9, 10, 10], [1, 2, 1, 1, 30], AHEAD, True),
        ([1, 2, 1, 1, 2], [10, 11, 9, 10, 10], ON_DEMAND, True),
        ([1, 9, 5, 2, 8], [4, 1, 8, 7, 2], ON_DEMAND, False),
        ([10, 10, 10], [1, 1], ON_DEMAND, False),
    ],
)
def test_a_difference_within_noise_decides_nothing(on_demand, ahead, mode, pays):
    found = faster(on_demand, ahead)
    assert (found.mode, found.pays) == (mode, pays)


def test_a_step_of_another_order_is_not_guessed():
    rank = Rank()
    for _ in range(DECIDED + 1):
        rank.step()
    rank.step([("pipeline", 1), ("experts", 1), ("pipeline", 1)])
    assert rank.requests == [], "the order of the last step was another one"
    rank.step()
    assert "experts" not in rank.requests
    rank.step()
    assert rank.requests[:1] == ["gradients"]


def test_a_phase_that_ends_one_step_and_begins_the_next_is_not_left_between_them():
    rank = Rank()
    for _ in range(DECIDED + 2):
        record = rank.step([("pipeline", 2), ("gradients", 1), ("pipeline", 3)])
    assert modes(record) == [("pipeline", "gradients", "ahead"), ("gradients", "pipeline", "ahead")]
    assert rank.requests == ["gradients", "pipeline"]


def test_a_record_is_bounded():
    rank = Rank()
    for _ in range(DECIDED + 2):
        record = rank.step([("a", 1), ("b", 1)] * 100)
    assert record["changes"] == 200
    assert len(record["boundaries"]) == MOST_BOUNDARIES


def test_a_step_without_phases_has_a_record_too():
    assert Rank().step([]) == {"changes": 0, "wait_s": 0.0, "hidden_s": 0.0, "worst_s": 0.0, "boundaries": []}
