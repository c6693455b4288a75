"""The loop of a simulated host, without a connection: a pipe of lists, and a clock that a test moves."""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumctl.sim.hosts.host import HostOutput, SimHost
from lumctl.sim.hosts.loop import HostLoop

NET, SMI, NVLINK, KERNEL, OPTICS, NOTHING, COUNTERS = map(str, range(7))
PROGRAM = """\
case $1 in
0) files /sys/class/net/*/operstate /sys/class/net/*/speed ;;
1) run nvidia-smi -q -x ;;
2) run nvidia-smi nvlink -s ;;
3) grow 'NVRM: .*(Xid|fallen)' dmesg ;;
4) run ethtool -m eth2 ;;
5) run tühl ;;
6) run grep -sH . /sys/class/net/*/statistics/rx_bytes ;;
esac
case $id in
1|2) echo "$n $id" >&3 ;;
3) echo "$n $id" >&4 ;;
4) echo "$n $id" >&5 ;;
esac
main; exit
""".encode()


class Pipe:
    def __init__(self) -> None:
        self.incoming: deque[bytes] = deque()
        self.said = b""
        self.closed: int | None = None
        self.broken = False

    def read(self):
        return self.incoming.popleft() if self.incoming else None

    def write(self, data):
        if self.broken:
            raise BrokenPipeError
        self.said += data

    def close(self, exit_status):
        assert self.closed is None
        self.closed = exit_status


class Terminal:
    """A loop on host ``a`` of a bench, and the two ends of its pipe."""

    def __init__(self, bench, *, start=lambda run: run(), host=None) -> None:
        self.bench = bench
        self.pipe = Pipe()
        self.timers: list[tuple[float, object]] = []
        host = host or SimHost(bench.world, "a", now=bench.clock)
        self.loop = HostLoop(host, self.pipe, start, after=self.after, clock=bench.clock)

    def after(self, seconds, run):
        self.timers.append((self.bench.clock.time + seconds, run))

    def send(self, data):
        self.pipe.incoming.append(data)
        self.loop.wake()

    def ask(self, request, *numbers):
        """Send a request; what came back by then."""
        self.send(f"{request} {' '.join(numbers)}\n".encode())
        return self.answers()

    def answers(self):
        said, self.pipe.said = self.pipe.said, b""
        return frames(said)

    def pass_time(self, seconds):
        self.bench.clock.time += seconds
        due = [timer for timer in self.timers if timer[0] <= self.bench.clock.time]
        self.timers = [timer for timer in self.timers if timer not in due]
        for _, run in due:
            run()


class Scripted:
    """A host whose every tool prints the next of these."""

    def __init__(self, outputs) -> None:
        self._outputs = iter(outputs)

    def hello(self):
        return b"lumctl-loop 2 - 0\n"

    def output(self, row):  # noqa: ARG002
        return next(self._outputs)


def frames(said: bytes) -> list[tuple[str, str, str, int, str]]:
    """Answers as (mark, probe, request, status, text); a length that is not the text's breaks the next one."""
    found = []
    while said:
        head, _, said = said.partition(b"\n")
        mark, number, request, status, *length = head.decode().split(" ")
        assert mark in {"=", "+", "~"}
        assert (mark == "~") == (not length)
        text = b""
        if length:
            text, end, said = said[: int(length[0])], said[int(length[0])], said[int(length[0]) + 1 :]
            assert end == ord("\n")
        found.append((mark, number, request, int(status), text.decode()))
    return found


def marks(answers) -> list[tuple[str, str, str]]:
    return [(mark, number, request) for mark, number, request, _, _ in answers]


@pytest.fixture
def fresh(bench):
    return Terminal(bench)


@pytest.fixture
def terminal(fresh):
    fresh.send(PROGRAM)
    fresh.pipe.said = b""
    return fresh


def test_it_says_hello_when_the_program_is_whole(fresh, bench):
    fresh.send(PROGRAM[:-1])
    assert fresh.pipe.said == b""
    fresh.send(b"\n")
    boot = bench.world.boots["a"]
    assert fresh.pipe.said.decode() == f"lumctl-loop 2 {boot.id} {bench.clock.time - boot.at:.2f}\n"


