"""The light of rails under requests of ranks: who may use it, when it changes, and what can never happen."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from lumctl.training.phase_control import PhaseControl, ProofManner, Rail, RailLight, RankPath, RankRequest, rails_of
from lumctl.training.protocol import NO_PHASE

PIPELINE, GRADIENTS, EXPERTS = "pipeline", "gradients", "experts"
PAIRS: Mapping[str, frozenset[tuple[int, int]]] = {
    PIPELINE: frozenset({(0, 1), (2, 3)}),
    GRADIENTS: frozenset({(0, 2), (1, 3)}),
    EXPERTS: frozenset({(0, 3), (1, 2)}),
}
RAIL = Rail(("rail0",), PAIRS)


def size_of(light: RailLight) -> int:
    """How many entries a rail's state has."""
    return sum(map(len, (light.holders, light.waiting, light.newest, light.dark, light.idle)))


@dataclass
class Rack:
    """Plays the devices: each change waits until the test lets it end."""

    rails: tuple[Rail, ...] = (RAIL,)
    changes: list[tuple[int, str, int]] = field(default_factory=list)
    lit: list[tuple[int, int]] = field(default_factory=list)
    dark: list[tuple[int, str]] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.control = PhaseControl(
            self.rails,
            change=lambda rail, phase, number: self.changes.append((rail, phase, number)),
            lit=lambda request: self.lit.append((request.rank, request.number)),
            dark=lambda request, why: self.dark.append((request.rank, why)),
        )

    def wants(self, rank: int, phase: str, *, ahead: bool = False) -> str | None:
        """A rank's next request."""
        self.numbers[rank] = self.numbers.get(rank, 0) + 1
        return self.control.wants(RankRequest(rank, phase, self.numbers[rank], ahead))

    def confirm(self) -> None:
        """End the oldest change."""
        rail, _, number = self.changes.pop(0)
        self.control.confirmed(rail, number)

    def may_use(self) -> dict[int, str | None]:
        """By rank, the phase that it may use now."""
        return {rank: light.lit for light in self.control.rails for rank in light.holders}


@pytest.fixture
def rack() -> Rack:
    made = Rack()
    made.control.begin(lit=PIPELINE)
    return made


def test_a_phase_that_has_light_is_used_once_both_ends_of_a_circuit_need_it(rack: Rack) -> None:
    rack.wants(0, PIPELINE)
    assert rack.lit == []
    rack.wants(1, PIPELINE)
    assert rack.lit == [(0, 1), (1, 1)]
    assert rack.changes == []


def test_a_rank_that_holds_a_phase_is_enough_for_one_that_comes_back_to_it(rack: Rack) -> None:
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.wants(0, GRADIENTS)
    rack.wants(0, PIPELINE)
    assert rack.may_use() == {0: PIPELINE, 1: PIPELINE}


def test_the_light_stays_until_the_last_holder_wants_another_phase(rack: Rack) -> None:
    for rank in range(4):
        rack.wants(rank, PIPELINE)
    for rank in (0, 2, 1):
        rack.wants(rank, GRADIENTS)
        assert rack.changes == []
    rack.wants(3, GRADIENTS)
    assert rack.changes == [(0, GRADIENTS, 1)]
    assert rack.may_use() == {}


