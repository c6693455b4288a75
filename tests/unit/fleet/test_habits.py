"""Which probes are expected to say something new, from what they said."""

import pytest

from lumctl.fleet.frames import Frame, FrameMark
from lumctl.fleet.host_requests import Habits
from lumctl.fleet.probes import Probe, probes_for

PROBES = tuple(
    Probe(name, lane, command, 1.0, 0.0, lambda *_: None, lambda *_: None)
    for name, lane, command in (
        ("run", "a", "run tool"),
        ("other", "a", "run sudo -n tool"),
        ("grow", "a", "grow x tool"),
        ("files", "a", "files /x"),
        ("here", "", "run tool"),
    )
)
RUN, OTHER, GROW, FILES, HERE = range(5)


@pytest.fixture
def habits():
    return Habits(PROBES)


def say(habits, *bodies, probe=RUN, mark=FrameMark.WHOLE, direct=False):
    for body in bodies:
        habits.heard(Frame(mark, probe, 1, 0, body), direct=direct)


def test_three_new_ones_running(habits):
    for body in (b"1", b"2"):
        say(habits, body)
        assert not habits.restless(RUN)
    say(habits, b"3")
    assert habits.restless(RUN)
    assert not habits.restless(OTHER)


@pytest.mark.parametrize("mark", [FrameMark.SAME, FrameMark.MORE, FrameMark.LOST])
def test_what_the_host_found_to_be_no_new_one_counts_from_the_beginning(habits, mark):
    say(habits, b"1", b"2", b"3")
    say(habits, b"", mark=mark)
    say(habits, b"1", b"2")
    assert not habits.restless(RUN)
    say(habits, b"3")
    assert habits.restless(RUN)


@pytest.mark.parametrize("probe", [GROW, FILES, HERE])
def test_what_the_shell_has_to_keep_is_never_let_past_it(habits, probe):
    say(habits, *(b"%d" % n for n in range(9)), probe=probe)
    assert not habits.restless(probe)


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 40_000, 2**20])
def test_an_uncompared_answer_is_compared_by_some_of_it(habits, size):
    say(habits, b"1", b"2", b"3")
    for n in range(5):
        say(habits, b"%d" % n + b"x" * size, direct=True)
        assert habits.restless(RUN)
    say(habits, b"4" + b"x" * size, direct=True)
    assert not habits.restless(RUN)
    # Compared answers say nothing about the next one that is not.
    say(habits, b"1", b"2", b"3")
    say(habits, b"4" + b"x" * size, direct=True)
    assert habits.restless(RUN)


def test_a_change_in_a_few_bytes_is_seen_in_what_is_not_long(habits):
    say(habits, b"1", b"2", b"3")
    for n in range(100):
        say(habits, b"x" * n + b"y" + b"x" * (99 - n), direct=True)
        assert habits.restless(RUN)


def test_a_loss_bars_it_where_nobody_compared(habits):
    say(habits, b"1", b"2", b"3")
    say(habits, b"1", b"2", b"3", probe=OTHER)
    say(habits, b"", probe=OTHER, mark=FrameMark.LOST)
    assert habits.restless(RUN)
    say(habits, b"", probe=OTHER, mark=FrameMark.LOST, direct=True)
    assert habits.barred
    say(habits, b"1", b"2", b"3")
    assert not habits.restless(RUN)
    habits.forget()
    assert not habits.restless(RUN)
    say(habits, b"1", b"2", b"3")
    assert habits.restless(RUN)


def test_another_loop_s_answers_are_compared_with_its_own(habits):
    say(habits, b"1", b"2", b"3")
    say(habits, b"same", direct=True)
    habits.forget()
    assert not habits.restless(RUN)
    say(habits, b"1", b"2", b"3")
    say(habits, b"same", direct=True)
    assert habits.restless(RUN)


RARE = ("mounts", "disks", "clock", "crashes", "fabric_log", "services", "capacity", "adapters")


def test_what_of_a_host_may_print_straight_to_us():
    direct = {probe.name for probe in probes_for(("eth2",), sudo=False) if probe.may_be_direct}
    assert direct == {"gpu", "nvlink", "nvlink:errors", "nvlink:traffic", "counters", "lldp", "optics:eth2", *RARE}
