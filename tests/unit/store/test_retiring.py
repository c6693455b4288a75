"""A store that was moved away from gives no lease any more, and the numbers of the two never meet."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from lumctl.daemon.gateway.fencing import Fence, HighestLease
from lumctl.errors import RefusedError
from lumctl.store import LeaseLostError, Record, Store, StoreError, store_at, transfer
from lumctl.store.database import shown
from lumctl.store.transfer import Retirement, copy

NOW = 100.0
RUN = {"kind": "swap", "target": "rack", "title": "t", "inventory_digest": "i", "who": "me", "plan_digest": "d" * 64}
PLAN = {"schema": "x", "rack": "r1", "digest": "d" * 64}
RETIRE = Retirement("ops@console")
CLOCKS = (0.0, NOW, time.time(), 1e12)


def digest(document: object) -> str:
    del document
    return PLAN["digest"]


def ran(store: Store) -> None:
    lease = store.leases.acquire("r1", "me", term_s=30.0, now=NOW)
    run = store.runs.begin(lease, RUN, PLAN, now=NOW)
    store.runs.end(lease, run, Record(NOW + 2, "end", "", {"state": "done"}), "done")
    store.leases.release(lease)


def moved(source: str, target: str, retire: Retirement | None = RETIRE) -> transfer.Copied:
    return copy(source, target, "r1", digest=digest, now=NOW + 3, retire=retire)


@pytest.mark.parametrize("back", [False, True], ids=["from a folder", "to a folder"])
def test_the_old_store_gives_no_lease_by_any_clock(
    place: str, folder: str, opening: Callable[..., Store], *, back: bool
) -> None:
    source, target = (place, folder) if back else (folder, place)
    old = opening(source)
    ran(old)
    before = old.journal.head()
    done = moved(source, target)
    assert (done.head, done.was_there) == (before, False)
    there = old.leases.moved_to("r1")
    assert there == shown(target)
    for now in CLOCKS:
        with pytest.raises(RefusedError, match=r"the store of rack r1 was moved to .*; the one here is retired") as no:
            old.leases.acquire("r1", "me", term_s=30.0, now=now)
        assert f"write `store: {there}` under racks, r1 in the inventory" in str(no.value.hint)
    assert (old.runs.unfinished(now=NOW), old.runs.moves(since=NOW + 3, now=NOW + 3)) == ((), ())
    (said,) = old.journal.remarks("retired")
    number = old.leases.newest("r1")
    assert dict(said.data) == {"who": "ops@console", "to": there, "from": 1, "lease": number}
    assert (said.seq, said.fence) == (before.seq + 1, number)
    assert old.verify(digest) == old.verify(digest, before) == ()
    new = opening(target)
    assert (new.journal.head(), new.leases.moved_to("r1"), new.verify(digest, before)) == (before, None, ())
    assert new.leases.acquire("r1", "me", term_s=30.0, now=NOW + 3).fence > number


def test_whoever_held_a_lease_of_the_old_store_has_lost_it(
    place: str, folder: str, opening: Callable[..., Store]
) -> None:
    old = opening(folder)
    lease = old.leases.acquire("r1", "me", term_s=1.0, now=NOW)
    moved(folder, place)  # its engine stood still, and its lease has ended meanwhile
    for late in (
        lambda: old.leases.renew(lease, term_s=30.0, now=NOW + 4),
        lambda: old.runs.begin(lease, RUN, PLAN, now=NOW + 4),
    ):
        with pytest.raises(LeaseLostError, match=r"was lost to a newer holder, the move of its store to "):
            late()
    old.leases.release(lease)
    assert old.leases.skip("r1", 50, now=NOW, who="gateway") == 51  # a gateway that still uses it
    assert old.leases.moved_to("r1") is not None
    with pytest.raises(RefusedError, match="is retired"):
        old.leases.acquire("r1", "me", term_s=30.0, now=NOW + 60)


def test_a_rack_that_never_had_a_lease_can_be_moved(place: str, folder: str, opening: Callable[..., Store]) -> None:
    old = opening(folder)
    old.journal.remark("said", {}, at=NOW, who="me")
    moved(folder, place)
    assert (old.leases.newest("r1"), old.verify(digest)) == (1, ())
    assert opening(place).leases.acquire("r1", "me", term_s=30.0, now=NOW + 3).fence > 1


def gateway(store: Store, file: Path, told: list[str]) -> Fence:
    def shut_out(number: int) -> int:
        told.append(f"shut out up to {number}")
        return store.leases.skip("r1", number, now=NOW, who="gateway")

    return Fence("r1", lambda: store.leases.newest("r1"), shut_out, HighestLease(file, told.append))


def test_a_gateway_lets_nobody_through_by_the_old_store_and_the_next_lease_by_the_new(
    place: str, folder: str, opening: Callable[..., Store], tmp_path: Path
) -> None:
    old, file, told = opening(folder), tmp_path / "gateway.fence", list[str]()
    ran(old)
    file.write_text("7\n")  # seen while the store could not be read
    moved(folder, place, Retirement("ops", seen=7))
    new = opening(place)
    lease = new.leases.acquire("r1", "me", term_s=30.0, now=NOW + 3)
    stale = gateway(old, file, told)
    for number in (1, 7, lease.fence):
        with pytest.raises(Exception, match="nothing was sent"), stale.writing(number):
            pytest.fail(f"{number} was let through")
    assert stale.highest == old.leases.newest("r1") == 8
    with gateway(new, file, told).writing(lease.fence):
        pass
    assert told == []
    new.leases.renew(lease, term_s=30.0, now=NOW + 4)


def test_an_earlier_copy_will_do_if_it_goes_on_from_the_end(
    place: str, folder: str, opening: Callable[..., Store]
) -> None:
    old, new = opening(folder), opening(place)
    ran(old)
    head = moved(folder, place, None).head
    assert old.leases.moved_to("r1") is None
    new.journal.remark("said", {}, at=NOW, who="me")
    lease = new.leases.acquire("r1", "me", term_s=30.0, now=NOW)
    with pytest.raises(RefusedError, match="rack r1 is being changed by me"):
        moved(folder, place)
    new.leases.release(lease)
    done = moved(folder, place)
    assert (done.head, done.was_there, old.leases.moved_to("r1") is not None) == (head, True, True)
    assert new.leases.acquire("r1", "me", term_s=30.0, now=NOW + 5).fence > old.leases.newest("r1") > lease.fence


def test_an_old_store_that_was_used_since_is_not_retired(
    place: str, folder: str, opening: Callable[..., Store]
) -> None:
    old = opening(folder)
    ran(old)
    moved(folder, place, None)
    old.journal.remark("said", {}, at=NOW, who="me")
    with pytest.raises(RefusedError, match=r"already contains .* of rack r1"):
        moved(folder, place)
    assert old.leases.acquire("r1", "me", term_s=30.0, now=NOW + 5).fence == 2


def test_a_retired_store_is_moved_no_more_and_nothing_is_moved_to_it(
    place: str, folder: str, opening: Callable[..., Store], tmp_path: Path
) -> None:
    old = opening(folder)
    ran(old)
    moved(folder, place)
    for retire in (RETIRE, None):
        with pytest.raises(RefusedError, match="the store of rack r1 was moved to"):
            moved(folder, str(tmp_path / "third"), retire)
        with pytest.raises(RefusedError, match=r"the store at .*old was retired when rack r1 was moved to"):
            moved(place, folder, retire)
    assert not opening(str(tmp_path / "third")).journal.head().count
    moved(place, str(tmp_path / "back"))
    assert opening(str(tmp_path / "back")).leases.acquire("r1", "me", term_s=30.0, now=NOW + 5).fence > 4


def test_the_old_store_is_closed_after_the_new_one_is_on_disk(
    emptied: str, folder: str, opening: Callable[..., Store], full_disk: Callable[..., AbstractContextManager[None]]
) -> None:
    old = opening(folder)
    ran(old)
    with full_disk(), pytest.raises(StoreError, match=r"the copy at .* is complete, but .*old was not retired") as half:
        moved(folder, emptied)
    assert half.value.hint == "run it again with --retire: the existing copy is used"
    assert old.leases.moved_to("r1") is None
    assert opening(emptied).verify(digest, old.journal.head()) == ()
    assert moved(folder, emptied).was_there
    assert old.leases.moved_to("r1") is not None


def test_where_the_copy_cannot_be_made_the_old_store_stays_in_use(
    folder: str, opening: Callable[..., Store], tmp_path: Path, full_disk: Callable[..., AbstractContextManager[None]]
) -> None:
    old, target = opening(folder), str(tmp_path / "new")
    ran(old)
    new = opening(target)
    with full_disk(), pytest.raises(StoreError, match="is not writable"):
        moved(folder, target)
    assert (old.leases.moved_to("r1"), new.journal.head().count) == (None, 0)
    assert old.leases.acquire("r1", "me", term_s=30.0, now=NOW + 5).fence == 2


def test_a_store_that_cannot_be_written_is_not_copied_to_be_retired(
    place: str, folder: str, opening: Callable[..., Store], full_disk: Callable[..., AbstractContextManager[None]]
) -> None:
    with closing(store_at(folder, rack="r1")) as old:
        ran(old)
    new = opening(place)
    with full_disk(), pytest.raises(StoreError, match=r"so it cannot be retired: .*; nothing was copied"):
        moved(folder, place)
    assert new.journal.head().count == 0
