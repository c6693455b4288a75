"""Who may write: the newest lease, and nobody beside it."""

import threading

import pytest

from lumctl.devices.errors import DeviceRefusedError, StaleFenceError
from lumctl.errors import LumctlError
from lumctl.gateway.fencing import Fence
from lumctl.gateway.highest import Highest
from lumctl.gateway.newest import Newest

WITHIN_S = 10.0


class Rack:
    """A fence with a store that a test may change, or take away."""

    def __init__(self, folder):
        self.newest = 1
        self.said = []
        self.path = folder / "gateway.fence"
        self.restart()

    def restart(self):
        self.fence = Fence("r1", lambda: self.newest, Highest(self.path, self.said.append))

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
    with pytest.raises(DeviceRefusedError, match="lease 9 of rack r1 is not in the gateway's store, which knows 1"):
        rack.write(9)
    rack.write(1)


def test_without_a_number_nothing_is_written(rack):
    with pytest.raises(DeviceRefusedError, match="without the number of a lease; nothing was sent"):
        rack.write(None)


def test_an_old_copy_of_the_store_does_not_bring_old_numbers_back(rack):
    rack.newest = 5
    rack.write(5)
    rack.newest = 3
    with pytest.raises(StaleFenceError, match="although the store knows no newer one") as refused:
        rack.write(3)
    assert str(rack.path) in refused.value.hint


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
    highest = Highest(tmp_path / "gone" / "gateway.fence", said.append)
    highest.raise_to(4)
    highest.raise_to(3)
    assert highest.number == 4
    assert len(said) == 1
    assert "cannot be written: No such file or directory; lease 4 is remembered until the end" in said[0]


@pytest.mark.parametrize("content", [b"", b"many", b"\xff\xfe", b"9" * 20 + b"\n" + b"x" * 50])
def test_a_spoiled_file_is_told_and_no_obstacle(tmp_path, content):
    said, path = [], tmp_path / "gateway.fence"
    path.write_bytes(content)
    assert Highest(path, said.append).number == 0
    assert "cannot be read" in said[0]


def test_a_store_that_fails_is_told_once_and_told_when_it_is_back():
    said, answers = [], [3, LumctlError("it is gone"), LumctlError("it is gone"), 4]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    newest = Newest(read, said.append)
    assert [newest(), newest(), newest(), newest()] == [3, None, None, 4]
    assert said == ["it is gone; the highest lease seen decides", "the store can be read again"]


@pytest.mark.parametrize(("takes_s", "asked"), [(0.5, 2), (5.0, 1)])
def test_a_store_that_fails_slowly_is_left_alone_for_a_while(takes_s, asked):
    times, reads = [0.0], []

    def read():
        reads.append(times[0])
        times[0] += takes_s
        raise OSError("no route")

    newest = Newest(read, lambda _: None, clock=lambda: times[0])
    assert newest() is None
    assert newest() is None
    assert len(reads) == asked
    times[0] += 15.0
    assert newest() is None
    assert len(reads) == asked + 1
