"""Who may write: the newest lease, and nobody beside it."""

import os
import stat
import threading

import pytest

from lumctl.daemon.gateway import fencing
from lumctl.daemon.gateway.fencing import MOST_UNTOLD, Fence, HighestLease, NewestLease
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError, StaleFenceError
from lumctl.errors import LumctlError

WITHIN_S = 10.0


class Rack:
    """A fence with a store that a test may change, or take away."""

    def __init__(self, folder):
        self.newest = 1
        self.may_only_be_read = False
        self.said = []
        self.path = folder / "gateway.fence"
        self.restart()

    def restart(self):
        self.fence = Fence("r1", lambda: self.newest, self.shut_out, HighestLease(self.path, self.said.append))

    def shut_out(self, number):
        """As the store does it, unless it may only be read."""
        if self.may_only_be_read:
            return None
        self.newest = max(self.newest, number + 1)
        return self.newest

    def write(self, number):
        with self.fence.writing(number):
            pass


@pytest.fixture
def rack(tmp_path):
    return Rack(tmp_path)


def test_the_newest_lease_writes_as_often_as_it_likes(rack):
    rack.write(1)
    rack.write(1)
    rack.newest = 2
    rack.write(2)
    assert rack.fence.highest == 2


def test_a_lease_that_the_store_knows_to_be_followed_writes_no_more(rack):
    rack.write(1)
    rack.newest = 2
    with pytest.raises(StaleFenceError, match=r"lease 1 of rack r1 was followed by 2: .* nothing was sent"):
        rack.write(1)


@pytest.mark.parametrize("restart", [False, True])
def test_without_the_store_the_highest_number_seen_decides(rack, restart):
    rack.newest = 7
    rack.write(7)
    rack.newest = None
    if restart:
        rack.restart()
    rack.write(7)
    rack.write(8)
    with pytest.raises(StaleFenceError):
        rack.write(7)
    assert rack.path.read_text() == "8\n"


def test_a_number_that_no_lease_has_is_refused_and_not_remembered(rack):
    with pytest.raises(
        DeviceRefusedError, match="lease 9 of rack r1 is not in the gateway's store, whose newest lease is 1"
    ):
        rack.write(9)
    rack.write(1)


def test_without_a_number_nothing_is_written(rack):
    with pytest.raises(DeviceRefusedError, match="no lease number; nothing was sent"):
        rack.write(None)


def test_an_old_copy_of_the_store_does_not_bring_old_numbers_back(rack):
    rack.newest = 5
    rack.write(5)
    rack.newest, rack.may_only_be_read = 3, True
    with pytest.raises(StaleFenceError, match="; the store contains no newer lease and cannot record it"):
        rack.write(3)
    rack.may_only_be_read = False
    for number in (3, 4, 5):
        with pytest.raises(StaleFenceError, match=f"lease {number} of rack r1 was followed by 6"):
            rack.write(number)
    rack.newest = 7  # the next lease that the store gives
    rack.write(7)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("looks", [False, True])
def test_a_number_that_no_lease_has_locks_nobody_out_once_the_store_is_back(rack, restart, looks):
    rack.newest = 5
    rack.write(5)
    rack.newest = None
    rack.fence.look(57) if looks else rack.write(57)
    with pytest.raises(StaleFenceError):
        rack.write(5)
    rack.newest = 5
    if restart:
        rack.restart()
    rack.fence.settle()
    for number in (5, 57):
        with pytest.raises(StaleFenceError, match="was followed by 58"):
            rack.write(number)
    rack.newest = 59
    rack.write(59)


def test_a_store_that_has_been_settled_with_is_not_asked_again(rack):
    rack.fence.settle()
    rack.newest = 0
    rack.fence.settle()
    assert rack.newest == 0
    rack.fence.look(0)
    rack.newest = None
    rack.write(2)
    rack.newest = 1
    rack.fence.settle()
    assert rack.newest == 3