@given(cuts=st.lists(st.integers(1, 200), min_size=1))
def test_it_is_all_the_same_in_which_pieces_the_input_comes(make_bench, cuts):
    wanted, terminal = Terminal(make_bench()), Terminal(make_bench())
    rest = PROGRAM + b"1 0 3 5\n2 0 3 5\n"
    wanted.send(rest)
    for cut in cycle(cuts):
        if not rest:
            break
        terminal.send(rest[:cut])
        rest = rest[cut:]
    hello, _, answers = terminal.pipe.said.partition(b"\n")
    hello_at_once, _, answers_at_once = wanted.pipe.said.partition(b"\n")
    assert hello == hello_at_once
    assert sorted(frames(answers)) == sorted(frames(answers_at_once))
    assert len(frames(answers)) == 6


def test_files_are_the_first_lines_of_those_that_can_be_read(terminal):
    ((mark, number, request, status, text),) = terminal.ask("7", NET)
    assert (mark, number, request, status) == ("=", NET, "7", 0)
    assert text.splitlines() == [
        "/sys/class/net/eno1/operstate:up",
        "/sys/class/net/eth2/operstate:up",
        "/sys/class/net/lo/operstate:unknown",
        "/sys/class/net/eno1/speed:1000",
        "/sys/class/net/eth2/speed:100000",
    ]


def test_a_length_counts_bytes_and_a_tool_that_is_not_there_says_so(terminal):
    assert terminal.ask("1", NOTHING, NET)[0] == ("=", NOTHING, "1", 127, "sh: 1: tühl: not found")


def test_a_number_without_a_row_is_not_found(terminal):
    assert terminal.ask("1", "99") == [("=", "99", "1", 127, "")]


def test_what_did_not_change_is_not_sent_again(terminal, bench):
    assert marks(terminal.ask("1", NET, KERNEL)) == [("=", NET, "1"), ("=", KERNEL, "1")]
    assert terminal.ask("2", NET, KERNEL) == [("~", NET, "2", 0, ""), ("~", KERNEL, "2", 0, "")]
    bench.world.inject("a-t0", "link-down")
    ((mark, _, _, _, text),) = terminal.ask("3", NET)
    assert mark == "="
    assert "eth2/operstate:down" in text


def test_of_what_grew_only_the_new_lines_are_sent_and_what_shrank_is_sent_whole(terminal, bench):
    assert terminal.ask("1", KERNEL) == [("=", KERNEL, "1", 0, "")]
    bench.world.inject("a-gpu0", "ecc")
    ((mark, *_, first),) = terminal.ask("2", KERNEL)
    assert mark == "=", "there was nothing that could have grown"
    assert [line.partition("): ")[2][:2] for line in first.splitlines()] == ["48", "63"]
    bench.world.inject("a-gpu1", "gpu-lost")
    ((mark, *_, more),) = terminal.ask("3", KERNEL)
    assert mark == "+"
    assert [" 79, " in line for line in more.splitlines()] == [True, False]
    assert terminal.ask("4", KERNEL) == [("~", KERNEL, "4", 0, "")]
    # A host that was booted has a log with less in it.
    bench.world.clear("a-gpu1")
    ((mark, *_, whole),) = terminal.ask("5", KERNEL)
    assert mark == "="
    assert [line.partition("): ")[2][:2] for line in whole.splitlines()] == ["48", "63"]


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("a", "a\nb", ("+", "b")),
        ("a", "a\n\nb", ("+", "\nb")),
        ("a", "ab\nc", ("=", "ab\nc")),
        ("", "a", ("=", "a")),
        ("a", "", ("=", "")),
    ],
)
@pytest.mark.parametrize("grows", [True, False])
def test_whole_lines_are_what_can_grow_and_only_where_they_may(bench, before, after, sent, grows):
    host = Scripted([HostOutput(0, before.encode(), grows=grows), HostOutput(0, after.encode(), grows=grows)])
    terminal = Terminal(bench, host=host)
    terminal.send(PROGRAM + b"1 0\n")
    terminal.pipe.said = b""
    ((mark, _, _, _, text),) = terminal.ask("2", NET)
    assert (mark, text) == (sent if grows else ("=", after))


def test_counters_grow_with_time_and_never_fall(terminal, bench):
    def counted(request):
        ((_, _, _, _, text),) = terminal.ask(request, COUNTERS)
        return {path: int(value) for path, _, value in (line.partition(":") for line in text.splitlines())}

    before = counted("1")
    bench.clock.time += 1
    after = counted("2")
    assert len(before) == 3
    assert all(0 < after[path] - before[path] < 100e9 / 8 for path in before)


