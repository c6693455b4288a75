"""The checker beside a slow evaluator that counts contributions: on all algorithms, and on random mutations of them."""

import os
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from lumctl.collectives import Send, direct, first_fault, halving_doubling, ring, stragglar
from lumctl.collectives.baselines import reduce_scatter
from lumctl.errors import UsageError

MUTATIONS = 10_000 if os.environ.get("LUMCTL_CAMPAIGN") else 600


def is_all_reduce(schedule) -> bool:
    """Whether a schedule is an all-reduce, by counting each contribution in each chunk; slow, and apart from ours."""
    holds = {(r, c): Counter([r]) for r in range(schedule.ranks) for c in range(schedule.chunks)}
    if schedule.straggler is not None:
        others = [r for r in range(schedule.ranks) if r != schedule.straggler]
        holds = {
            (r, c): found if r == schedule.straggler else Counter(others) if schedule.owners[c] == r else None
            for (r, c), found in holds.items()
        }
    for sends in schedule.rounds:
        ends = Counter(("out", send.sender) for send in sends) + Counter(("in", send.receiver) for send in sends)
        if any(count > 1 for count in ends.values()):
            return False
        before = dict(holds)
        for send in sends:
            if send.sender == send.receiver or not send.chunks or max(Counter(send.chunks).values()) > 1:
                return False
            for chunk in send.chunks:
                sent, held = before.get((send.sender, chunk)), before.get((send.receiver, chunk))
                if sent is None or (send.receiver, chunk) not in before or (send.reduces and held is None):
                    return False
                holds[send.receiver, chunk] = sent + held if send.reduces else sent
                if max(holds[send.receiver, chunk].values()) > 1:
                    return False
    return all(found == Counter(range(schedule.ranks)) for found in holds.values())


def drawn(rng):
    ranks = rng.randint(2, 12)
    kinds = [lambda: stragglar(ranks, rng.randrange(ranks))] * 3 + [lambda: ring(ranks), lambda: direct(ranks)]
    return rng.choice([*kinds, lambda: halving_doubling(rng.choice((2, 4, 8)))])()


def changed_send(send, schedule, rng):
    """A send with another receiver, sender, chunk or operation."""
    return rng.choice(
        (
            send._replace(receiver=rng.randrange(schedule.ranks)),
            send._replace(sender=rng.randrange(schedule.ranks)),
            send._replace(chunks=(rng.randrange(-1, schedule.chunks + 1),)),
            send._replace(reduces=not send.reduces),
        )
    )


def move_something(rounds, number, at, rng):
    """Drop, delay, repeat or reorder a send, or swap two rounds."""
    other = rng.randrange(len(rounds))
    match rng.randrange(5):
        case 0:
            del rounds[number][at]
        case 1:
            rounds[number], rounds[other] = rounds[other], rounds[number]
        case 2:
            rounds[other].append(rounds[number].pop(at))
        case 3:
            rng.shuffle(rounds[number])
        case 4:
            rounds.insert(other, [rounds[number][at]])


def mutated(schedule, rng):
    """The schedule with one to three random changes; some of them change nothing that matters."""
    rounds = [list(sends) for sends in schedule.rounds]
    owners = list(schedule.owners)
    for _ in range(rng.choice((1, 1, 2, 3))):
        number = rng.choice([at for at, sends in enumerate(rounds) if sends] or [0])
        if not rounds[number]:
            continue
        at = rng.randrange(len(rounds[number]))
        kind = rng.random()
        if kind < 0.4:
            rounds[number][at] = changed_send(rounds[number][at], schedule, rng)
        elif kind < 0.9 or len(owners) < 2:
            move_something(rounds, number, at, rng)
        else:
            rng.shuffle(owners)
    return replace(schedule, rounds=tuple(rounds), owners=tuple(owners))


def test_random_mutations_are_found_exactly_if_they_change_the_result():
    rng = Random(23)  # noqa: S311 - the same mutations in every run
    outcomes = Counter()
    while sum(outcomes.values()) < MUTATIONS:
        schedule = mutated(drawn(rng), rng)
        right = is_all_reduce(schedule)
        outcomes[right] += 1
        assert (first_fault(schedule) is None) == right, schedule
    assert outcomes[True] > MUTATIONS // 20
    assert outcomes[False] > MUTATIONS // 2


@pytest.mark.parametrize("ranks", [2, 3, 4, 7, 8, 16])
def test_the_usual_algorithms_are_all_reduces(ranks):
    power = [halving_doubling(ranks)] if ranks & (ranks - 1) == 0 else []
    for schedule in (ring(ranks), direct(ranks), *power):
        assert first_fault(schedule) is None
        assert is_all_reduce(schedule)
    assert (len(ring(ranks).rounds), ring(ranks).proven, direct(ranks).proven) == (2 * ranks - 2, True, True)


def test_halving_and_doubling_needs_a_power_of_two():
    assert len(halving_doubling(16).rounds) == 8
    assert not halving_doubling(16).proven
    with pytest.raises(UsageError, match="needs a power of two, not 6 ranks"):
        halving_doubling(6)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 11])
def test_with_the_reduce_scatter_before_it_is_an_all_reduce_from_the_beginning(ranks):
    schedule = stragglar(ranks, ranks // 2)
    rounds = (*reduce_scatter(schedule.owners), *schedule.rounds)
    assert len(rounds) == ranks - 2 + len(schedule.rounds)
    whole = replace(schedule, straggler=None, owners=(), rounds=rounds)
    assert first_fault(whole) is None
    assert is_all_reduce(whole)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Send(0, 1, (9,), reduces=True), "round 0, rank 0, chunk 9: there are chunks 0 to 3 only"),
        (Send(0, 4, (0,), reduces=True), "round 0, rank 4, chunk 0: there are ranks 0 to 3 only"),
        (Send(0, 0, (0,), reduces=True), "round 0, rank 0, chunk 0: sends to itself"),
        (Send(0, 1, (), reduces=True), "round 0, rank 0: a send has each of its chunks once, and at least one"),
        (Send(1, 2, (0,), reduces=True), "round 0, rank 1, chunk 1: sends more than once"),
        (Send(0, 2, (0,), reduces=True), "round 0, rank 2, chunk 1: receives more than once"),
    ],
)
def test_a_fault_has_its_round_rank_and_chunk(change, said):
    schedule = ring(4)
    others = [send._replace(chunks=(1,)) for send in schedule.rounds[0][1:]]
    broken = replace(schedule, rounds=([change, *others], *schedule.rounds[1:]))
    assert str(first_fault(broken)) == said


def test_faults_of_contents_have_their_place_too():
    schedule = stragglar(4, 3)
    early = replace(schedule, rounds=([schedule.rounds[1][0]._replace(sender=schedule.owners[0], chunks=(1,))],))
    assert "sends what it does not hold yet" in str(first_fault(early))
    twice = replace(ring(3), rounds=(ring(3).rounds[0], ring(3).rounds[0]))
    assert str(first_fault(twice)).endswith("adds the contribution of rank 0 a second time")
    short = replace(ring(3), rounds=ring(3).rounds[:-1])
    assert str(first_fault(short)) == "round 2, rank 0, chunk 1: lacks the contribution of rank 1 at the end"
