"""The store: leases with fencing, a journal that shows any change, and states that are certain or say so."""

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from lumctl.devices.types import PucState
from lumctl.errors import RefusedError, UsageError
from lumctl.store import Approval, Lease, LeaseHeldError, LeaseLostError, Record, Store, StoreError, store_at
from lumctl.store.database import open_engine, writing
from lumctl.store.runs import KEEP_UNAPPLIED_S
from lumctl.store.schema import leases

RUN = {"kind": "swap", "target": "sim", "title": "t", "plan_digest": "d", "inventory_digest": "i", "who": "me"}


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()


@pytest.fixture
def in_folder(tmp_path: Path) -> Store:
    return store_at(str(tmp_path / "store"))


def lease_of(store: Store, *, now: float = 100.0, holder: str = "me") -> Lease:
    return store.leases.acquire("r1", holder, term_s=30.0, now=now)


def begin(store: Store, lease: Lease) -> str:
    return store.runs.begin(lease, RUN, {"digest": "d"}, now=100.0)


def record(kind: str, step: str = "1", at: float = 101.0, **data: object) -> Record:
    return Record(at, kind, step, data)


def test_the_newest_number_is_free_once_its_lease_is_released_or_has_expired_outside_a_run(opened):
    store = opened("r1")
    assert store.leases.unheld("r1", now=100.0) == 0
    held = lease_of(store)
    with pytest.raises(LeaseHeldError, match="rack r1 is being changed by me; its lease ends in 25 s"):
        store.leases.unheld("r1", now=105.0)
    assert store.leases.unheld("r1", now=131.0) == 1
    begin(store, held)
    store.leases.renew(held, term_s=30.0, now=131.0)
    store.leases.release(held)
    assert store.leases.unheld("r1", now=132.0) == 1
    assert lease_of(store, now=140.0).fence == 2
    with pytest.raises(LeaseHeldError):
        store.leases.unheld("r1", now=141.0)


def test_a_lease_that_is_held_is_refused_and_names_its_holder(store: Store) -> None:
    lease_of(store)
    with pytest.raises(RefusedError, match="being changed by me; its lease ends in 20 s"):
        lease_of(store, now=110.0, holder="you")


def test_fencing_numbers_only_grow(store: Store) -> None:
    first = lease_of(store)
    store.leases.release(first)
    second = lease_of(store, now=101.0)
    third = lease_of(store, now=200.0)  # the second one ran out
    assert first.fence < second.fence < third.fence


def test_a_holder_whose_lease_was_taken_over_may_write_nothing_more(store: Store) -> None:
    old = lease_of(store)
    run = begin(store, old)
    lease_of(store, now=200.0, holder="you")
    with pytest.raises(RefusedError, match="lost to a newer holder"):
        store.runs.intend(old, run, record("intent", at=201.0))
    assert [e.kind for e in store.journal.of_run(run)] == ["begin"]


def test_numbers_that_came_from_elsewhere_are_given_to_nobody(store: Store) -> None:
    held = lease_of(store)
    assert store.leases.skip("r1", 57, now=101.0, who="gateway") == 58
    assert store.leases.skip("r1", 57, now=101.0, who="gateway") == 58  # a second time it is known
    with pytest.raises(LeaseLostError):
        store.leases.renew(held, term_s=30.0, now=102.0)
    assert lease_of(store, now=200.0).fence == 59
    assert store.leases.skip("r2", 4, now=101.0, who="gateway") == 5
    assert store.leases.acquire("r2", "me", term_s=30.0, now=100.0).fence == 6
    told = [(entry.rack, dict(entry.data)) for entry in store.journal.remarks("leases-skipped")]
    assert told == [("r1", {"who": "gateway", "from": 1, "to": 58}), ("r2", {"who": "gateway", "from": 0, "to": 5})]
    assert store.first_break() is None


