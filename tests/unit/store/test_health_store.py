"""What the store keeps of health: one memory, acknowledgements, windows, and a history that is bounded."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from lumctl.health.acknowledgements import Acknowledgement, CoveredFinding, EventClear, MaintenanceWindow
from lumctl.health.states import State
from lumctl.health.transitions import Transition
from lumctl.store import Store, store_at
from lumctl.store.database import writing
from lumctl.store.schema import health_memory

KNOWN = Acknowledgement("h1", "host.unreachable", "ops@console", "being repaired", at=100.0, until=200.0)
WINDOW = MaintenanceWindow("", "r1", "ops@console", "new fans", starts=100.0, ends=200.0)


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened("r1")


@pytest.fixture
def shared(opened: Callable[..., Store]) -> tuple[Store, Store]:
    """Two racks in one database."""
    return opened("r1"), opened("r2")


def change(at: float, after: State, component: str = "g1", before: State | None = None) -> Transition:
    return Transition(at, component, "accelerator", before, after, ("gpu.xid",), "fell off the bus")


def told(store: Store, **which: object) -> list[tuple[float, State | None, State]]:
    return [(t.at, t.before, t.after) for t in store.health.transitions(**which)]


# -- events that operators ended --------------------------------------------------------------------------------------


def test_the_last_clear_of_a_component_and_rule_is_kept_and_each_is_journalled(shared: tuple[Store, Store]) -> None:
    store, other = shared
    first = EventClear("g1", None, "kim", "reset", 100.0)
    of_rule = replace(first, rule="gpu.xid", at=101.0)
    again = replace(first, reason="reset again", at=102.0)
    for said in (first, of_rule, again):
        store.health.clear_events(said)
    assert store.health.cleared_events() == (of_rule, again)
    assert [entry.data["reason"] for entry in store.journal.remarks("events-cleared")] == [
        "reset",
        "reset",
        "reset again",
    ]
    assert other.health.cleared_events() == ()


def test_what_an_acknowledgement_covers_is_kept(store: Store) -> None:
    covers = (CoveredFinding("h1", "host.unreachable", "", "failed"),)
    store.health.acknowledge(replace(KNOWN, covers=covers))
    store.health.acknowledge(replace(KNOWN, component="h2"))
    assert {said.component: said.covers for said in store.health.acknowledgements(now=100.0)} == {
        "h1": covers,
        "h2": None,
    }


# -- memory -----------------------------------------------------------------------------------------------------------


def test_a_memory_is_there_for_another_process(store: Store, opened: Callable[..., Store]) -> None:
    assert store.health.memory() is None
    assert store.health.remember({"since": {"h1": 3.5}}, now=100.0)
    assert opened("r1").health.last_look() == (100.0, {"since": {"h1": 3.5}})


def test_an_older_look_never_replaces_a_newer_one(store: Store) -> None:
    assert store.health.remember({"look": "newer"}, now=100.0)
    assert not store.health.remember({"look": "older"}, now=99.0)
    assert store.health.memory() == {"look": "newer"}
    assert store.health.remember({"look": "same time"}, now=100.0)


def test_a_memory_from_a_future_that_cannot_be_is_replaced(store: Store) -> None:
    store.health.remember({"look": "under a wrong clock"}, now=1e9)
    assert store.health.remember({"look": "now"}, now=100.0)
    assert store.health.last_look() == (100.0, {"look": "now"})


@settings(max_examples=30)
@given(times=st.lists(st.floats(1e6, 1e6 + 3000.0), min_size=1, max_size=8))
def test_whatever_the_order_the_latest_look_is_what_is_remembered(
    tmp_path_factory: pytest.TempPathFactory, times: list[float]
) -> None:
    store = store_at(str(tmp_path_factory.mktemp("store")))
    for time in times:
        store.health.remember({"at": time}, now=time)
    assert store.health.last_look() == (max(times), {"at": max(times)})
    store.close()


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_memory_that_is_none_is_nothing(store: Store, text: str) -> None:
    store.health.remember({}, now=100.0)
    with writing(store._engine) as connection:
        connection.execute(update(health_memory).values(document=text))
    assert store.health.memory() is None


# -- acknowledgements -------------------------------------------------------------------------------------------------


def test_an_end_given_by_a_clock_that_was_ahead_keeps_no_alarm_quiet(store: Store) -> None:
    ahead = replace(KNOWN, component="h2", at=100.0 + 12 * 3600, until=200.0 + 12 * 3600)
    store.health.acknowledge(KNOWN)
    store.health.acknowledge(ahead)
    store.health.acknowledge(KNOWN)  # what was in force by the clock ahead is forgotten
    assert store.health.acknowledgements(now=100.0) == (KNOWN,)


def test_an_acknowledgement_is_in_force_until_its_time(store: Store) -> None:
    forever = replace(KNOWN, component="h2", rule=None, until=None)
    store.health.acknowledge(KNOWN)
    store.health.acknowledge(forever)
    assert store.health.acknowledgements(now=199.9) == (KNOWN, forever)
    assert store.health.acknowledgements(now=200.0) == (forever,)


def test_a_new_one_replaces_that_of_the_same_findings_only(store: Store) -> None:
    again = replace(KNOWN, comment="the part has come", at=150.0)
    other = replace(KNOWN, rule="host.probe")
    every = replace(KNOWN, rule=None)
    for said in (KNOWN, other, every, again):
        store.health.acknowledge(said)
    assert set(store.health.acknowledgements(now=160.0)) == {again, other, every}


def test_one_rule_or_all_can_be_taken_back(store: Store) -> None:
    for rule in (None, "a", "b"):
        store.health.acknowledge(replace(KNOWN, rule=rule))
    assert store.health.unacknowledge("h1", "a") == 1
    assert {said.rule for said in store.health.acknowledgements(now=100.0)} == {None, "b"}
    assert store.health.unacknowledge("h2") == 0
    assert store.health.unacknowledge("h1") == 2
    assert store.health.acknowledgements(now=100.0) == ()


def test_a_spent_one_is_forgotten_unless_it_was_given_anew(store: Store) -> None:
    store.health.acknowledge(KNOWN)
    store.health.forget_spent([replace(KNOWN, at=99.0)])
    assert store.health.acknowledgements(now=100.0) == (KNOWN,)
    store.health.forget_spent([KNOWN])
    assert store.health.acknowledgements(now=100.0) == ()


# -- maintenance ------------------------------------------------------------------------------------------------------


def test_a_window_is_told_of_until_it_ends_and_before_it_begins(store: Store) -> None:
    window_id = store.health.add_window(WINDOW)
    named = replace(WINDOW, id=window_id)
    assert store.health.windows(now=0.0) == (named,)
    assert store.health.windows(now=199.0) == (named,)
    assert store.health.windows(now=200.0) == ()


def test_a_window_can_be_ended_once(store: Store) -> None:
    first, second = store.health.add_window(WINDOW), store.health.add_window(replace(WINDOW, id="mine"))
    assert second == "mine"
    assert store.health.end_window(first, now=150.0)
    assert not store.health.end_window(first, now=151.0)
    assert not store.health.end_window("nope", now=150.0)
    assert [window.id for window in store.health.windows(now=150.0)] == ["mine"]


def test_a_window_that_has_not_begun_can_be_called_off(store: Store) -> None:
    window_id = store.health.add_window(WINDOW)
    assert store.health.end_window(window_id, now=50.0)
    assert store.health.windows(now=120.0) == ()


# -- history ----------------------------------------------------------------------------------------------------------


def test_a_change_that_two_processes_saw_is_told_once(store: Store) -> None:
    assert store.health.add_transitions([change(100.0, State.FAILED, before=State.OK)])
    assert store.health.add_transitions([change(101.0, State.FAILED)]) == ()
    assert store.health.add_transitions([change(102.0, State.OK)])
    assert told(store) == [(100.0, State.OK, State.FAILED), (102.0, State.FAILED, State.OK)]


def test_what_the_history_ends_with_is_what_was_before(store: Store) -> None:
    store.health.add_transitions([change(100.0, State.FAILED)])
    store.health.add_transitions([change(110.0, State.DEGRADED, before=State.OK)])
    assert told(store)[-1] == (110.0, State.FAILED, State.DEGRADED)


def test_what_is_well_from_the_start_is_no_change(store: Store) -> None:
    assert store.health.add_transitions([change(100.0, State.OK)]) == ()


def test_nothing_is_added_behind_the_end_of_a_component_s_history(store: Store) -> None:
    store.health.add_transitions([change(100.0, State.FAILED)])
    assert store.health.add_transitions([change(99.0, State.OK)]) == ()
    assert store.health.add_transitions([change(99.0, State.FAILED, "g2")])


def test_a_host_and_its_accelerator_of_one_name_have_a_history_each(store: Store) -> None:
    store.health.add_transitions([change(100.0, State.FAILED)])
    assert store.health.add_transitions([replace(change(100.0, State.FAILED), kind="host")])
    assert store.health.last_states() == {("g1", "accelerator"): State.FAILED, ("g1", "host"): State.FAILED}


def test_the_history_is_bounded_by_count_and_by_age(store: Store) -> None:
    for at in range(50):
        store.health.add_transitions([change(2.0 * at, State.FAILED), change(2.0 * at + 1, State.OK)], keep=50)
    assert [at for at, *_ in told(store)] == list(range(50, 100))
    store.health.add_transitions([change(120.0, State.FAILED)], keep=50, keep_s=30.0)
    assert [at for at, *_ in told(store)] == [*range(90, 100), 120.0]


def test_what_is_not_well_keeps_the_line_that_says_since_when(store: Store) -> None:
    store.health.add_transitions([change(1.0, State.FAILED, "old"), change(2.0, State.FAILED), change(3.0, State.OK)])
    store.health.add_transitions([change(1000.0, State.FAILED, "new")], keep=1, keep_s=10.0)
    assert [(t.component, t.at) for t in store.health.transitions()] == [("old", 1.0), ("new", 1000.0)]
    store.health.add_transitions([change(2000.0, State.OK, "old")], keep=1, keep_s=10.0)
    assert [(t.component, t.at) for t in store.health.transitions()] == [("new", 1000.0), ("old", 2000.0)]


def test_it_can_be_asked_for_a_component_a_time_or_the_newest(store: Store) -> None:
    store.health.add_transitions([change(float(at), State.FAILED, f"g{at % 2}{at}") for at in range(10)])
    store.health.add_transitions([change(20.0, State.OK, "g11")])
    assert told(store, component="g11") == [(1.0, None, State.FAILED), (20.0, State.FAILED, State.OK)]
    assert [at for at, *_ in told(store, since=8.0)] == [8.0, 9.0, 20.0]
    assert [at for at, *_ in told(store, limit=2)] == [9.0, 20.0]


STATES = st.sampled_from([*State])


@settings(max_examples=40)
@given(changes=st.lists(st.tuples(st.sampled_from("ab"), STATES), max_size=12), keep=st.integers(1, 20))
def test_histories_are_chains_and_no_longer_than_they_may_be(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, State]], keep: int
) -> None:
    store = store_at(str(tmp_path_factory.mktemp("store")))
    for at, (component, state) in enumerate(changes):
        store.health.add_transitions([change(float(at), state, component)], keep=keep)
    kept = store.health.transitions()
    assert len(kept) <= keep + 2  # and the last of each component that is not well
    for component in "ab":
        mine = [t for t in kept if t.component == component]
        assert all(b.before is a.after and b.after is not a.after for a, b in pairwise(mine))
    store.close()


# -- racks that share a database --------------------------------------------------------------------------------------


def test_racks_that_share_a_database_keep_what_is_theirs(shared: tuple[Store, Store]) -> None:
    mine, yours = shared
    mine.health.remember({"mine": 1}, now=100.0)
    mine.health.acknowledge(KNOWN)
    window = mine.health.add_window(WINDOW)
    mine.health.add_transitions([change(100.0, State.FAILED)])
    assert (yours.health.memory(), yours.health.acknowledgements(now=0.0), yours.health.windows(now=0.0)) == (
        None,
        (),
        (),
    )
    assert (yours.health.transitions(), yours.health.last_states()) == ((), {})
    assert yours.health.unacknowledge("h1") == 0
    assert not yours.health.end_window(window, now=100.0)
    assert yours.health.add_transitions([change(100.0, State.FAILED)], keep=1)
    assert len(mine.health.transitions()) == 1
    assert mine.health.acknowledgements(now=0.0) == (KNOWN,)
