from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.training.coordinator.workers import SENDS, HeldState, ResumePoint, StateLoad, choose
from lumctl.training.protocol import REPLICATED, UNIQUE


def test_in_a_replicated_job_whoever_has_done_most_gives_its_state_to_the_others():
    held = [HeldState("a", 0, 7), HeldState("b", 1, 8), HeldState("c", 2, 8), HeldState("spare", None, 0)]
    assert choose(REPLICATED, held, {0: "a", 1: "b", 2: "spare"}) == ResumePoint(
        8, (StateLoad("a", 0, "b"), StateLoad("spare", 2, "c"))
    )


def test_a_worker_that_leaves_may_be_the_source():
    held = [HeldState("old", 1, 5), HeldState("new", None, 0)]
    assert choose(REPLICATED, held, {0: "new"}) == ResumePoint(5, (StateLoad("new", 0, "old"),))


def test_where_nobody_has_a_state_there_is_none_to_go_on_from():
    assert choose(REPLICATED, [HeldState("spare", None, 0)], {0: "spare"}) is None
    assert choose(UNIQUE, [HeldState("a", 0, 3)], {0: "a", 1: "b"}) is None


def test_each_ranks_own_state_comes_from_who_keeps_it_and_the_others_go_back():
    held = [
        HeldState("a", 0, 5, frozenset({4, 5})),
        HeldState("c", 2, 4, frozenset({3, 4}), {1: frozenset({3, 4})}),
        HeldState("spare", None, 0),
    ]
    found = choose(UNIQUE, held, {0: "a", 1: "spare", 2: "c"})
    assert found == ResumePoint(4, (StateLoad("a", 0, None), StateLoad("spare", 1, "c")))


def test_a_keeper_that_takes_the_rank_itself_asks_nobody():
    held = [HeldState("b", 1, 4, frozenset({4}), {0: frozenset({4})})]
    assert choose(UNIQUE, held, {0: "b"}) == ResumePoint(4, (StateLoad("b", 0, None),))


@pytest.mark.parametrize(("holders", "rounds"), [(1, 4), (2, 3), (4, 2), (8, 1), (1000, 1)])
def test_eight_new_ranks_get_a_state_in_few_rounds_and_nobody_sends_it_more_than_twice(holders, rounds):
    held = [HeldState(f"r{rank}", rank, 5) for rank in range(holders)]
    seats = {rank: f"r{rank}" if rank < holders else f"new{rank}" for rank in range(holders + 8)}
    loads = choose(REPLICATED, held, seats).loads
    assert [load.worker for load in loads] == [f"new{rank}" for rank in range(holders, holders + 8)]
    done_in = dict.fromkeys((one.worker for one in held), 0)
    sends_from = dict.fromkeys(done_in, 0)
    for load in loads:
        begins = max(done_in[load.source], sends_from[load.source])
        done_in[load.worker] = sends_from[load.source] = sends_from[load.worker] = begins + 1
    assert max(done_in.values()) == rounds
    assert max(Counter(load.source for load in loads).values()) <= SENDS
    if holders == 1000:
        assert [load.source for load in loads] == [f"r{125 * number}" for number in range(8)]


steps = st.frozensets(st.integers(0, 6), max_size=3)
workers = st.lists(
    st.builds(
        lambda rank, done, own, of: (rank, done, own, of),
        st.none() | st.integers(0, 3),
        st.integers(0, 6),
        steps,
        st.dictionaries(st.integers(0, 3), steps, max_size=2),
    ),
    min_size=1,
    max_size=6,
)


@given(workers, st.sampled_from([REPLICATED, UNIQUE]))
def test_whatever_is_chosen_can_be_had_and_nothing_newer_could(drawn, layout):
    held = [HeldState(f"w{n}", rank, done, own, of) for n, (rank, done, own, of) in enumerate(drawn)]
    crew = {n: one.worker for n, one in enumerate(held[:4])}
    found = choose(layout, held, crew)
    by_name = {one.worker: one for one in held}

    def whole(done):
        return all(any(one.has(rank, done) for one in held) for rank in crew)

    if layout == REPLICATED:
        members = [one for one in held if one.rank is not None]
        assert (found is None) == (not members)
        if found is not None:
            assert found.done == max(one.done for one in members)
            having = {one.worker for one in members if one.done == found.done}
            for load in found.loads:
                assert load.source in having
                having.add(load.worker)
            sent = Counter(load.source for load in found.loads)
            assert max(sent.values(), default=0) <= SENDS
        return
    assert (found is None) == (not any(whole(done) for done in range(7)))
    if found is not None:
        assert not any(whole(done) for done in range(found.done + 1, 7))
        loaded = {load.rank: load for load in found.loads}
        for rank, name in crew.items():
            if rank in loaded:
                source = loaded[rank].source or name
                assert by_name[source].has(rank, found.done)
            else:
                assert (by_name[name].rank, by_name[name].done) == (rank, found.done)