def test_who_has_lost_the_lease_begins_no_run(store: Store) -> None:
    old = lease_of(store)
    new = lease_of(store, now=200.0, holder="you")
    run = begin(store, new)
    with pytest.raises(LeaseLostError):
        begin(store, old)
    assert [each.id for each in store.runs.all()] == [run]
    assert store.leases.newest("r1") == new.fence


def test_nor_may_it_close_what_it_began(store: Store) -> None:
    old = lease_of(store)
    run = begin(store, old)
    store.runs.intend(old, run, record("intent"), unsure="mesh")
    lease_of(store, now=200.0, holder="you")
    with pytest.raises(LeaseLostError):
        store.runs.conclude(old, run, record("outcome"), states={"mesh": {0: PucState.BAR}})
    with pytest.raises(LeaseLostError):
        store.runs.end(old, run, record("end"), "done")
    assert store.fabric.device_states("mesh") == {}
    assert store.runs.get(run).state == "running"


def test_a_rollback_that_is_taken_back_puts_its_run_in_force_again(store: Store) -> None:
    lease = lease_of(store)
    swap, rollback, again = (begin(store, lease) for _ in range(3))
    store.runs.end(lease, swap, record("end"), "done")
    store.runs.end(lease, rollback, record("end"), "done", undid=swap)
    assert (store.runs.get(swap).state, store.runs.get(swap).undone_by) == ("undone", rollback)
    store.runs.end(lease, again, record("end"), "done", undid=rollback)
    assert (store.runs.get(swap).state, store.runs.get(swap).undone_by) == ("done", None)


def test_of_each_accelerator_the_newest_finished_run_that_replaced_it(store: Store) -> None:
    lease, names = lease_of(store), {}
    for at, (state, *pairs) in enumerate(
        [("done", ("gpü", "s1")), ("done", ("gpü", "s2"), ("g2", "s3")), ("rolled-back", ("g2", "s1")), ("done",)]
    ):
        replaced = [{"job": '"replacements": [', "rank": 0, "failed": old, "spare": new} for old, new in pairs]
        plan = {"digest": "d", "title": '"replacements": [{"failed": "s1"}]', "replacements": replaced, "steps": ["g2"]}
        names[at] = store.runs.begin(lease, RUN, plan, now=100.0 + at)
        store.runs.end(lease, names[at], record("end"), state)
    found = store.runs.newest_replacements({"gpü", "g2", "s1"})
    assert {name: run.id for name, run in found.items()} == {"gpü": names[1], "g2": names[1]}
    assert store.runs.newest_replacements(()) == {}


def test_a_database_url_gives_the_same_guarantees(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    mine, yours = store_at(url, files=tmp_path), store_at(url, files=tmp_path)
    lease_of(mine)
    with pytest.raises(RefusedError, match="being changed by me"):
        lease_of(yours, now=101.0, holder="you")
    assert lease_of(yours, now=200.0, holder="you").fence == 2


def test_a_device_is_uncertain_between_intent_and_outcome(store: Store) -> None:
    lease = lease_of(store)
    run = begin(store, lease)
    states = {0: PucState.BAR, 1: PucState.CROSS}
    store.runs.conclude(lease, run, record("outcome"), states={"mesh": states})
    assert store.fabric.device_states("mesh") == states
    store.runs.intend(lease, run, record("intent"), unsure="mesh")
    assert store.fabric.device_states("mesh") == {}
    assert store.fabric.uncertain_since("mesh") == run


def test_assignment_is_replaced_job_by_job(store: Store) -> None:
    lease = lease_of(store)
    run = begin(store, lease)
    store.runs.conclude(lease, run, record("outcome"), placed={"a": ("x", "y"), "b": ("z",)})
    store.runs.conclude(lease, run, record("outcome"), placed={"a": ("x", "w")})
    assert store.fabric.assignment() == {"a": ("x", "w"), "b": ("z",)}


def test_what_is_written_is_there_for_another_process(store: Store, opened: Callable[..., Store]) -> None:
    lease = lease_of(store)
    run = begin(store, lease)
    other = opened()
    assert other.runs.get(run).who == "me"
    with pytest.raises(RefusedError):
        lease_of(other, now=101.0, holder="you")


def test_the_database_is_private_to_its_owner(in_folder: Store, tmp_path: Path) -> None:
    begin(in_folder, lease_of(in_folder))
    for file in (tmp_path / "store").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_an_unknown_run_names_the_nearest_one(store: Store) -> None:
    begin(store, lease_of(store))
    with pytest.raises(UsageError) as error:
        store.runs.get("swap-001")
    assert error.value.hint == "did you mean swap-0001?"


def test_a_store_that_cannot_be_made_says_where_and_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UsageError, match="cannot be opened") as error:
        store_at(str(tmp_path / "file"))
    assert "LUMCTL_STATE" in str(error.value.hint)