@pytest.mark.parametrize("number", [MOST_UNTOLD + 2, 2**40])
def test_a_number_far_above_any_that_was_given_is_not_believed_while_the_store_is_gone(rack, number):
    rack.write(1)
    rack.newest = None
    rack.fence.look(number)
    with pytest.raises(DeviceRefusedError, match="far above 1, the highest known one, and the store cannot be read"):
        rack.write(number)
    rack.write(1)


def test_a_look_under_a_newer_lease_waits_for_the_writes_of_an_older_one_and_shuts_it_out(rack):
    began, goes_on, order = threading.Event(), threading.Event(), []

    def old():
        with rack.fence.writing(1):
            began.set()
            goes_on.wait(WITHIN_S)
            order.append("old")

    def new():
        rack.fence.look(2)
        order.append("look")

    threads = [threading.Thread(target=old), threading.Thread(target=new)]
    threads[0].start()
    assert began.wait(WITHIN_S)
    rack.newest = 2
    for number in (None, 1, 9):
        rack.fence.look(number)  # nobody waits who holds no newer lease
    threads[1].start()
    while rack.fence.highest < 2:
        threads[1].join(0.001)
    rack.newest = None
    with pytest.raises(StaleFenceError):
        rack.write(1)
    assert order == []
    goes_on.set()
    for thread in threads:
        thread.join(WITHIN_S)
    assert order == ["old", "look"]


def test_a_look_does_not_wait_for_ever(rack, monkeypatch):
    monkeypatch.setattr(fencing, "LOOKS_WITHIN_S", 0.01)
    with rack.fence.writing(1):
        rack.newest = 2
        with pytest.raises(DeviceUnreachableError, match=r"r1 than 2 is still being sent; nothing was read"):
            rack.fence.look(2)


def test_a_write_that_is_being_sent_ends_before_one_of_a_newer_lease_begins(rack):
    began, goes_on, order = threading.Event(), threading.Event(), []

    def old():
        with rack.fence.writing(1):
            began.set()
            goes_on.wait(WITHIN_S)
            order.append("old")

    def new():
        with rack.fence.writing(2):
            order.append("new")

    threads = [threading.Thread(target=old), threading.Thread(target=new)]
    threads[0].start()
    assert began.wait(WITHIN_S)
    rack.newest = 2
    threads[1].start()
    # The number is seen as soon as the new write waits: from then on the old lease begins nothing more.
    while rack.fence.highest < 2:
        threads[1].join(0.001)
    with pytest.raises(StaleFenceError):
        rack.write(1)
    assert order == []
    goes_on.set()
    for thread in threads:
        thread.join(WITHIN_S)
    assert order == ["old", "new"]


def test_a_write_that_waited_is_refused_when_a_newer_lease_came_meanwhile(rack):
    began, goes_on, refused = threading.Event(), threading.Event(), []

    def first():
        with rack.fence.writing(1):
            began.set()
            goes_on.wait(WITHIN_S)

    def second():
        try:
            rack.write(2)
        except StaleFenceError as error:
            refused.append(error.message)

    def third():
        rack.write(3)

    threads = [threading.Thread(target=each) for each in (first, second, third)]
    threads[0].start()
    assert began.wait(WITHIN_S)
    for number, thread in ((2, threads[1]), (3, threads[2])):
        rack.newest = number
        thread.start()
        while rack.fence.highest < number:
            thread.join(0.001)
    goes_on.set()
    for thread in threads:
        thread.join(WITHIN_S)
    assert len(refused) == 1


def test_a_write_that_waited_asks_the_store_again(rack):
    began, goes_on, refused = threading.Event(), threading.Event(), []

    def first():
        with rack.fence.writing(1):
            began.set()
            goes_on.wait(WITHIN_S)

    def second():
        try:
            rack.write(2)
        except StaleFenceError as error:
            refused.append(error.message)

    threads = [threading.Thread(target=each) for each in (first, second)]
    threads[0].start()
    assert began.wait(WITHIN_S)
    rack.newest = 2
    threads[1].start()
    while rack.fence.highest < 2:
        threads[1].join(0.001)
    rack.newest = 3  # given meanwhile, and its holder has not come to the gateway yet
    goes_on.set()
    for thread in threads:
        thread.join(WITHIN_S)
    assert len(refused) == 1
    assert refused[0].startswith("lease 2 of rack r1 was followed by 3")


