"""The loop in every shell that is here, with tools that behave as a test says."""

import os
import random
import select
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from lumctl.fleet.conversation import DirectCommand
from lumctl.fleet.frames import Frame, FrameMark, Frames, Greeting
from lumctl.fleet.loop import lanes_of, program

PATIENCE_S = 20.0
SHELLS = ("dash", "bash", "bash --posix", "busybox sh")
EVERY_BYTE = bytes(n for n in range(1, 256) if n != ord("\n"))
WHOLE, MORE, SAME, LOST = FrameMark.WHOLE, FrameMark.MORE, FrameMark.SAME, FrameMark.LOST
FIFO_FOLDERS = [Path("/dev/shm"), Path("/tmp"), Path("/var/tmp")]  # noqa: S108 - where the loop leaves nothing

OUTPUTS = (
    (b"", b""),
    (b"\n\n\n", b""),
    (b"a\n\nb\n\n\n", b"a\n\nb"),
    (b"no end of line", b"no end of line"),
    (b"\n leading\n", b"\n leading"),
    (b"nul\0in the middle\n", b"nulin the middle"),
    (b"nul behind\n\0\n\0\0\n", b"nul behind"),
    (b"\0\0", b""),
    (EVERY_BYTE, EVERY_BYTE),
    (b"= 0 1 0 5\nhello\n", b"= 0 1 0 5\nhello"),
    (b"-n\n", b"-n"),
    (b"(\n", b"("),
    (b"%s \\101 $HOME `id` *\n", b"%s \\101 $HOME `id` *"),
    ("überall µ\n".encode(), "überall µ".encode()),
)
"""What a tool prints, and what of it arrives: a shell can hold no NUL, and takes off the ends of the last lines."""


class Asked(NamedTuple):
    lane: str
    command: str


class Loop:
    """The program in a shell: requests go in, frames come out by its error stream, and direct answers by its output."""

    def __init__(self, shell: str, probes, env) -> None:
        self.process = subprocess.Popen(
            shell.split(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=env,
            start_new_session=True,
        )
        self._frames = Frames()
        self._said: list[Greeting | Frame] = []
        self._direct = DirectCommand()
        self._printed: list[Frame] = []
        self._open = [self.process.stdout, self.process.stderr]
        self.stray = b""
        self.send(program(probes))

    @property
    def token(self) -> str:
        return self._direct.token

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.process.stdin.write(view) :]

    def ask(self, request: int, *probes: int) -> None:
        self.send(f"{request} {' '.join(map(str, probes))}\n".encode())

    def ask_directly(self, request: int, *probes: int) -> None:
        self.send(f"{request} {' '.join(f'{probe}>{self.token}' for probe in probes)}\n".encode())

    def _take(self, wanted: list, count: int, *, read_directly: bool = True) -> list:
        until = time.monotonic() + PATIENCE_S
        while len(wanted) < count:
            streams = self._open if read_directly else [self.process.stderr]
            readable, _, _ = select.select(streams, [], [], max(0.0, until - time.monotonic()))
            assert readable, f"only {self._said} and {self._printed} in time"
            for stream in readable:
                data = os.read(stream.fileno(), 2**20)
                if stream is self.process.stdout:
                    self._open = self._open if data else [self.process.stderr]
                    self._printed += self._direct.feed(data, last=False)
                else:
                    assert data, f"it ended: {self._frames.preamble!r}, after {self._said}"
                    self._said += self._frames.feed(data)
        taken = wanted[:count]
        del wanted[:count]
        return taken

    def frames(self, count: int = 1, *, read_directly: bool = True) -> list[Greeting | Frame]:
        """The next of what it says."""
        return self._take(self._said, count, read_directly=read_directly)

    def printed(self, count: int = 1) -> list[Frame]:
        """The next of what its tools print straight to us."""
        return self._take(self._printed, count)

    def frame(self) -> Frame:
        return self.frames()[0]

    def directly(self, request: int, probe: int) -> Frame:
        """Ask for one probe and have its answer straight from the tool."""
        self.ask_directly(request, probe)
        return self.printed()[0]

    def text(self, request: int, probe: int) -> bytes:
        """Ask for one probe and have its whole answer."""
        self.ask(request, probe)
        frame = self.frame()
        assert (frame.mark, frame.probe, frame.request) == (WHOLE, probe, request)
        return frame.body

    def silent(self, seconds: float = 0.05) -> bool:
        """Whether nothing comes for a moment."""
        return not (self._said or self._printed or select.select(self._open, [], [], seconds)[0])

    def group(self) -> dict[int, str]:
        """The processes of the loop's process group that are not dead, by what they run."""
        return group_of(self.process.pid)

    def all_ended(self) -> bool:
        return everybody_ended(self.group())

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                stream.close()
        self.process.wait(PATIENCE_S)