def test_a_hung_tool_holds_its_lane_only_and_is_answered_in_the_end(terminal, bench):
    bench.world.inject("a", "hung-smi")
    assert marks(terminal.ask("1", SMI, NET, NVLINK, OPTICS)) == [("=", NET, "1"), ("=", OPTICS, "1")]
    assert marks(terminal.ask("2", NET)) == [("~", NET, "2")]
    assert not terminal.timers
    bench.world.clear("a")
    assert terminal.answers() == []
    terminal.loop.go_on()
    assert marks(terminal.answers()) == [("=", SMI, "1"), ("=", NVLINK, "1")]


def test_the_answer_of_a_tool_that_hung_is_of_when_it_went_on(terminal, bench):
    bench.world.inject("a", "hung-smi")
    terminal.ask("1", SMI)
    bench.world.inject("a-gpu1", "gpu-lost")
    terminal.loop.go_on()
    assert terminal.answers() == [], "it hangs still"
    bench.world.clear("a")
    terminal.loop.go_on()
    ((*_, text),) = terminal.answers()
    assert "<attached_gpus>1</attached_gpus>" in text


def test_a_slow_host_delays_each_answer_and_a_lane_keeps_its_order(terminal, bench):
    bench.world.inject("a", "slow-host", 3)
    assert terminal.ask("1", SMI, NVLINK, NET) == []
    terminal.pass_time(1)
    assert terminal.ask("2", OPTICS) == []
    terminal.pass_time(1.99)
    assert terminal.answers() == []
    terminal.pass_time(0.01)
    assert sorted(marks(terminal.answers())) == [("=", NET, "1"), ("=", SMI, "1"), ("=", NVLINK, "1")]
    terminal.pass_time(1)
    assert marks(terminal.answers()) == [("=", OPTICS, "2")]


def test_the_end_of_the_input_ends_it_whatever_hangs(terminal, bench):
    bench.world.inject("a", "hung-smi")
    terminal.send(b"1 1 0\n")
    terminal.send(b"")
    assert marks(terminal.answers()) == [("=", NET, "1")]
    assert terminal.pipe.closed == 137
    bench.world.clear("a")
    terminal.loop.go_on()
    assert terminal.answers() == []
    assert terminal.loop.ended


def test_a_host_that_is_lost_takes_it_along(terminal):
    terminal.loop.cut()
    assert terminal.pipe.closed == 255
    assert terminal.ask("1", NET) == []


def test_a_reader_that_is_gone_ends_it(terminal):
    terminal.pipe.broken = True
    terminal.ask("1", NET)
    assert terminal.pipe.closed is not None


@pytest.mark.parametrize("flood", [b"1 " + b"1 " * 1100 + b"\n", b"x" * 70_000])
def test_a_flood_ends_it(terminal, bench, flood):
    bench.world.inject("a", "hung-smi")
    terminal.send(flood)
    assert terminal.pipe.closed == 2


def test_a_turn_is_not_begun_while_another_runs(bench):
    begun = []
    terminal = Terminal(bench, start=begun.append)
    terminal.send(PROGRAM)
    terminal.loop.wake()
    assert len(begun) == 1
    begun.pop()()
    terminal.loop.wake()
    assert len(begun) == 1


def test_answers_of_many_threads_never_overlap(bench):
    """Wakes from everywhere while answers are slow to be taken: each request is answered once, whole, in its order."""
    with ThreadPoolExecutor(4) as pool:
        terminal = Terminal(bench, start=pool.submit)
        terminal.send(PROGRAM)
        wakers = [threading.Thread(target=lambda: [terminal.loop.wake() for _ in range(300)]) for _ in range(4)]
        for waker in wakers:
            waker.start()
        for request in range(200):
            terminal.send(f"{request} 0 1 3\n".encode())
        for waker in wakers:
            waker.join()
        terminal.send(b"")
    answers = frames(terminal.pipe.said.partition(b"\n")[2])
    for number in (NET, SMI, KERNEL):
        assert [int(request) for _, each, request, _, _ in answers if each == number] == list(range(200))
    assert terminal.pipe.closed == 137