def test_a_store_of_a_newer_version_is_refused(in_folder: Store, tmp_path: Path) -> None:
    in_folder.close()
    with sqlite3.connect(tmp_path / "store" / "lumctl.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(RefusedError, match="schema 99"):
        store_at(str(tmp_path / "store"))


def test_a_database_that_is_locked_too_long_is_a_domain_error(
    in_folder: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumctl.store.sqlite.BUSY_TIMEOUT_S", 0.05)
    impatient = store_at(str(tmp_path / "store"))
    blocker = sqlite3.connect(tmp_path / "store" / "lumctl.db")
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="its lock is held by this process itself"):
        lease_of(impatient)
    assert impatient.runs.all() == ()  # reading never waits for a writer
    blocker.close()
    assert lease_of(in_folder).fence == 1


def journal_of_three(folder: Path) -> Store:
    store = store_at(str(folder))
    lease = lease_of(store)
    run = begin(store, lease)
    store.runs.intend(lease, run, record("intent", cells=3))
    store.runs.end(lease, run, record("end"), "done")
    return store


def test_an_untouched_journal_has_no_break(tmp_path: Path) -> None:
    assert journal_of_three(tmp_path).first_break() is None


@settings(max_examples=40, deadline=None)
@given(
    seq=st.integers(1, 3), column=st.sampled_from(["run", "at", "kind", "step", "data", "fence", "previous", "hash"])
)
def test_any_changed_entry_is_found(tmp_path_factory: pytest.TempPathFactory, seq: int, column: str) -> None:
    folder = tmp_path_factory.mktemp("journal")
    store = journal_of_three(folder)
    with sqlite3.connect(folder / "lumctl.db") as database:
        changed = "at + 1" if column == "at" else "fence + 1" if column == "fence" else f"{column} || 'x'"
        database.execute(f"UPDATE journal SET {column} = {changed} WHERE seq = ?", (seq,))  # noqa: S608
    found = store.first_break()
    store.close()
    assert found is not None
    assert found.seq in {seq, seq + 1}


@pytest.mark.parametrize("seq", [1, 2])
def test_a_missing_entry_is_found(tmp_path: Path, seq: int) -> None:
    store = journal_of_three(tmp_path)
    with sqlite3.connect(tmp_path / "lumctl.db") as database:
        database.execute("DELETE FROM journal WHERE seq = ?", (seq,))
    found = store.first_break()
    assert found is not None
    assert found.seq == seq


def test_nobody_gives_back_another_s_lease(store: Store) -> None:
    old = lease_of(store)
    lease_of(store, now=200.0, holder="you")
    store.leases.release(old)
    with pytest.raises(RefusedError, match="being changed by you"):
        lease_of(store, now=201.0)


def test_a_lease_of_another_rack_is_not_given_back_either(store: Store) -> None:
    mine = lease_of(store)
    store.leases.acquire("r2", "you", term_s=30.0, now=100.0)
    store.leases.release(mine)
    with pytest.raises(RefusedError, match="rack r2 is being changed by you"):
        store.leases.acquire("r2", "me", term_s=30.0, now=101.0)


def test_a_renewed_lease_lasts_longer_and_one_that_was_lost_is_not_renewed(store: Store) -> None:
    mine = lease_of(store)
    store.leases.renew(mine, term_s=30.0, now=120.0)
    with pytest.raises(RefusedError, match="its lease ends in 9 s"):
        lease_of(store, now=141.0, holder="you")
    lease_of(store, now=151.0, holder="you")
    with pytest.raises(LeaseLostError):
        store.leases.renew(mine, term_s=30.0, now=152.0)


# -- clocks that are set ----------------------------------------------------------------------------------------------


def test_a_lease_from_before_the_clock_was_set_back_is_stuck_for_one_term_only(store: Store) -> None:
    dead = lease_of(store, now=10_000.0)
    for now, ends in ((100.0, 30), (120.0, 10), (129.0, 1)):
        with pytest.raises(LeaseHeldError, match=f"being changed by me; its lease ends in {ends} s"):
            lease_of(store, now=now, holder="you")
    assert lease_of(store, now=130.0, holder="you").fence == dead.fence + 1


def test_its_holder_keeps_it_if_it_is_alive(store: Store) -> None:
    alive = lease_of(store, now=10_000.0)
    with pytest.raises(LeaseHeldError):
        lease_of(store, now=100.0, holder="you")
    store.leases.renew(alive, term_s=30.0, now=110.0)
    with pytest.raises(LeaseHeldError, match="ends in 9 s"):
        lease_of(store, now=131.0, holder="you")


def test_who_asks_for_a_shorter_one_does_not_shorten_it(store: Store) -> None:
    held = lease_of(store, now=100.0)
    for holder in ("me", "you"):
        with pytest.raises(LeaseHeldError, match="ends in 29 s"):
            store.leases.acquire(held.rack, holder, term_s=1.0, now=101.0)
    with pytest.raises(LeaseHeldError, match="ends in 1 s"):
        store.leases.acquire(held.rack, "you", term_s=1.0, now=129.0)
    assert store.leases.acquire(held.rack, "you", term_s=1.0, now=130.0).fence == held.fence + 1


def test_nor_does_it_hide_a_run_that_was_cut(store: Store) -> None:
    run = begin(store, lease_of(store, now=10_000.0))
    assert store.runs.unfinished(now=100.0) == (run,)
    assert store.runs.unfinished(now=10_001.0) == ()


def test_numbers_go_on_where_a_lease_was_taken_out_of_the_database(store: Store) -> None:
    lease = lease_of(store)
    begin(store, lease)
    store.leases.release(lease)
    with writing(store._engine) as connection:
        connection.execute(delete(leases))
    assert lease_of(store).fence == lease.fence + 1


# -- remarks ----------------------------------------------------------------------------------------------------------


def test_what_belongs_to_no_run_is_remarked_in_the_same_chain(opened: Callable[..., Store]) -> None:
    mine, yours = opened("r1"), opened("r2")
    mine.journal.remark("decision", {"act": "nothing"}, at=1.0, who="watch")
    run = begin(mine, lease_of(mine))
    entry = mine.journal.remark("autopilot", {"state": "stopped"}, at=2.0, who="ops@console")
    yours.journal.remark("decision", {}, at=3.0, who="watch")
    assert (entry.seq, entry.run, entry.fence) == (3, "", 0)
    assert entry.data == {"state": "stopped", "who": "ops@console"}
    assert [e.kind for e in mine.journal.remarks()] == ["decision", "autopilot"]
    assert mine.journal.remarks(since=1.5) == mine.journal.remarks("autopilot") == (entry,)
    assert [e.kind for e in mine.journal.of_run(run)] == ["begin"]
    assert [e.seq for e in yours.journal.remarks()] == [1]
    assert (mine.first_break(), yours.first_break()) == (None, None)
    assert (mine.journal.head().count, yours.journal.head().count) == (3, 1)


def test_racks_that_share_a_database_do_not_see_each_other_s_runs(opened: Callable[..., Store]) -> None:
    stores = {rack: opened(rack) for rack in ("r1", "r2")}
    for rack, store in stores.items():
        lease = store.leases.acquire(rack, "me", term_s=30.0, now=100.0)
        run = begin(store, lease)
        store.runs.conclude(lease, run, record("outcome"), states={"mesh": {0: rack}}, placed={"job": (rack,)})
        store.runs.save_plan({"id": "plan-1", "digest": rack, "created_at": 1.0, "target": "rack"})
        if rack == "r1":
            store.runs.intend(lease, run, record("intent"), unsure="mesh")
            store.runs.doubt("mesh", run)
    mine, yours = stores["r1"], stores["r2"]
    assert [run.rack for run in yours.runs.all()] == ["r2"]
    assert (mine.fabric.assignment(), yours.fabric.assignment()) == ({"job": ("r1",)}, {"job": ("r2",)})
    assert (mine.fabric.device_cells("mesh"), yours.fabric.device_cells("mesh")) == ({}, {0: "r2"})
    assert (mine.fabric.uncertain_since("mesh"), yours.fabric.uncertain_since("mesh")) == ("swap-0001", None)
    assert mine.runs.plan("plan-1")["digest"] == "r1"
    assert len(mine.journal.of_run("swap-0001")) == 3
    assert len(yours.journal.of_run("swap-0001")) == 2
    assert [run.rack for run in mine.runs.moves(since=100.0, now=100.0)] == ["r1"]
    assert mine.runs.unfinished(now=131.0) == yours.runs.unfinished(now=131.0) == ("swap-0001",)


def test_a_plan_that_is_not_applied_is_deleted_in_the_end_unless_its_approval_is_open(opened) -> None:
    store, other = opened("r1"), opened("r2")
    lease = lease_of(store)
    old = {"created_at": 1.0, "target": "rack"}
    for each in (store, other):
        each.runs.save_plan({**old, "id": "plan-1", "digest": "never-applied"})
    store.runs.save_plan({**old, "id": "plan-2", "digest": RUN["plan_digest"]})
    begin(store, lease)
    store.runs.save_plan({**old, "id": "plan-3", "digest": "asked"})
    ends = 2.0 + KEEP_UNAPPLIED_S + 60
    store.approvals.ask(Approval("r1", "asked", "policy", "ann", 1.0, ends, by_another=False))
    for number, at in enumerate((1.0 + KEEP_UNAPPLIED_S, 2.0 + KEEP_UNAPPLIED_S, ends)):
        store.runs.save_plan({"id": f"plan-new{number}", "digest": f"new{number}", "created_at": at, "target": "rack"})
        kept = {name for name in store.runs.plan_ids() if "new" not in name}
        assert kept == [{"plan-1", "plan-2", "plan-3"}, {"plan-2", "plan-3"}, {"plan-2"}][number]
    assert other.runs.plan_ids() == ("plan-1",)


def test_every_connection_waits_until_a_commit_is_on_disk(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "store")
    for _ in range(2):
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        engine.dispose()


def test_runs_that_were_cut_or_left_half_done_are_unfinished(store: Store) -> None:
    ended = {}
    for state in ("done", "refused", "rolled-back", "half-done", "undone"):
        lease = lease_of(store)
        ended[state] = begin(store, lease)
        store.runs.end(lease, ended[state], record("end"), state)
        store.leases.release(lease)
    assert store.runs.unfinished(now=101.0) == (ended["half-done"],)
    cut = begin(store, lease_of(store))
    assert store.runs.unfinished(now=129.0) == (ended["half-done"],)  # its lease has not ended: it may be at work
    assert store.runs.unfinished(now=131.0) == (ended["half-done"], cut)


def test_a_run_that_was_cut_is_unfinished_while_another_is_at_work(store: Store) -> None:
    cut = begin(store, lease_of(store))
    at_work = begin(store, lease_of(store, now=200.0))
    assert store.runs.unfinished(now=201.0) == (cut,)
    assert store.runs.unfinished(now=231.0) == (cut, at_work)