def group_of(leader: int) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            name, _, rest = (entry / "stat").read_text().rpartition(")")
            state, _, group = rest.split()[:3]
            if int(group) == leader and state != "Z":
                found[int(entry.name)] = name.partition("(")[2]
    return found


def everybody_ended(processes, within_s: float = 2.0) -> bool:
    """Whether some processes end soon: each is waited for, not looked at again and again."""
    until = time.monotonic() + within_s
    for pid in processes:
        with suppress(ProcessLookupError):
            watched = os.pidfd_open(pid)
            ended, _, _ = select.select([watched], [], [], max(0.0, until - time.monotonic()))
            os.close(watched)
            if not ended:
                return False
    return True


class Tools:
    """A folder of tools on the loop's PATH, each a small script; every call is recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tools"
        self.folder.mkdir()
        self.calls_file = folder / "calls"
        self.calls_file.touch()

    def write(self, name: str, script: str) -> None:
        tool = self.folder / name
        tool.write_text(f'#!/bin/sh\necho {name} >>"{self.calls_file}"\n{script}\n')
        tool.chmod(0o755)

    def prints(self, name: str, output: bytes, status: int = 0) -> None:
        (self.folder / f"{name}.output").write_bytes(output)
        self.write(name, f'cat "$0.output"; exit {status}')

    def gate(self, name: str) -> Path:
        """A tool that hangs until somebody writes into its gate."""
        gate = self.folder / f"{name}.gate"
        os.mkfifo(gate)
        # Who opens it while the writer before has not closed it yet reads nothing.
        self.write(name, 'until read -r said <"$0.gate"; do :; done; echo "$said"')
        return gate

    def calls(self) -> Counter[str]:
        return Counter(self.calls_file.read_text().split())

    def env(self, **more) -> dict[str, str]:
        return {"PATH": f"{self.folder}:{os.environ['PATH']}", "HOME": "/nowhere", **more}


def let_go(gate: Path, said: str = "free") -> None:
    with gate.open("w") as held:
        held.write(f"{said}\n")


@pytest.fixture(params=SHELLS)
def shell(request, require_program) -> str:
    require_program(request.param.split()[0])
    return request.param


@pytest.fixture
def tools(tmp_path) -> Tools:
    return Tools(tmp_path)


@pytest.fixture
def start(shell, tools) -> Iterator:
    """Start the loop with some probes; it has greeted."""
    started = []

    def start(*probes, shell=shell, **env) -> Loop:
        loop = Loop(shell, probes, tools.env(**env))
        started.append(loop)
        greeting = loop.frame()
        assert isinstance(greeting, Greeting)
        return loop

    yield start
    for loop in started:
        loop.close()


def litter() -> set[Path]:
    return {path for folder in FIFO_FOLDERS if folder.is_dir() for path in folder.glob("lumctl.*")}


def test_the_greeting(shell, tools):
    loop = Loop(shell, [], tools.env())
    greeting = loop.frame()
    loop.close()
    assert greeting.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert abs(greeting.uptime_s - float(Path("/proc/uptime").read_text().split()[0])) < PATIENCE_S


@pytest.mark.parametrize("noise", ["Welcome!\nlumctl is not installed\n", "\x1b]0;title\x07", "lumctl-loop "])
def test_what_a_login_script_says_first(shell, tools, noise):
    script = tools.folder / "login"
    script.write_text(f"echo much; printf '%s' '{noise}' | tee /dev/stderr; exec {shell}")
    loop = Loop(f"sh {script}", [Asked("", "files /proc/sys/kernel/ostype")], tools.env())
    assert isinstance(loop.frame(), Greeting)
    assert loop.text(1, 0) == b"/proc/sys/kernel/ostype:Linux"
    loop.close()


def test_files_are_read_without_a_process(start, tools, tmp_path):
    for name, content in {
        "a 1": b"one\ntwo\n",
        "a'2$(x)": b" blanks \\n stay \n",
        "a3": EVERY_BYTE + b"\n",
        "b": b"\n",
        "empty": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "a-folder").mkdir()
    # No tool can be found: built-ins are all that there is.
    loop = start(Asked("", f"files {tmp_path}/a* {tmp_path}/no*such /no/file {tmp_path}/empty {tmp_path}/b"))
    folder = str(tmp_path).encode()
    assert loop.text(1, 0).split(b"\n") == [
        folder + b"/a 1:one",
        folder + b"/a'2$(x): blanks \\n stay ",
        folder + b"/a3:" + EVERY_BYTE,
        folder + b"/b:",
    ]
    (tmp_path / "a 1").unlink()
    assert loop.text(2, 0).startswith(folder + b"/a'2$(x)")
    assert not tools.calls()


def test_a_tool_s_output_and_status(start, tools):
    tools.write("both", "echo out; echo err >&2; echo out again; exit 3")
    tools.write("input", "cat; echo end")
    loop = start(*(Asked("x", f"run {tool}") for tool in ("both", "input", "no-such-tool -q")), Asked("", "run both"))
    loop.ask(1, 0, 1, 2)
    both, given, missing = loop.frames(3)
    assert (both.probe, both.status, both.body) == (0, 3, b"out\nerr\nout again")
    assert (given.probe, given.status, given.body) == (1, 0, b"end")
    assert (missing.probe, missing.status) == (2, 127)
    assert b"not found" in missing.body
    assert loop.text(2, 3) == b"out\nerr\nout again"


def test_the_same_again_is_not_sent_again(start, tools):
    tools.prints("tool", b"as ever\n")
    loop = start(Asked("x", "run tool"), Asked("x", "run tool --other"))
    assert loop.text(1, 0) == b"as ever"
    loop.ask(2, 0)
    assert loop.frame() == Frame(SAME, 0, 2, 0)
    assert loop.text(3, 1) == b"as ever"
    tools.prints("tool", b"otherwise\n")
    assert loop.text(4, 0) == b"otherwise"
    tools.prints("tool", b"as ever\n")
    assert loop.text(5, 0) == b"as ever"


def test_the_same_words_with_another_status_are_another_answer(start, tools):
    tools.prints("tool", b"words\n", status=0)
    loop = start(Asked("x", "run tool"))
    loop.ask(1, 0)
    assert loop.frame() == Frame(WHOLE, 0, 1, 0, b"words")
    tools.prints("tool", b"words\n", status=9)
    loop.ask(2, 0)
    assert loop.frame() == Frame(WHOLE, 0, 2, 9, b"words")
    loop.ask(3, 0)
    assert loop.frame() == Frame(SAME, 0, 3, 9)


def test_a_log_that_grows_rotates_and_is_emptied(start, tools):
    tools.prints("log", b"ours 1\nnoise\nours 2\n")
    loop = start(Asked("k", "grow '^ours|^\\[x\\*\\?' log"))
    assert loop.text(1, 0) == b"ours 1\nours 2"

    def then(request, output, status=0) -> Frame:
        tools.prints("log", output, status)
        loop.ask(request, 0)
        return loop.frame()

    assert then(2, b"ours 1\nnoise\nours 2\nmore noise\n") == Frame(SAME, 0, 2, 0)
    assert then(3, b"ours 1\nours 2\nours 3\nours 4\n") == Frame(MORE, 0, 3, 0, b"ours 3\nours 4")
    assert then(4, b"ours 1\nours 2\nours 3\nours 4\n[x*?\n") == Frame(MORE, 0, 4, 0, b"[x*?")
    # A pattern's own characters in what was said before are no pattern.
    assert then(5, b"ours 1\nours 2\nours 3\nours 4\n[x*?\nours \\5\n") == Frame(MORE, 0, 5, 0, b"ours \\5")
    assert then(6, b"ours 4\n[x*?\nours \\5\nours 6\n") == Frame(WHOLE, 0, 6, 0, b"ours 4\n[x*?\nours \\5\nours 6")
    # A longer last line is not a line more.
    assert then(7, b"ours 4\n[x*?\nours \\5\nours 66\n").mark is WHOLE
    assert then(8, b"") == Frame(WHOLE, 0, 8, 0, b"")
    assert then(9, b"noise\n") == Frame(SAME, 0, 9, 0)
    assert then(10, b"ours new\n") == Frame(WHOLE, 0, 10, 0, b"ours new")
    assert then(11, b"ours new\nno end") == Frame(SAME, 0, 11, 0)
    assert then(12, b"ours new\nours too") == Frame(MORE, 0, 12, 0, b"ours too")


def test_a_log_that_is_refused_says_so(start, tools):
    tools.prints("log", b"ours\nnoise\n")
    loop = start(Asked("k", "grow '^ours' log"), Asked("k", "grow '^ours' no-such-log"), Asked("", "grow '^ours' log"))
    assert loop.text(1, 0) == b"ours"
    tools.write("log", "echo ours; echo not permitted >&2; exit 4")
    loop.ask(2, 0, 1, 2)
    frames = {frame.probe: frame for frame in loop.frames(3)}
    assert sorted(frames[0].body.split(b"\n")) == [b"not permitted", b"ours"]
    assert (frames[0].mark, frames[0].status) == (WHOLE, 4)
    assert (frames[1].status, b"not found" in frames[1].body) == (127, True)
    assert (frames[2].status, sorted(frames[2].body.split(b"\n"))) == (4, [b"not permitted", b"ours"])


def test_a_log_that_cannot_be_searched(start, tools):
    tools.write("grep", "echo grep is broken >&2; exit 2")
    tools.prints("log", b"ours\n")
    loop = start(Asked("k", "grow 'ours' log"))
    loop.ask(1, 0)
    assert loop.frame() == Frame(WHOLE, 0, 1, 2, b"")


def test_outputs_arrive_to_the_byte(start, tools):
    loop = start(*(Asked("x", f"run tool{number}") for number in range(len(OUTPUTS))), LC_CTYPE="C.UTF-8")
    for number, (printed, _) in enumerate(OUTPUTS):
        tools.prints(f"tool{number}", printed)
    loop.ask(1, *range(len(OUTPUTS)))
    assert [frame.body for frame in loop.frames(len(OUTPUTS))] == [heard for _, heard in OUTPUTS]
    loop.ask(2, *range(len(OUTPUTS)))
    assert {frame.mark for frame in loop.frames(len(OUTPUTS))} == {SAME}


def test_a_megabyte_and_what_grows_behind_it(start, tools):
    lines = b"".join(b"%07d %s\n" % (n, b"\x81\x88\xff*?[]\\" * 8) for n in range(15_000))
    assert len(lines) > 2**20
    tools.prints("tool", lines)
    loop = start(Asked("x", "run tool"), Asked("k", "grow '^[0-9]' tool"))
    loop.ask(1, 0, 1)
    assert {frame.body for frame in loop.frames(2)} == {lines.rstrip(b"\n")}
    tools.prints("tool", lines + b"1 more\n")
    loop.ask(2, 1)
    assert loop.frame() == Frame(MORE, 1, 2, 0, b"1 more")


def test_output_without_end_costs_one_lane_one_answer(start, tools):
    tools.write("tool", "exec yes and so on and on and on")
    tools.prints("other", b"well\n")
    tools.prints("large", b"x" * 8 * 2**20 + b"\n")
    tools.prints("too-large", b"x" * 9 * 2**20 + b"\n")
    loop = start(
        Asked("a", "run other"),
        *(Asked("b", f"run {name}") for name in ("tool", "other", "large", "too-large")),
    )
    loop.ask(1, 1, 2, 0)
    assert loop.frame() == Frame(WHOLE, 0, 1, 0, b"well")
    lost, behind = loop.frames(2)
    assert (lost.mark, lost.probe) == (LOST, lanes_of([Asked("a", ""), Asked("b", "")]).index("b"))
    assert behind == Frame(WHOLE, 2, 1, 0, b"well")
    # What is as long as allowed goes through, and does so again.
    assert len(loop.text(2, 3)) == 8 * 2**20
    loop.ask(3, 3, 4)
    same, refused = loop.frames(2)
    assert same == Frame(SAME, 3, 3, 0)
    assert (refused.status, refused.body) == (1, b"it printed more than 8388608 bytes")


def test_the_tools_are_not_bound_by_what_binds_the_shell(start, tools):
    tools.write("tool", "ulimit -Sv; ulimit -Hv")
    loop = start(Asked("x", "run tool"))
    here = subprocess.run(["sh", "-c", "ulimit -Sv; ulimit -Hv"], capture_output=True, check=True).stdout
    assert loop.text(1, 0) == here.rstrip(b"\n")


def test_a_hung_tool_holds_up_its_lane_only(start, tools):
    gate = tools.gate("hangs")
    tools.prints("well", b"well\n")
    loop = start(
        Asked("a", "run hangs"),
        Asked("a", "run well"),
        Asked("b", "run well"),
        Asked("", "files /proc/sys/kernel/ostype"),
    )
    loop.ask(1, 0, 1, 2, 3)
    assert {(frame.probe, frame.mark) for frame in loop.frames(2)} == {(2, WHOLE), (3, WHOLE)}
    loop.ask(2, 2, 3)
    assert {(frame.probe, frame.mark) for frame in loop.frames(2)} == {(2, SAME), (3, SAME)}
    assert loop.silent()
    let_go(gate)
    assert loop.frames(2) == [Frame(WHOLE, 0, 1, 0, b"free"), Frame(WHOLE, 1, 1, 0, b"well")]


def test_no_second_copy_of_what_runs(start, tools):
    gate = tools.gate("hangs")
    loop = start(Asked("a", "run hangs"))
    for request in (1, 2, 3):
        loop.ask(request, 0)
    for request in (1, 2, 3):
        let_go(gate, f"the {request}.")
        assert loop.frame() == Frame(WHOLE, 0, request, 0, f"the {request}.".encode())
        assert tools.calls()["hangs"] <= request + 1


def test_answers_never_interleave(start, tools):
    """Five lanes and the loop itself, two hundred requests each, with answers of all sizes."""
    tools.write("tool", 'head -c "$1" "$0.output"; echo " $1"')
    (tools.folder / "tool.output").write_bytes(b"= ~ + 1\n" * 12_000)
    rng = random.Random(7)  # noqa: S311
    sizes = [rng.choice([0, 1, 100, 5_000, 65_536, 90_000]) for _ in range(30)]
    probes = [Asked(f"lane{n % 5}", f"run tool {size}") for n, size in enumerate(sizes)]
    probes += [Asked("", "files /proc/uptime /proc/sys/kernel/random/uuid")]
    loop = start(*probes)
    wanted = Counter()
    for request in range(1, 34):
        numbers = [*range(30), 30, 30, 30]
        rng.shuffle(numbers)
        wanted.update((number, request) for number in numbers)
        loop.ask(request, *numbers)
    frames = loop.frames(wanted.total())
    assert Counter((frame.probe, frame.request) for frame in frames) == wanted
    for frame in frames:
        if frame.probe < 30:
            size = sizes[frame.probe]
            assert frame.mark is SAME or frame.body == ((b"= ~ + 1\n" * 12_000)[:size] + b" %d" % size)
    for number in range(30):
        assert [frame.request for frame in frames if frame.probe == number] == list(range(1, 34))
    assert loop.silent()


def test_the_end_of_the_input_ends_everything(start, tools):
    gate = tools.gate("hangs")
    tools.write("nested", "trap '' HUP TERM INT; (sh -c 'sleep 1000'; true) & sleep 1000; true")
    tools.prints("well", b"well\n")
    loop = start(Asked("a", "run hangs"), Asked("b", "run nested"), Asked("c", "run well"))
    loop.ask(1, 0, 1, 2)
    assert loop.frame().probe == 2
    with gate.open("w"):  # opened by both: the tool has started
        while list(loop.group().values()).count("sleep") < 2:
            os.sched_yield()
        running = loop.group()
        assert "hangs" in running.values()
        loop.process.stdin.close()
        assert everybody_ended(running)
    assert not loop.group()


def test_a_client_that_dies_while_everything_prints(start, tools):
    """Nobody reads on: what prints is told so by a signal, while it holds the right to print."""
    tools.gate("hangs")
    tools.prints("much", b"x" * 2**20)
    loop = start(Asked("a", "run hangs"), Asked("b", "run much"), Asked("c", "run much"), Asked("", "run much"))
    loop.ask(1, 0, 1, 2, 3)
    assert select.select([loop.process.stderr], [], [], PATIENCE_S)[0]
    while tools.calls() != {"hangs": 1, "much": 3}:
        os.sched_yield()
    running = loop.group()
    loop.process.stdout.close()
    loop.process.stderr.close()
    loop.process.stdin.close()
    assert everybody_ended(running)


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_to_the_loop_ends_everything(start, tools, sent):
    with_gate = tools.gate("hangs")
    loop = start(Asked("a", "run hangs"))
    loop.ask(1, 0)
    with with_gate.open("w"):
        running = loop.group()
        os.kill(loop.process.pid, sent)
        # A shell that waits for input acts on a signal at once or when a line comes.
        with suppress(BrokenPipeError):
            loop.send(b"2\n")
        assert everybody_ended(running)


def test_the_lanes_end_with_a_loop_that_is_killed(start, tools):
    tools.prints("well", b"well\n")
    lanes = ("a", "b", "c", "d", "e")
    loop = start(*(Asked(lane, "run well") for lane in lanes))
    loop.ask(1, *range(5))
    loop.frames(5)
    running = loop.group()
    assert len(running) >= 1 + len(lanes)
    loop.process.kill()
    assert everybody_ended(running)


def test_the_client_dies_while_it_sends_the_program(shell, tools):
    """Half a program does nothing: least of all does it leave something behind."""
    before = litter()
    text = program([Asked("a", "run x")])
    for length in (text.index(b"for d in"), text.index(b"rm -f"), text.rindex(b"kill"), len(text) - 11, len(text) - 6):
        done = subprocess.run(
            shell.split(),
            input=text[:length],
            capture_output=True,
            check=False,
            env=tools.env(),
            start_new_session=True,
        )
        assert b"\nlumctl-loop " not in done.stderr or text[:length].endswith(b"main;")
        assert done.stdout == b""
    assert litter() == before


def test_no_file_is_left(start):
    before = litter()
    loop = start(Asked("a", "files /proc/uptime"), Asked("b", "files /proc/uptime"))
    assert litter() == before
    loop.ask(1, 0, 1)
    assert len(loop.frames(2)) == 2


def test_a_name_that_is_taken_leaves_none_of_the_others(shell, tools):
    """Somebody else has one of the names where it is tried first: the next folder is taken."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108
        pytest.skip("no /dev/shm here")
    script = tools.folder / "taken"
    script.write_text(f"mkdir /dev/shm/lumctl.$$.4; exec {shell}")
    loop = Loop(f"sh {script}", [Asked("a", "run echo"), Asked("b", "run echo yes")], tools.env())
    taken = Path(f"/dev/shm/lumctl.{loop.process.pid}.4")  # noqa: S108
    try:
        assert isinstance(loop.frame(), Greeting)
        assert loop.text(1, 1) == b"yes"
        assert litter() & set(Path("/dev/shm").glob(f"lumctl.{loop.process.pid}.*")) == {taken}  # noqa: S108
    finally:
        taken.rmdir()
        loop.close()


