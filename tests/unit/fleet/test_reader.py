"""One host's reader, with a session and workers that do what a test says, when it says so, and a clock of its own."""

import random
import time

import pytest

from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.fleet import reader
from lumctl.fleet.frames import Frame, FrameMark, Greeting
from lumctl.fleet.probes import Probe
from lumctl.fleet.reader import HostReader, SharedByHosts
from lumctl.fleet.readings import ProbeStatus, XidEvent
from lumctl.fleet.rounds import Gate, Round
from lumctl.fleet.ssh.session import FrozenError

OK, FAILED, TIMED_OUT = ProbeStatus.OK, ProbeStatus.FAILED, ProbeStatus.TIMED_OUT
GREETING = Greeting("boot-1", 100.0)
CONNECT_S = 5.0
FIRST, SLOW, OFTEN = range(3)


def said(answer, *_):
    return (OK if answer.status == 0 else FAILED), answer.text


PROBES = (
    Probe("first", "lane", "run first", 2.0, 0.0, said, lambda *_: None),
    Probe("slow", "lane", "run slow", 2.0, 30.0, said, lambda *_: None),
    Probe("often", "", "files /x", 2.0, 0.0, said, lambda *_: None),
)


class Talk:
    """A conversation that a test leads."""

    def __init__(self, hear, over):
        self.hear, self.over = hear, over
        self.asked = []
        self.directly = []
        self.ended = None

    def soon(self, call):
        call()

    def ask(self, request, probes, direct):
        self.asked.append((request, *probes))
        self.directly.append(set(direct))

    def end(self, reason):
        self.ended = reason

    def answer(self, request, *probes, text=b"", status=0):
        for probe in probes:
            self.hear(Frame(FrameMark.WHOLE, probe, request, status, text))


class Host:
    """The session and the workers. ``begin`` runs the oldest start that waits for a thread."""

    def __init__(self):
        self.starts, self.talks, self.drops = [], [], 0
        self.trouble: Exception | None = None
        self.meanwhile = self.while_it_connects = lambda: None

    def submit(self, call):
        self.starts.append(call)

    def begin(self):
        self.starts.pop(0)()

    def connect(self):
        self.while_it_connects()
        return 0.01

    def converse(self, _program, _timeout_s, hear, over):
        talk = Talk(hear, over)
        self.talks.append(talk)
        trouble, self.trouble = self.trouble, None
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if trouble:
            raise trouble
        return talk

    def drop(self):
        self.drops += 1


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(reader, "time", clock)
    return clock


@pytest.fixture
def host():
    return Host()


@pytest.fixture
def one(host, clock):
    return HostReader("h", lambda: host, PROBES, SharedByHosts(host, Gate(), lambda: clock.now + 10**9, CONNECT_S))


def is_settled(round_):
    looked = []
    round_.wait(time.monotonic() + 0.001, looked.append)
    return round_._settled.is_set()


def read_now(one, *names):
    round_ = Round()
    one.read_now(round_, names or None)
    return round_


def tick(one):
    round_ = Round()
    one.read_due(round_)
    return round_


def shown(one, since=None):
    host = one.snapshot(None, since)
    return host, {name: (outcome.status, outcome.detail) for name, outcome in host.probes.items()}


def greeted(one, host):
    round_ = read_now(one)
    host.begin()
    host.talks[-1].hear(GREETING)
    host.talks[-1].answer(host.talks[-1].asked[-1][0], FIRST, SLOW, OFTEN)
    assert is_settled(round_)
    return host.talks[-1]


def test_nothing_is_asked_before_the_greeting_and_then_everything_at_once(one, host):
    round_ = read_now(one)
    host.begin()
    (talk,) = host.talks
    assert talk.asked == []
    talk.hear(GREETING)
    assert talk.asked == [(1, FIRST, SLOW, OFTEN)]
    assert not is_settled(round_)
    talk.answer(1, FIRST, OFTEN)
    assert not is_settled(round_)
    talk.answer(1, SLOW, text=b"no", status=1)
    assert is_settled(round_)
    host, outcomes = shown(one)
    assert outcomes == {"first": (OK, ""), "slow": (FAILED, "no"), "often": (OK, "")}
    assert (host.boot_id, host.booted_at) == ("boot-1", 1000.0 + 10**9 - 100.0)