def test_nobody_uses_a_phase_that_no_device_has_confirmed(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    rack.wants(2, GRADIENTS)
    assert rack.lit == []
    rack.confirm()
    assert sorted(rack.lit) == [(0, 1), (2, 1)]


def test_a_change_waits_until_both_ends_of_a_circuit_want_it(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    rack.wants(3, GRADIENTS)
    assert rack.changes == []
    rack.wants(2, GRADIENTS)
    assert rack.changes == [(0, GRADIENTS, 1)]


def test_of_contrary_requests_the_one_with_more_groups_comes_first_and_the_other_next(rack: Rack) -> None:
    rack.wants(0, EXPERTS)
    rack.wants(3, EXPERTS)
    assert rack.changes == [(0, EXPERTS, 1)]
    rack.wants(1, GRADIENTS)
    rack.wants(2, EXPERTS)
    rack.confirm()
    assert rack.may_use() == {0: EXPERTS, 3: EXPERTS}
    for rank in (0, 2, 3):
        rack.wants(rank, GRADIENTS)
    assert rack.changes == [(0, GRADIENTS, 2)]


def test_light_that_was_asked_for_ahead_is_there_when_it_is_needed(rack: Rack) -> None:
    rack.wants(0, GRADIENTS, ahead=True)
    rack.wants(2, GRADIENTS, ahead=True)
    rack.confirm()
    assert rack.may_use() == {}
    rack.wants(0, GRADIENTS)
    assert rack.may_use() == {}
    rack.wants(2, GRADIENTS)
    assert rack.may_use() == {0: GRADIENTS, 2: GRADIENTS}
    assert rack.changes == []


def test_a_wrong_guess_costs_a_change_and_keeps_nobody_waiting(rack: Rack) -> None:
    rack.wants(0, GRADIENTS, ahead=True)  # but it comes back to the pipeline first
    rack.wants(2, GRADIENTS)
    rack.confirm()
    assert rack.may_use() == {}
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.confirm()
    assert rack.may_use() == {0: PIPELINE, 1: PIPELINE}


def test_a_repeated_request_is_answered_again_and_an_older_one_changes_nothing(rack: Rack) -> None:
    rack.wants(1, PIPELINE)
    rack.control.wants(RankRequest(0, PIPELINE, 2))
    rack.control.wants(RankRequest(0, PIPELINE, 2))
    assert rack.lit == [(1, 1), (0, 2), (0, 2)]
    rack.control.wants(RankRequest(0, GRADIENTS, 4))
    rack.control.wants(RankRequest(0, PIPELINE, 3))
    assert rack.lit == [(1, 1), (0, 2), (0, 2)]


def test_an_older_request_does_not_take_the_light_from_one_who_holds_it(rack: Rack) -> None:
    rack.wants(1, PIPELINE)
    rack.control.wants(RankRequest(0, PIPELINE, 2))
    rack.control.wants(RankRequest(0, GRADIENTS, 1))
    assert rack.may_use() == {0: PIPELINE, 1: PIPELINE}


def test_answers_of_devices_that_come_twice_or_late_change_nothing(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    rack.wants(2, GRADIENTS)
    rack.control.confirmed(0, 7)
    assert rack.may_use() == {}
    rack.confirm()
    rack.control.confirmed(0, 1)
    rack.control.failed(0, 1, "too late")
    assert rack.may_use() == {0: GRADIENTS, 2: GRADIENTS}


def test_a_failed_change_is_told_to_those_who_wait_for_it_and_the_light_counts_as_unknown(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    rack.wants(2, GRADIENTS)
    rack.control.failed(0, 1, "rail0 does not answer")
    assert rack.dark == [(0, "rail0 does not answer"), (2, "rail0 does not answer")]
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    assert rack.changes[-1] == (0, PIPELINE, 2)  # it had light before, but who knows now


def test_a_lost_answer_that_a_phase_is_dark_is_given_again(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    rack.wants(2, GRADIENTS)
    rack.control.failed(0, 1, "rail0 does not answer")
    rack.control.wants(RankRequest(0, GRADIENTS, 1))
    assert rack.dark[2:] == [(0, "rail0 does not answer")]


def test_a_phase_that_does_not_reach_a_rank_is_refused(rack: Rack) -> None:
    assert rack.wants(9, PIPELINE) == "no circuit of rank 9 belongs to a phase pipeline"
    assert rack.wants(0, "nonsense") == "no circuit of rank 0 belongs to a phase nonsense"


def test_a_new_group_begins_without_holders(rack: Rack) -> None:
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.control.begin(lit=PIPELINE)
    assert rack.may_use() == {}
    rack.control.wants(RankRequest(0, PIPELINE, 1))
    rack.control.wants(RankRequest(1, PIPELINE, 1))
    assert rack.may_use() == {0: PIPELINE, 1: PIPELINE}


def test_a_rank_that_has_ended_holds_no_light(rack: Rack) -> None:
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.wants(1, GRADIENTS)
    rack.wants(3, GRADIENTS)
    assert rack.changes == []
    rack.control.leaves(0)
    assert rack.changes == [(0, GRADIENTS, 1)]


def test_a_rank_that_needs_no_light_for_now_keeps_nobody_waiting_and_may_come_back(rack: Rack) -> None:
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.wants(0, NO_PHASE)
    assert rack.may_use() == {1: PIPELINE}
    rack.wants(1, GRADIENTS)
    rack.wants(3, GRADIENTS)
    rack.confirm()
    assert rack.may_use() == {1: GRADIENTS, 3: GRADIENTS}
    for rank in (1, 3):
        rack.wants(rank, NO_PHASE)
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.confirm()
    assert rack.may_use() == {0: PIPELINE, 1: PIPELINE}


def test_rails_change_independently() -> None:
    other = Rail(("rail1",), {PIPELINE: frozenset({(4, 5)}), GRADIENTS: frozenset({(4, 5)})})
    rack = Rack((RAIL, other))
    rack.control.begin(lit=PIPELINE)
    for rank in range(4):
        rack.wants(rank, PIPELINE)
    rack.wants(4, GRADIENTS)
    rack.wants(5, GRADIENTS)
    assert rack.changes == [(1, GRADIENTS, 1)]


def test_its_state_does_not_grow_with_the_number_of_changes(rack: Rack) -> None:
    sizes: list[int] = []
    for number in range(2_000):
        phase = (GRADIENTS, EXPERTS, PIPELINE)[number % 3]
        for rank in range(4):
            rack.wants(rank, phase, ahead=number % 2 == 0)
            rack.wants(rank, phase)
        if number % 10 == 9:
            rail, _, change = rack.changes.pop()
            rack.control.failed(rail, change, "rail0 refuses")
        else:
            rack.confirm()
        sizes.append(size_of(rack.control.rails[0]))
    assert rack.control.rails[0].changes == len(sizes)
    assert set(sizes[-30:]) == set(sizes[30:60])


def test_circuits_that_share_a_device_or_a_rank_are_one_rail() -> None:
    paths = [
        RankPath(PIPELINE, (0, 1), ("a",)),
        RankPath(GRADIENTS, (0, 2), ("b",)),
        RankPath(PIPELINE, (4, 5), ("c",)),
    ]
    assert [rail.devices for rail in rails_of(paths)] == [("a", "b"), ("c",)]


def test_if_all_wait_for_different_circuits_the_oldest_need_is_followed(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    rack.wants(1, EXPERTS)
    rack.wants(3, PIPELINE)
    assert rack.changes == []  # rank 2 may still want one of them
    rack.control.leaves(2)
    assert rack.changes == [(0, GRADIENTS, 1)]
    rack.confirm()
    assert rack.may_use() == {0: GRADIENTS}


def test_a_rank_that_waits_alone_at_last_gets_the_light_alone(rack: Rack) -> None:
    rack.wants(0, GRADIENTS)
    for rank in (1, 2, 3):
        rack.control.leaves(rank)
    rack.confirm()
    assert rack.may_use() == {0: GRADIENTS}


@dataclass
class Rank:
    """A rank in random order of events: its steps, and whether its partner has come to the same one."""

    left: list[str]
    at: int = 0
    asked: int = 0
    holds: bool = False


def partner(rank: int, phase: str) -> int:
    """The other end of the rank's circuit in a phase."""
    return next(a + b - rank for a, b in PAIRS[phase] if rank in {a, b})


class Steps:
    """Ranks that do collectives in pairs, while answers, repeats and wrong guesses come in random order."""

    def __init__(self, seed: int) -> None:
        self.draw, self.rack = random.Random(seed), Rack()  # noqa: S311 - a test's own order
        self.rack.control.begin(lit=PIPELINE)
        self.ranks = [Rank([PIPELINE, GRADIENTS, EXPERTS, GRADIENTS] * 3) for _ in range(4)]
        self._answered = 0

    def over(self) -> bool:
        """Whether all have done all their collectives."""
        return not any(rank.left for rank in self.ranks)

    def turn(self) -> None:
        """One event."""
        events = [self._ask, self._guess, self._repeat] + [self._confirm] * bool(self.rack.changes)
        self.draw.choice(events)()
        for name, number in self.rack.lit[self._answered :]:
            self.ranks[name].holds |= number == self.ranks[name].asked
        self._answered = len(self.rack.lit)
        for name, rank in enumerate(self.ranks):
            self._collective(name, rank)

    def _collective(self, name: int, rank: Rank) -> None:
        """A collective ends if both ends have light for it."""
        if rank.left and rank.holds:
            other = self.ranks[partner(name, rank.left[0])]
            if other.holds and other.at == rank.at:
                for each in (rank, other):
                    each.at, each.asked, each.holds = each.at + 1, 0, False
                    each.left.pop(0)

    def _confirm(self) -> None:
        assert self.rack.control.rails[0].holders == set()  # nobody uses the light while it changes
        self.rack.confirm()

    def _ask(self) -> None:
        name = self.draw.randrange(4)
        rank = self.ranks[name]
        if not rank.left:
            self.rack.control.leaves(name)
        elif not rank.asked:
            self.rack.wants(name, rank.left[0])
            rank.asked = self.rack.numbers[name]

    def _guess(self) -> None:
        name = self.draw.randrange(4)
        if self.ranks[name].left and not self.ranks[name].asked and self.draw.random() < 0.2:
            self.rack.wants(name, self.draw.choice(list(PAIRS)), ahead=True)

    def _repeat(self) -> None:
        name = self.draw.randrange(4)
        rank = self.ranks[name]
        if rank.asked:
            self.rack.control.wants(RankRequest(name, rank.left[0], rank.asked))


@pytest.mark.parametrize("seed", range(200))
def test_in_any_order_of_events_nobody_uses_dark_light_and_all_get_on(seed: int) -> None:
    steps = Steps(seed)
    light = steps.rack.control.rails[0]
    for _ in range(3000):
        if steps.over():
            break
        steps.turn()
        assert light.lit is None or light.changing_to is None
        assert not light.holders or light.lit is not None
        assert len(steps.rack.changes) <= 1
    assert steps.over(), steps.ranks


def test_light_is_kept_while_it_is_proved_and_ranks_may_use_it(rack: Rack) -> None:
    rack.wants(0, PIPELINE)
    rack.wants(1, PIPELINE)
    rack.control.begin_proof(0)
    for rank in range(4):
        rack.wants(rank, GRADIENTS)
    assert rack.changes == []
    rack.control.end_proof(0)
    assert [phase for _, phase, _ in rack.changes] == [GRADIENTS]


def test_nobody_may_use_light_that_is_proved_alone(rack: Rack) -> None:
    for rank in range(4):
        rack.wants(rank, GRADIENTS)
    rail, _, number = rack.changes.pop()
    rack.control.confirmed(rail, number, ProofManner.ALONE)
    assert rack.may_use() == {}
    rack.control.end_proof(rail)
    assert rack.may_use() == dict.fromkeys(range(4), GRADIENTS)


def test_ranks_may_use_light_that_is_proved_beside_their_traffic(rack: Rack) -> None:
    for rank in range(4):
        rack.wants(rank, GRADIENTS)
    rail, _, number = rack.changes.pop()
    rack.control.confirmed(rail, number, ProofManner.BESIDE)
    assert rack.may_use() == dict.fromkeys(range(4), GRADIENTS)