def test_where_no_fifo_can_be_made(shell, tools):
    tools.write("mkfifo", "exit 1")
    text = program([Asked("a", "run x")])
    done = subprocess.run(
        shell.split(), input=text, capture_output=True, check=False, env=tools.env(), start_new_session=True
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"lumctl: no FIFO can be made here\n"


def test_requests_that_make_no_sense_do_no_harm(start):
    loop = start(Asked("", "files /proc/sys/kernel/ostype"))
    loop.send(b"\n  \n1\n2 \n3 99 0\n")
    unknown, known = loop.frames(2)
    assert (unknown.probe, unknown.request, unknown.status, unknown.body) == (99, 3, 127, b"")
    assert (known.probe, known.request) == (0, 3)


def test_a_name_with_odd_characters_is_one_word(start, tools):
    odd = r"""a"b'c$(id)`id`;d &|<>*?\n%s@NAMES@ #~!{x}[y]"""
    tools.write("tool", 'printf "<%s>" "$@"')
    loop = start(Asked("x", f"run tool -m {shlex.quote(odd)}"), Asked("", f"files /no/{shlex.quote(odd)}/x"))
    assert loop.text(1, 0) == f"<-m><{odd}>".encode()
    assert loop.text(2, 1) == b""


def test_what_the_login_left_in_the_environment_changes_nothing(start, tools):
    tools.prints("tool", b"x" * 200_000)
    left = {"was0": "x", "rc0": "0", "out": "exported", "old": "exported", "more": "1", "ENV": "/no/such", "nl": ""}
    loop = start(Asked("x", "run tool"), **left)
    # An exported variable of ours would make each tool's environment too long.
    assert len(loop.text(1, 0)) == 200_000
    loop.ask(2, 0)
    assert loop.frame() == Frame(SAME, 0, 2, 0)


def test_the_lanes_are_in_the_order_of_their_first_probe():
    assert lanes_of([Asked("", "x"), Asked("b", "x"), Asked("a", "x"), Asked("b", "x")]) == ("b", "a")
    assert lanes_of([]) == ()


def test_more_lanes_than_a_shell_can_open():
    assert program([Asked(f"lane{n}", "run x") for n in range(5)])
    with pytest.raises(ValueError, match="6 lanes; the loop has room for 5"):
        program([Asked(f"lane{n}", "run x") for n in range(6)])


@pytest.mark.parametrize("number", range(len(OUTPUTS)))
def test_straight_from_the_tool_is_what_the_shell_would_have_said(start, tools, number):
    said, heard = OUTPUTS[number]
    tools.prints("tool", said, status=number)
    loop = start(Asked("x", "run tool"))
    assert loop.directly(1, 0) == Frame(WHOLE, 0, 1, number, heard)
    loop.ask(2, 0)
    assert loop.frame() == Frame(WHOLE, 0, 2, number, heard)
    assert loop.directly(3, 0) == Frame(WHOLE, 0, 3, number, heard)


def test_the_ends_of_tools_that_print_straight_to_us(start, tools):
    tools.write("both", "echo out; echo err >&2; echo out again; exit 3")
    tools.write("input", "cat; echo end")
    tools.write("killed", "echo half; kill -9 $$")
    loop = start(*(Asked("x", f"run {tool}") for tool in ("both", "input", "no-such-tool -q", "killed")))
    loop.ask_directly(1, 0, 1, 2, 3)
    both, given, missing, killed = loop.printed(4)
    assert both == Frame(WHOLE, 0, 1, 3, b"out\nerr\nout again")
    assert given == Frame(WHOLE, 1, 1, 0, b"end")
    assert (missing.probe, missing.status, b"not found" in missing.body) == (2, 127, True)
    # Some shells add a word of their own, such as "Killed".
    assert (killed.probe, killed.status, killed.body[:4]) == (3, 137, b"half")
    assert loop.silent()


def test_what_came_straight_from_the_tool_is_compared_with_nothing(start, tools):
    tools.prints("tool", b"as ever\n")
    loop = start(Asked("x", "run tool"), Asked("x", "run tool --other"))
    loop.ask(1, 0, 1)
    assert [frame.mark for frame in loop.frames(2)] == [WHOLE, WHOLE]
    tools.prints("tool", b"otherwise\n")
    assert loop.directly(2, 0).body == b"otherwise"
    tools.prints("tool", b"as ever\n")
    loop.ask(3, 0, 1)
    assert loop.frames(2) == [Frame(WHOLE, 0, 3, 0, b"as ever"), Frame(SAME, 1, 3, 0)]
    loop.ask(4, 0)
    assert loop.frame() == Frame(SAME, 0, 4, 0)


def test_a_tool_that_hangs_while_it_prints_straight_to_us(start, tools):
    gate = tools.gate("hangs")
    tools.write("half", 'echo half; exec "${0%half}hangs"')
    (tools.folder / "half.gate").symlink_to(gate)
    tools.prints("well", b"well\n")
    loop = start(
        Asked("a", "run half"), Asked("a", "run well"), Asked("b", "run well"), Asked("", "files /proc/uptime")
    )
    loop.ask_directly(1, 0, 1)
    for request in range(2, 5):
        loop.ask(request, 2, 3)
        assert {frame.probe for frame in loop.frames(2)} == {2, 3}
    let_go(gate)
    assert loop.printed(2) == [Frame(WHOLE, 0, 1, 0, b"half\nfree"), Frame(WHOLE, 1, 1, 0, b"well")]
    loop.ask_directly(5, 0)
    with gate.open("w"):
        running = loop.group()
        assert "hangs" in running.values()
        loop.process.stdin.close()
        assert everybody_ended(running)
    assert not loop.group()


def test_what_cannot_come_straight_from_a_tool_is_answered_all_the_same(start, tools):
    tools.prints("log", b"ours\n")
    tools.prints("silent-log", b"")
    here = set(Path().iterdir())
    loop = start(
        Asked("k", "grow '^ours' log"),
        Asked("k", "grow '^ours' silent-log"),
        Asked("k", "files /proc/sys/kernel/ostype"),
        Asked("k", "files /no/such/file"),
        Asked("", "run log"),
        Asked("", "files /proc/sys/kernel/ostype"),
    )
    loop.ask_directly(1, 0, 1, 2, 3, 4, 5, 99)
    frames = {frame.probe: frame for frame in loop.frames(5)}
    assert frames == {
        0: Frame(WHOLE, 0, 1, 0, b"ours"),
        2: Frame(WHOLE, 2, 1, 0, b"/proc/sys/kernel/ostype:Linux"),
        4: Frame(WHOLE, 4, 1, 0, b"ours"),
        5: Frame(WHOLE, 5, 1, 0, b"/proc/sys/kernel/ostype:Linux"),
        99: Frame(WHOLE, 99, 1, 127, b""),
    }
    # What is nothing is told either way.
    assert loop.printed(2) == [Frame(WHOLE, 1, 1, 0, b""), Frame(WHOLE, 3, 1, 0, b"")]
    tools.prints("log", b"ours\nours too\n")
    loop.ask_directly(2, 0, 1)
    assert loop.frame() == Frame(MORE, 0, 2, 0, b"ours too")
    assert loop.printed() == [Frame(WHOLE, 1, 2, 0, b"")]
    loop.ask(3, 0, 1, 2)
    assert loop.frames(3) == [Frame(SAME, 0, 3, 0), Frame(WHOLE, 1, 3, 0, b""), Frame(SAME, 2, 3, 0)]
    assert loop.silent()
    assert set(Path().iterdir()) == here


def test_ten_megabytes_straight_from_a_tool_hold_up_nobody_else(start, tools):
    tools.prints("most", b"x" * 8 * 2**20 + b"\n")
    tools.prints("more", b"x" * 10 * 2**20 + b"\n")
    tools.prints("well", b"well\n")
    loop = start(Asked("a", "run most"), Asked("a", "run more"), Asked("a", "run well"), Asked("b", "run well"))
    loop.ask_directly(1, 0, 1, 2)
    for request in range(2, 12):
        loop.ask(request, 3)
        # The tool waits: nobody takes what it prints.
        assert loop.frames(read_directly=False)[0].request == request
    most, more, well = loop.printed(3)
    assert (most.status, len(most.body)) == (0, 8 * 2**20)
    assert (more.status, more.body) == (1, b"it printed more than 8388608 bytes")
    assert well == Frame(WHOLE, 2, 1, 0, b"well")


def test_a_tool_cannot_see_what_marks_its_answer_s_end(start, tools):
    tools.write("tool", "env; cat /proc/$$/environ /proc/$$/cmdline /proc/$PPID/environ /proc/$PPID/cmdline")
    left = {"token": "x", "id": "x", "ids": "x", "n": "x", "rest": "x", "v": "x"}
    loop = start(Asked("x", "run tool"), Asked("y", "run tool"), Asked("", "run tool"), **left)
    # Nor can those that are asked for in the same line.
    loop.send(f"1 0>{loop.token} 1 2\n".encode())
    for frame in loop.printed() + loop.frames(2):
        assert b"PATH=" in frame.body
        assert loop.token.encode() not in frame.body


def test_the_channel_is_in_the_hands_of_those_who_print_on_it(start, tools):
    tools.write("fds", "echo here; exec ls -l /proc/self/fd")
    loop = start(Asked("a", "run fds"), Asked("a", "grow . fds"), Asked("", "run fds"), Asked("b", "run fds"))
    output, frames = (
        os.fsencode(Path(f"/proc/self/fd/{stream.fileno()}").readlink())
        for stream in (loop.process.stdout, loop.process.stderr)
    )
    loop.ask(1, 0, 1, 2, 3)
    for frame in loop.frames(4):
        assert frame.body.count(b"pipe:") > 0
        assert (output in frame.body, frames in frame.body) == (False, False), frame
    body = loop.directly(2, 0).body
    assert [line.split()[-3] for line in body.splitlines() if output in line] == [b"1", b"2"]
    assert frames not in body


def test_a_shell_that_is_lost_while_a_tool_prints_straight_to_us(start, tools):
    tools.write("tool", "echo half; kill -9 $PPID")
    tools.prints("well", b"well\n")
    loop = start(Asked("a", "run tool"), Asked("a", "run well"), Asked("b", "run well"))
    loop.ask_directly(1, 0, 1)
    assert loop.frame() == Frame(LOST, 0, 0, 137)
    (well,) = loop.printed()
    assert (well.probe, well.request, well.status) == (1, 1, 0)
    loop.ask(2, 1, 2)
    assert {frame.body for frame in loop.frames(2)} == {b"well"}


def test_an_end_that_cannot_be_told_is_no_silence(start, tools):
    """A tool may leave the output so that a full one is not waited for."""
    tools.write("tool", 'exec python3 -c "$(cat "$0.py")"')
    (tools.folder / "tool.py").write_text(
        "import os\nos.set_blocking(1, False)\ntry:\n    while os.write(1, bytes(1)): pass\n"
        "except BlockingIOError: pass\n"
    )
    loop = start(Asked("a", "run tool"), Asked("b", "run tool"))
    loop.ask_directly(1, 0)
    (frame,) = loop.frames(read_directly=False)
    assert (frame.mark, frame.probe) == (LOST, 0)


def test_a_client_that_dies_while_a_tool_prints_straight_to_it(start, tools):
    tools.gate("hangs")
    tools.prints("much", b"x" * 2**20)
    loop = start(Asked("a", "run hangs"), Asked("b", "run much"), Asked("c", "run much"))
    loop.ask(1, 0, 2)
    loop.ask_directly(2, 1)
    for stream in (loop.process.stdout, loop.process.stderr):
        assert select.select([stream], [], [], PATIENCE_S)[0]
    while tools.calls() != {"hangs": 1, "much": 2}:
        os.sched_yield()
    running = loop.group()
    loop.process.stdout.close()
    loop.process.stderr.close()
    loop.process.stdin.close()
    assert everybody_ended(running)


def test_answers_of_both_kinds_never_mix(start, tools):
    """One lane prints straight to us, three others and the loop itself by frames, all as fast as they can."""
    tools.write("tool", 'head -c "$1" "$0.output"; echo " $1"')
    (tools.folder / "tool.output").write_bytes(b"= ~ + 1\n" * 12_000)
    rng = random.Random(8)  # noqa: S311
    sizes = [rng.choice([0, 1, 100, 5_000, 65_536, 90_000]) for _ in range(16)]
    loop = start(*(Asked(f"lane{n % 4}", f"run tool {size}") for n, size in enumerate(sizes)), Asked("", "run tool 7"))
    of_one_lane = [n for n in range(16) if n % 4 == 0]
    others = [n for n in range(17) if n not in of_one_lane]
    for request in range(1, 16):
        loop.ask_directly(request, *of_one_lane)
        loop.ask(request, *others)
    printed, frames = loop.printed(15 * len(of_one_lane)), loop.frames(15 * len(others))
    assert [(frame.probe, frame.request) for frame in printed] == [(n, r) for r in range(1, 16) for n in of_one_lane]
    assert Counter((f.probe, f.request) for f in frames) == Counter((n, r) for r in range(1, 16) for n in others)
    for frame in [*printed, *frames]:
        size = [*sizes, 7][frame.probe]
        assert frame.mark is SAME or frame.body == ((b"= ~ + 1\n" * 12_000)[:size] + b" %d" % size)
    assert loop.silent()