@pytest.mark.parametrize(("boot", "left"), [("boot-1", 1), ("boot-2", 0)])
def test_the_lines_of_an_earlier_boot_are_not_those_of_this_one(host, clock, boot, left):
    def take(answer, _taken_at, gathered):
        gathered.xids = (XidEvent(None, "0000:1b:00.0", 79, answer.text),)
        return OK, ""

    log = Probe("first", "lane", "run first", 2.0, 0.0, take, lambda *_: None)
    means = SharedByHosts(host, Gate(), lambda: clock.now + 10**9, CONNECT_S)
    one = HostReader("h", lambda: host, (log, *PROBES[1:]), means)
    greeted(one, host).over("rebooted")
    read_now(one)
    host.begin()
    host.talks[-1].hear(Greeting(boot, 1.0))
    assert len(one.snapshot(None, None).xids) == left  # nothing of the new boot was read yet
    assert one.snapshot(None, None).boot_id == boot


def test_a_greeting_that_comes_before_the_conversation_is_handed_over(one, host):
    round_ = read_now(one)
    host.meanwhile = lambda: host.talks[-1].hear(GREETING)
    host.begin()
    host.talks[0].answer(1, FIRST, SLOW, OFTEN)
    assert is_settled(round_)


def test_a_start_that_was_given_up_says_nothing_of_the_next(one, host, clock):
    first = read_now(one)

    def give_up_and_begin_again():
        clock.now += CONNECT_S + 1.0
        one.expire(clock.now)
        assert is_settled(first)
        assert host.drops == 1
        read_now(one)

    host.meanwhile = give_up_and_begin_again
    host.trouble = DeviceRefusedError("h: this is of the first try")
    host.begin()
    assert len(host.starts) == 1
    host.begin()
    host.talks[1].hear(GREETING)
    host.talks[1].answer(1, FIRST, SLOW, OFTEN)
    assert shown(one)[1] == {"first": (OK, ""), "slow": (OK, ""), "often": (OK, "")}


def test_a_loop_that_begins_too_late_is_ended(one, host, clock):
    read_now(one)

    def give_up():
        clock.now += CONNECT_S + 1.0
        one.expire(clock.now)

    host.meanwhile = give_up
    host.begin()
    assert host.talks[0].ended
    # Nothing that it says counts any more, and that it is over is no news.
    attempts = one.snapshot(None, None).attempts
    host.talks[0].hear(GREETING)
    host.talks[0].over("the connection was lost")
    assert host.talks[0].asked == []
    assert one.snapshot(None, None).attempts == attempts == 1


def test_a_connection_that_comes_too_late_does_not_hold_up_the_next_try(one, host, clock):
    def give_up():
        clock.now += CONNECT_S + 1.0
        one.expire(clock.now)
        clock.now += 60.0

    read_now(one)
    host.while_it_connects = give_up
    host.begin()
    found, _ = shown(one)
    assert (found.reachable, found.error, found.connect_seconds) == (False, "h: no SSH session in time", None)
    host.while_it_connects = lambda: None
    tick(one)
    assert len(host.starts) == 1


def test_the_end_of_an_earlier_loop_does_not_end_this_one(one, host):
    before = greeted(one, host)
    before.over("its shell ended")
    now = greeted(one, host)
    before.over("the connection was lost")
    before.answer(now.asked[-1][0] + 1, OFTEN, text=b"stale")
    round_ = read_now(one, "often")
    before.answer(now.asked[-1][0], OFTEN, text=b"stale")
    assert not is_settled(round_)
    now.answer(now.asked[-1][0], OFTEN, text=b"new")
    assert is_settled(round_)
    assert shown(one)[1]["often"] == (OK, "new")