def test_writes_of_one_lease_go_side_by_side(rack):
    both = threading.Barrier(2, timeout=WITHIN_S)
    met = []

    def write():
        with rack.fence.writing(1):
            met.append(both.wait())

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN_S)
    assert sorted(met) == [0, 1]


def test_the_end_waits_for_what_is_being_sent_and_lets_nothing_more_through(rack):
    with rack.fence.writing(1):
        assert not rack.fence.end(0.0)
        with pytest.raises(DeviceRefusedError, match="is ending; nothing was sent"):
            rack.write(1)
    assert rack.fence.end(0.0)


def test_a_number_that_cannot_be_kept_holds_until_the_end_and_is_told(tmp_path):
    said = []
    highest = HighestLease(tmp_path / "gone" / "gateway.fence", said.append)
    highest.raise_to(4)
    highest.raise_to(3)
    assert highest.number == 4
    assert len(said) == 1
    assert "cannot be written: No such file or directory; lease 4 is remembered only until the gateway ends" in said[0]


def test_the_number_is_its_owner_s_alone_and_written_through_no_link(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "gateway.fence"
    precious.write_text("keep this")
    (tmp_path / "gateway.fence.new").symlink_to(precious)
    before = os.umask(0)
    try:
        HighestLease(path, print).raise_to(7)
    finally:
        os.umask(before)
    assert HighestLease(path, print).number == 7
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert precious.read_text() == "keep this"


@pytest.mark.parametrize("content", [b"", b"many", b"\xff\xfe", b"9" * 20 + b"\n" + b"x" * 50, b"9" * 20, b"-1"])
def test_a_spoiled_file_is_told_and_no_obstacle(tmp_path, content):
    said, path = [], tmp_path / "gateway.fence"
    path.write_bytes(content)
    assert HighestLease(path, said.append).number == 0
    assert "cannot be read" in said[0]


def test_a_store_that_fails_is_told_once_and_told_when_it_is_back():
    said, answers = [], [3, LumctlError("it is gone"), LumctlError("it is gone"), 4]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    newest = NewestLease(read, pytest.fail, said.append)
    assert [newest(), newest(), newest(), newest()] == [3, None, None, 4]
    assert said == ["it is gone; the highest lease seen decides", "the store can be read again"]


@pytest.mark.parametrize(("takes_s", "asked"), [(0.5, 2), (5.0, 1)])
def test_a_store_that_fails_slowly_is_left_alone_for_a_while(takes_s, asked):
    times, reads = [0.0], []

    def read():
        reads.append(times[0])
        times[0] += takes_s
        raise OSError("no route")

    newest = NewestLease(read, pytest.fail, lambda _: None, clock=lambda: times[0])
    assert newest() is None
    assert newest() is None
    assert len(reads) == asked
    times[0] += 15.0
    assert newest() is None
    assert len(reads) == asked + 1


def test_a_store_that_is_told_of_a_number_tells_so_and_one_that_cannot_be_written_is_told_once():
    said, answers = [], [LumctlError("it is full"), LumctlError("it is full"), 8]

    def raise_above(number):
        assert number == 7
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    newest = NewestLease(pytest.fail, raise_above, said.append)
    assert [newest.shut_out(7), newest.shut_out(7), newest.shut_out(7)] == [None, None, 8]
    assert said[:2] == ["it is full; no lease up to 7 may write", "the store can be written again"]
    assert said[2].startswith("lease 7 was presented to the gateway, but the store does not contain it")
    assert len(said) == 3


@pytest.mark.parametrize("number", [0, -1])
def test_what_no_lease_has_writes_nothing_even_before_there_was_any(rack, number):
    rack.newest = 0
    with pytest.raises(DeviceRefusedError, match="nothing was sent"):
        rack.write(number)