@pytest.mark.parametrize(
    ("trouble", "reachable", "error", "outcome"),
    [
        (FrozenError(), True, None, (TIMED_OUT, "the host's time limit ended before it ran")),
        (DeviceRefusedError("h: no"), True, None, (FAILED, "h: no")),
        (DeviceUnreachableError("h: gone"), False, "h: gone", None),
        (ZeroDivisionError("oh"), False, "h: unexpected ZeroDivisionError: oh", None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_loop(one, host, clock, trouble, reachable, error, outcome):
    host.trouble = trouble
    round_ = read_now(one)
    host.begin()
    assert is_settled(round_)
    found, outcomes = shown(one, clock.now + 10**9)
    assert (found.reachable, found.error) == (reachable, error)
    assert outcomes == (dict.fromkeys(("first", "slow", "often"), outcome) if outcome else {})


def test_tries_come_at_growing_distances_and_never_further_apart_than_a_minute(one, host, clock, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda _least, most: most)
    waits = []
    for attempt in range(1, 11):
        assert is_settled(tick(one)) == (attempt > 1)
        host.trouble = DeviceUnreachableError("h: gone")
        host.begin()
        assert one.snapshot(None, None).attempts == attempt
        failed_at = clock.now
        while not host.starts:
            clock.now += 0.25
            assert clock.now < failed_at + 100
            tick(one)
        waits.append(clock.now - failed_at)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_who_asks_deliberately_does_not_wait_for_the_next_try(one, host):
    host.trouble = DeviceUnreachableError("h: gone")
    tick(one)
    host.begin()
    tick(one)
    assert not host.starts
    read_now(one)
    assert len(host.starts) == 1
    # Nor is there a second start beside one that is under way.
    read_now(one)
    tick(one)
    assert len(host.starts) == 1


def test_a_greeting_ends_the_counting_of_failures(one, host, clock):
    host.trouble = DeviceUnreachableError("h: gone")
    tick(one)
    host.begin()
    assert one.snapshot(None, None).attempts == 1
    clock.now += 60.0
    tick(one)
    host.begin()
    assert one.snapshot(None, None).attempts == 1
    host.talks[-1].hear(GREETING)
    assert one.snapshot(None, None).attempts == 0
    # The next failure is a first one again.
    host.talks[-1].over("the connection was lost")
    clock.now += 1.0
    tick(one)
    assert len(host.starts) == 1


def test_what_runs_is_not_asked_again_and_then_it_is(one, host):
    talk = greeted(one, host)
    read_now(one, "often")
    round_ = read_now(one, "often")
    assert [asked for asked in talk.asked if OFTEN in asked] == [(1, FIRST, SLOW, OFTEN), (2, OFTEN)]
    # What was under way was begun before the second of them asked.
    talk.answer(2, OFTEN)
    assert not is_settled(round_)
    assert talk.asked[-1] == (3, OFTEN)
    talk.answer(3, OFTEN)
    assert is_settled(round_)


def test_each_probe_has_its_cadence(one, host, clock):
    talk = greeted(one, host)
    asked = len(talk.asked)
    for _ in range(29):
        clock.now += 1.0
        tick(one)
        request, *probes = talk.asked[-1]
        assert probes == [FIRST, OFTEN]
        talk.answer(request, *probes)
    clock.now += 1.0
    tick(one)
    assert talk.asked[-1][1:] == (FIRST, SLOW, OFTEN)
    assert len(talk.asked) == asked + 30


def test_a_tick_waits_for_what_every_tick_reads_and_not_for_what_hangs(one, host, clock):
    talk = greeted(one, host)
    round_ = tick(one)
    request, *_ = talk.asked[-1]
    talk.answer(request, OFTEN)
    assert not is_settled(round_)
    clock.now += 2.0
    one.expire(clock.now)
    assert is_settled(round_)
    assert shown(one)[1]["first"] == (TIMED_OUT, "no answer within 2 s")
    again = tick(one)
    assert talk.asked[-1][1:] == (OFTEN,)
    talk.answer(talk.asked[-1][0], OFTEN)
    assert is_settled(again)
    late = read_now(one, "slow")
    assert is_settled(late)
    assert shown(one)[1]["slow"] == (TIMED_OUT, "waits behind first, which hangs")


def test_what_was_wanted_behind_a_hang_is_not_asked_for_when_it_ends(one, host, clock):
    talk = greeted(one, host)
    read_now(one, "first")
    read_now(one, "first")
    clock.now += 2.0
    one.expire(clock.now)
    asked = len(talk.asked)
    talk.answer(talk.asked[-1][0], FIRST)
    assert len(talk.asked) == asked
    tick(one)
    assert talk.asked[-1][1:] == (FIRST, OFTEN)


def test_a_lost_lane_costs_what_ran_in_it(one, host):
    talk = greeted(one, host)
    round_ = read_now(one)
    talk.hear(Frame(FrameMark.LOST, 7, 0, 137))
    talk.hear(Frame(FrameMark.LOST, 0, 0, 137))
    talk.answer(talk.asked[-1][0], SLOW, OFTEN)
    assert is_settled(round_)
    outcomes = shown(one)[1]
    assert outcomes["first"] == (FAILED, "it printed more than the host's shell can store (status 137)")
    assert outcomes["slow"] == outcomes["often"] == (OK, "")


def test_an_answer_that_its_reader_cannot_take_costs_one_probe(host, clock):
    def broken(*_):
        raise IndexError("list index out of range")

    probes = (*PROBES[:2], Probe("often", "", "files /x", 2.0, 0.0, broken, broken))
    one = HostReader("h", lambda: host, probes, SharedByHosts(host, Gate(), lambda: clock.now, CONNECT_S))
    greeted(one, host)
    outcomes = shown(one)[1]
    assert outcomes["often"] == (FAILED, "unexpected IndexError: list index out of range")
    assert outcomes["first"] == (OK, "")


def test_another_start_of_the_host_has_another_time(one, host, clock):
    greeted(one, host).over("the connection was lost")
    booted_at = one.snapshot(None, None).booted_at
    clock.now += 50.0
    talk = greeted(one, host)
    # The same start keeps its time, or each kernel line would be dated again.
    assert one.snapshot(None, None).booted_at == booted_at
    talk.over("the connection was lost")
    read_now(one)
    host.begin()
    host.talks[-1].hear(Greeting("boot-2", 1.0))
    assert one.snapshot(None, None).booted_at == clock.now + 10**9 - 1.0


SMI, LINKS, LEVELS, LOG, LINES, HERE = range(6)
LANES = (
    Probe("smi", "nvidia", "run smi", 2.0, 0.0, said, lambda *_: None),
    Probe("links", "nvidia", "run links", 2.0, 0.0, said, lambda *_: None),
    Probe("levels", "optics", "run levels", 2.0, 0.0, said, lambda *_: None),
    Probe("log", "kernel", "grow x log", 2.0, 0.0, said, lambda *_: None),
    Probe("lines", "optics", "files /x", 2.0, 0.0, said, lambda *_: None),
    Probe("here", "", "run here", 2.0, 0.0, said, lambda *_: None),
)


class Chat:
    """A reader of ``LANES`` and its host, which says something new of some probes each time."""

    def __init__(self, host, clock):
        self.host = host
        self.reader = HostReader("h", lambda: host, LANES, SharedByHosts(host, Gate(), lambda: clock.now, CONNECT_S))
        self.words = 0

    def begin(self):
        tick(self.reader)
        self.host.begin()
        self.talk.hear(GREETING)
        self.say_new()

    @property
    def talk(self):
        return self.host.talks[-1]

    @property
    def direct(self):
        """Those of the last request that are to print straight to us."""
        return self.talk.directly[-1]

    def say_new(self, *probes):
        """Answer all that was asked last, these by something new, or all; the others by what they said before."""
        request, *asked = self.talk.asked[-1]
        for probe in asked:
            self.words += 1
            is_new = not probes or probe in probes
            if is_new or probe in self.direct:
                body = b"new %d" % self.words if is_new else b"as ever"
                self.talk.hear(Frame(FrameMark.WHOLE, probe, request, 0, body))
            else:
                self.talk.hear(Frame(FrameMark.SAME, probe, request, 0))

    def ask(self, *names):
        if names:
            read_now(self.reader, *names)
        else:
            tick(self.reader)
        return self.talk.asked[-1][0], self.direct

    def times(self, count, *probes):
        """Some ticks: which tools were asked to print straight to us."""
        found = []
        for _ in range(count):
            self.ask()
            found.append(self.direct)
            self.say_new(*probes)
        return found


@pytest.fixture
def chat(host, clock):
    chat = Chat(host, clock)
    chat.begin()
    return chat


def test_what_was_new_three_times_running_comes_straight_from_the_tool(chat):
    # What is read or compared by the shell itself, and what has no lane, does not.
    assert chat.times(6, LEVELS, LOG, LINES, HERE) == [set(), set(), *[{LEVELS}] * 4]


def test_the_tools_of_one_lane_at_a_time(chat):
    assert chat.times(4) == [set(), set(), {SMI, LINKS}, {SMI, LINKS}]
    # One that still prints keeps the other lanes from it, whoever asks.
    request, direct = chat.ask("smi")
    assert direct == {SMI}
    assert chat.ask("levels")[1] == set()
    assert chat.ask("links")[1] == {LINKS}
    chat.talk.answer(request, SMI, text=b"new")
    chat.talk.answer(request + 1, LEVELS, text=b"new")
    assert chat.ask("levels")[1] == set()
    chat.talk.answer(request + 2, LINKS, text=b"new")
    chat.talk.answer(request + 3, LEVELS, text=b"new")
    assert chat.ask("levels")[1] == {LEVELS}


def test_one_that_hangs_keeps_the_other_lanes_from_it(chat, clock):
    chat.times(3)
    chat.ask("smi")
    clock.now += 2.0
    chat.reader.expire(clock.now)
    assert chat.ask("levels")[1] == set()


def test_what_stays_as_it_is_is_compared_by_the_host_again(chat):
    assert chat.times(3, LEVELS)[-1] == {LEVELS}
    assert chat.times(3, HERE) == [{LEVELS}, {LEVELS}, set()]
    assert chat.times(4, LEVELS) == [set(), set(), set(), {LEVELS}]


def test_another_loop_has_said_nothing_yet(chat):
    assert chat.times(3)[-1] == {SMI, LINKS}
    chat.talk.over("its shell ended")
    read_now(chat.reader)
    chat.host.begin()
    chat.talk.hear(GREETING)
    assert chat.direct == set()
    chat.say_new()
    assert chat.times(3) == [set(), set(), {SMI, LINKS}]


def test_an_answer_that_overtook_one_straight_from_its_tool_has_its_turn(chat):
    """The two come by different streams, each in its order."""
    chat.times(2, LEVELS, SMI)
    request, direct = chat.ask()
    assert direct == {SMI}
    chat.talk.answer(request, LINKS, text=b"links")
    assert shown(chat.reader)[1]["links"] == (OK, "new 2")
    chat.talk.answer(request, SMI, text=b"smi")
    outcomes = shown(chat.reader)[1]
    assert (outcomes["smi"], outcomes["links"]) == ((OK, "smi"), (OK, "links"))
    # Neither is under way any more.
    assert chat.ask("smi", "links")[0] == request + 1
    assert chat.talk.asked[-1][1:] == (SMI, LINKS)


def test_an_answer_straight_from_its_tool_that_overtook_another(chat):
    chat.times(2, LINKS)
    request, direct = chat.ask()
    assert direct == {LINKS}
    chat.talk.answer(request, LINKS, text=b"links")
    chat.talk.answer(request, SMI, text=b"smi")
    outcomes = shown(chat.reader)[1]
    assert (outcomes["smi"], outcomes["links"]) == ((OK, "smi"), (OK, "links"))


def test_a_shell_that_is_lost_while_a_tool_prints_past_it(chat):
    """The tool may print on, into whatever comes after it: nothing of this loop comes straight from a tool again."""
    chat.times(2)
    request, direct = chat.ask()
    assert direct == {SMI, LINKS}
    chat.talk.hear(Frame(FrameMark.LOST, 0, 0, 137))
    chat.talk.answer(request, LINKS, text=b"links, and what smi still printed")
    outcomes = shown(chat.reader)[1]
    assert outcomes["smi"] == (FAILED, "its shell was killed (status 137)")
    assert outcomes["links"] == (FAILED, "the command before it was lost, and its output may be mixed in")
    chat.talk.answer(request, LEVELS, LOG, LINES, HERE)
    assert chat.times(6) == [set()] * 6
    outcomes = shown(chat.reader)[1]
    assert (outcomes["smi"][0], outcomes["links"][0]) == (OK, OK)
    chat.talk.over("its shell ended")
    read_now(chat.reader)
    chat.host.begin()
    chat.talk.hear(GREETING)
    chat.say_new()
    assert chat.times(3)[-1] == {SMI, LINKS}


def test_another_lane_s_loss_bars_nothing(chat):
    chat.times(2)
    request, direct = chat.ask()
    assert direct == {SMI, LINKS}
    chat.talk.hear(Frame(FrameMark.LOST, 1, 0, 137))
    chat.talk.answer(request, SMI, LINKS, LOG, LINES, HERE, text=b"new")
    outcomes = shown(chat.reader)[1]
    assert (outcomes["smi"], outcomes["levels"][0]) == ((OK, "new"), FAILED)
    assert chat.ask()[1] == {SMI, LINKS}


def test_a_host_that_answers_the_other_way_is_understood(chat):
    """It need not know how to let a tool print past it."""
    chat.times(3, SMI)
    request, direct = chat.ask()
    assert direct == {SMI}
    chat.talk.hear(Frame(FrameMark.SAME, SMI, request, 0))
    assert shown(chat.reader)[1]["smi"] == (OK, "new 19")
    chat.talk.answer(request, *range(1, len(LANES)))
    assert chat.ask()[1] == set()
