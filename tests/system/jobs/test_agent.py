"""An agent as the process it is, with real workers: who starts, who ends, who is silent, and who may ask."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from agents import HEARTBEAT_S, Agents, Coordinator, end, listed

from lumctl.errors import RefusedError, UsageError
from lumctl.training.agent import open_agent
from lumctl.training.agent.worker_table import KEPT, KEPT_BYTES, LONGEST_BYTES
from lumctl.training.protocol import MessageLine

TREE = "sleep 300 & echo $!; wait"


@pytest.fixture
def agents():
    agents = Agents()
    yield agents
    agents.close()


@pytest.fixture
def job(agents):
    """A folder and a coordinator of its agent."""
    folder = agents.folder()
    coordinator = agents.coordinator(folder, who="the first")
    assert coordinator.until("list")["workers"] == []
    return folder, coordinator


def test_how_workers_end_is_told(job):
    folder, coordinator = job
    coordinator.start("a#1", "sh", "-c", "echo one; echo two >&2; exit 3")
    assert coordinator.until("exited")["code"] == 3
    coordinator.start("a/b#2", "sh", "-c", "kill -TERM $$")
    ended = coordinator.until("exited")
    assert (ended["worker"], ended["code"], ended["signal"]) == ("a/b#2", None, signal.SIGTERM)
    assert (folder / "a#1.log").read_text() == "one\ntwo\n"
    coordinator.worker("a#1")  # the records are written after an end is reported
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == dict.fromkeys(
        ["a#1.log", "a%2fb#2.log", "agent", "errors", "lock", "workers.json"], "0o600"
    )


def test_the_last_line_of_one_that_never_got_ready_is_told(job):
    folder, coordinator = job
    (folder / "a#1.log").write_text("of a run before\n")
    coordinator.start("a#1", "sh", "-c", "exit 1")
    assert coordinator.until("exited")["printed"] == ""
    words = "import os, signal; print('no data is here', flush=True); os.kill(os.getpid(), signal.SIGTERM)"
    coordinator.start("a#2", sys.executable, "-I", "-c", words)
    ended = coordinator.until("exited")
    assert (ended["signal"], ended["printed"]) == (signal.SIGTERM, "no data is here")
    coordinator.start_worker("a#3")
    coordinator.do("a#3", do="exit", code=4)
    assert coordinator.until("exited")["printed"] == ""
    coordinator.start_worker("a#4")
    coordinator.do("a#4", do="exit", code=0)
    assert "printed" not in coordinator.until("exited")


def test_one_that_dies_before_it_is_ready_is_told_of_once_with_its_reason(job):
    _, coordinator = job
    program = HOLDER.replace(' {{"say": "ready"}}', "").replace("line.recv(1)", "print('out of memory', flush=True)")
    program = program.format(root=str(Path(__file__).parents[3]), then="os.kill(os.getpid(), 9)")
    assert '"ready"' not in program
    coordinator.start("a#1", sys.executable, "-c", program)
    assert coordinator.until("exited")["printed"] == "out of memory"
    assert coordinator.told("dying") == []


def test_what_workers_print_is_kept_within_bounds(job):
    folder, coordinator = job
    for number in range(1, KEPT + 3):
        coordinator.start(f"a#{number}", "sh", "-c", f"echo {number}")
        coordinator.until("exited")
    kept = {path.name: path.read_text() for path in folder.glob("*.log")}
    # Those that have ended when the last one is started, and that one.
    assert kept == {f"a#{number}.log": f"{number}\n" for number in range(2, KEPT + 3)}
    coordinator.start("b#1", "sh", "-c", f"yes a line of a worker | head -c {LONGEST_BYTES + 1}; echo; echo the last")
    coordinator.until("exited")
    before = folder / "b#1.log.1"
    assert before.stat().st_size <= KEPT_BYTES
    lines = before.read_text().splitlines()
    assert set(lines[:-2]) == {"a line of a worker"}
    assert lines[-1] == "the last"
    assert "bytes of this log were removed" in (folder / "b#1.log").read_text()


HOLDER = """
import os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from lumctl.training import death_lock
memory = bytearray(b"1") * (256 << 20)
import json, socket
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["LUMCTL_JOB_SOCKET"])
held = death_lock.hold(Path(os.environ["LUMCTL_JOB_DEATH_WATCH"]))
for message in ({{"say": "hello", "worker": "a#1", "pid": os.getpid(), "death_watch": held}}, {{"say": "ready"}}):
    line.sendall(json.dumps(message).encode() + b"\\n")
line.recv(1)
{then}
"""


@pytest.mark.parametrize(
    ("then", "code", "number"),
    [
        ("os.kill(os.getpid(), 9)", None, 9),
        ("raise SystemExit(3)", 3, None),
        ("os.execvp('sleep', ['sleep', '60'])", None, 9),
    ],
)
def test_a_worker_is_seen_to_die_and_to_end(job, then, code, number):
    folder, coordinator = job
    program = HOLDER.format(root=str(Path(__file__).parents[3]), then=then)
    coordinator.start("a#1", sys.executable, "-c", program, heartbeat_s=30)
    coordinator.until("said", worker="a#1", say="ready")
    coordinator.do("a#1", do="end")
    ended = coordinator.until("exited", worker="a#1")
    assert (ended["code"], ended["signal"]) == (code, number)
    told = [message["tell"] for message in coordinator.heard]
    # On a busy machine the end of one that has little to give back may be seen first; of another program, never.
    assert told.count("dying") == 1 or "exec" not in then
    assert not (folder / "a#1.life").exists()


def test_a_worker_that_cannot_be_started_has_failed_with_a_reason(job):
    folder, coordinator = job
    coordinator.start("a#1", "no-such-program")
    assert "no-such-program cannot be run: No such file" in coordinator.until("said")["message"]["error"]
    assert coordinator.until("exited")["code"] == 127
    coordinator.start("a#2", "true", folder="/no/such/folder")
    assert "its folder /no/such/folder cannot be entered" in coordinator.until("said")["message"]["error"]
    assert coordinator.until("exited")["code"] == 127
    (folder / "a#3.log").mkdir()
    coordinator.start("a#3", "true")
    assert "a#3.log cannot be written: Is a directory" in coordinator.until("said")["message"]["error"]
    assert not coordinator.worker("a#3")["alive"]
    assert [each["alive"] for each in json.loads((folder / "workers.json").read_text())["workers"]] == [False] * 3


def test_what_a_worker_is_given(job, tmp_path):
    folder, coordinator = job
    coordinator.start(
        "a#1", "sh", "-c", "env; pwd; cat", folder=str(tmp_path), environment={"LUMCTL_JOB": "j"}, heartbeat_s=16
    )
    assert coordinator.until("exited")["code"] == 0
    said = (folder / "a#1.log").read_text().splitlines()
    assert said[-1] == str(tmp_path)
    assert sorted(line for line in said if line.startswith("LUMCTL_JOB")) == [
        "LUMCTL_JOB=j",
        "LUMCTL_JOB_ACCELERATOR=a",
        "LUMCTL_JOB_BEAT_S=2",
        f"LUMCTL_JOB_DEATH_WATCH={folder}/a#1.life",
        f"LUMCTL_JOB_FOLDER={folder}",
        f"LUMCTL_JOB_SOCKET={folder}/agent",
        "LUMCTL_JOB_WORKER=a#1",
    ]


def test_messages_are_relayed_and_the_last_words_come_before_the_end(job):
    _, coordinator = job
    coordinator.start_worker("a#1")
    coordinator.do("a#1", do="say", message={"say": "held", "generation": 4, "done": 17})
    said = coordinator.until("said", say="held")
    assert (said["worker"], said["message"]["done"]) == ("a#1", 17)
    coordinator.do("a#1", do="exit", code=0)
    assert coordinator.until("exited")["code"] == 0
    assert coordinator.heard[-2]["message"] == {"say": "ended", "done": 7}
    last = coordinator.worker("a#1")["last"]
    assert list(last)[-2:] == ["held", "ended"]


def test_a_kill_takes_the_whole_group(job):
    folder, coordinator = job
    for word in ("asked", "done"):
        coordinator.start(f"{word}#1", "sh", "-c", TREE)
        coordinator.ask("list")
        worker = listed(coordinator.until("list"), f"{word}#1")["pid"]
        child = first_line_of(folder / f"{word}#1.log")
        watched = os.pidfd_open(child)
        if word == "asked":
            coordinator.ask("kill", worker="asked#1")
        else:
            os.kill(worker, signal.SIGKILL)
        ended = coordinator.until("exited", worker=f"{word}#1")
        assert (ended["code"], ended["signal"]) == (None, signal.SIGKILL)
        assert select.select([watched], [], [], 10)[0]
        os.close(watched)
    coordinator.ask("kill", worker="asked#1")
    refused = coordinator.until("refused")
    assert (refused["ask"], refused["worker"], refused["why"]) == ("kill", "asked#1", "worker asked#1 has ended")


def first_line_of(log):
    with subprocess.Popen(["tail", "-n", "+1", "-F", log], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tail:
        line = tail.stdout.readline()
        tail.terminate()
    return int(line)


def test_a_worker_that_stands_still_is_silent_and_is_heard_again(job):
    _, coordinator = job
    coordinator.start_worker("a#1")
    coordinator.start_worker("b#1")
    pid = coordinator.worker("a#1")["pid"]
    os.kill(pid, signal.SIGSTOP)
    silent = coordinator.until("silent")
    assert silent["worker"] == "a#1"
    assert HEARTBEAT_S <= silent["for_s"] < 1.3 * HEARTBEAT_S
    assert coordinator.worker("a#1")["silent"]
    os.kill(pid, signal.SIGCONT)
    assert coordinator.until("heard")["worker"] == "a#1"
    assert [told["worker"] for told in coordinator.told("silent")] == ["a#1"]
    os.kill(pid, signal.SIGSTOP)
    coordinator.until("silent", worker="a#1")
    coordinator.ask("kill", worker="a#1")
    assert coordinator.until("exited")["signal"] == signal.SIGKILL


def test_an_agent_that_stood_still_itself_accuses_nobody(agents, job):
    folder, coordinator = job
    coordinator.start_worker("a#1")
    clock = agents.coordinator(agents.folder())
    clock.start_worker("b#1")
    stopped = clock.worker("b#1")["pid"]
    os.kill(agents.pid(folder), signal.SIGSTOP)
    for _ in range(2):  # more than a heartbeat goes by
        os.kill(stopped, signal.SIGSTOP)
        clock.until("silent")
        os.kill(stopped, signal.SIGCONT)
        clock.until("heard")
    os.kill(agents.pid(folder), signal.SIGCONT)
    coordinator.do("a#1", do="say", message={"say": "saved", "done": 1, "path": "/p"})
    coordinator.until("said", say="saved")
    assert coordinator.told("silent") == []


def test_a_killed_agent_is_followed_by_one_that_finds_its_workers(agents, job):
    folder, coordinator = job
    for name in ("a#1", "b#1", "c#1"):
        coordinator.start_worker(name)
    pids = {name: coordinator.worker(name)["pid"] for name in ("a#1", "b#1", "c#1")}
    end(agents.pid(folder))
    assert coordinator.hung_up()
    end(pids["b#1"])
    after = agents.coordinator(folder)
    workers = {each["worker"]: each for each in after.until("list")["workers"]}
    assert {name: (each["alive"], each["pid"]) for name, each in workers.items()} == {
        "a#1": (True, pids["a#1"]),
        "b#1": (False, pids["b#1"]),
        "c#1": (True, pids["c#1"]),
    }
    assert workers["a#1"]["last"]["ready"]
    after.do("a#1", do="exit", code=3)
    ended = after.until("exited")
    assert (ended["worker"], ended["code"], ended["signal"]) == ("a#1", None, None)
    assert after.worker("a#1")["last"]["ended"]
    after.ask("kill", worker="c#1")
    assert after.until("exited")["worker"] == "c#1"


def test_a_coordinator_that_comes_back_gets_the_list(agents, job):
    folder, coordinator = job
    coordinator.start_worker("a#1")
    coordinator.start_worker("b#1")
    worker = coordinator.worker("b#1")["pid"]
    coordinator.line.close()
    end(worker)
    after = agents.coordinator(folder)
    told = after.until("list")
    assert after.heard == [told]
    assert listed(told, "a#1")["last"]["ready"]
    if listed(told, "b#1")["alive"]:
        after.until("exited")
    assert after.worker("b#1")["signal"] == signal.SIGKILL


def test_one_coordinator_at_a_time(agents, job):
    folder, first = job
    second = agents.coordinator(folder, who="the second")
    assert second.until("taken") == {"tell": "taken", "by": "the first"}
    assert second.hung_up()
    third = agents.coordinator(folder, take=True, who="the third")
    assert third.until("list")["workers"] == []
    assert first.until("taken")["by"] == "the third"
    assert first.hung_up()
    third.start("a#1", "true")
    assert third.until("exited")["code"] == 0


@pytest.mark.parametrize(
    "line",
    [b"nonsense\n", b"[]\n", b'{"ask": 1}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"],
    ids=["word", "list", "no-ask", "no-text", "deep"],
)
def test_who_sends_what_is_no_message_is_hung_up_on(agents, job, line):
    folder, coordinator = job
    with agents.raw(folder) as stranger:
        stranger.sendall(line)
        theirs = Coordinator(MessageLine(stranger))
        assert "closed the connection to" in theirs.until("refused")["why"]
        assert theirs.hung_up()
    assert f"the agent closed the connection to process {os.getpid()}" in coordinator.until("refused")["why"]
    with agents.raw(folder) as stranger:
        stranger.sendall(b'{"say": "hello", "worker": "a#1", "pid": 1}\n')
        assert "a#1 is not a process of one of our workers" in coordinator.until("refused")["why"]


def test_a_coordinator_and_a_worker_that_break_the_line(agents, job):
    folder, coordinator = job
    coordinator.start_worker("a#1")
    coordinator.do("a#1", do="say", message={"no": "word"})
    assert "the agent closed the connection to worker a#1" in coordinator.until("refused")["why"]
    coordinator.until("said", worker="a#1", say="hello")
    coordinator.line._connection.sendall(b"nonsense\n")
    assert "the agent closed the connection to the first" in coordinator.until("refused")["why"]
    assert coordinator.hung_up()
    assert listed(agents.coordinator(folder).until("list"), "a#1")["alive"]


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        ({"ask": "dance"}, "unknown request 'dance'"),
        ({"ask": "start", "worker": "a#1", "accelerator": "a", "argv": "true"}, "argv must be a program"),
        ({"ask": "start", "worker": "", "accelerator": "a", "argv": ["true"]}, "worker must be a name"),
        ({"ask": "tell", "worker": "a#1", "message": {}}, "worker a#1 does not exist here"),
        ({"ask": "kill", "worker": "a#1"}, "worker a#1 does not exist here"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(job, ask, why):
    _, coordinator = job
    coordinator.line.send(ask)
    refused = coordinator.until("refused")
    assert refused["ask"] == ask["ask"]
    assert why in refused["why"]


def test_a_name_that_lives_is_not_given_twice(job):
    _, coordinator = job
    coordinator.start_worker("a#1")
    coordinator.start("a#1", "true")
    assert "worker a#1 already exists" in coordinator.until("refused")["why"]
    coordinator.do("a#1", do="exit", code=0)
    coordinator.until("exited")
    coordinator.start("a#1", "sh", "-c", "exit 9")
    assert coordinator.until("exited")["code"] == 9


def test_an_agent_ends_when_told_but_not_while_a_worker_lives(agents, job):
    folder, coordinator = job
    pid = agents.pid(folder)
    coordinator.start_worker("a#1")
    coordinator.ask("quit")
    assert coordinator.until("refused")["why"] == "the agent does not end while workers are running: a#1"
    coordinator.ask("kill", worker="a#1")
    coordinator.until("exited")
    coordinator.ask("quit")
    assert coordinator.hung_up()
    assert sorted(path.name for path in folder.iterdir()) == ["a#1.log", "errors"]
    assert (folder / "errors").read_text() == ""
    assert agents.coordinator(folder).until("list")["workers"] == []
    assert agents.pid(folder) != pid


def test_a_coordinator_that_calls_again_replaces_itself(agents, job):
    folder, first = job
    first.start_worker("a#1")
    again = agents.coordinator(folder, who="the first")  # its own line is cut, and the agent has not noticed
    assert [each["worker"] for each in again.until("list")["workers"]] == ["a#1"]
    assert first.hung_up()
    assert first.told("taken") == []
    again.ask("who", who="the first of all")  # and it is known by each of its names
    again.worker("a#1")
    assert agents.coordinator(folder, who="the first").until("list")["workers"]
    assert agents.coordinator(folder, who="another").until("taken")["by"] == "the first"


def test_many_who_open_an_agent_at_once_reach_the_same_one(agents):
    folder = agents.folder()
    lines = []

    def open_as(number):
        lines.append(open_agent(folder, who=f"number {number}"))

    openers = [threading.Thread(target=open_as, args=(number,)) for number in range(4)]
    for each in openers:
        each.start()
    for each in openers:
        each.join()
    words = sorted(agents.line(line).line.receive()["tell"] for line in lines)
    assert words == ["list", "taken", "taken", "taken"]


def test_an_agent_is_nobodys_child_and_one_of_its_kind(agents, job):
    folder, _ = job
    pid = agents.pid(folder)
    assert os.getsid(pid) == pid
    serve = [sys.executable, "-m", "lumctl.training.agent", "serve", str(folder)]
    again = subprocess.run(serve, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr.splitlines()[0]) == (
        5,
        f"error: an agent already serves {folder} (pid {pid})",
    )
    usage = subprocess.run(serve[:3], capture_output=True, text=True, check=False)
    assert (usage.returncode, usage.stderr[:13]) == (2, "error: usage:")


def test_a_folder_that_is_not_private_or_too_deep_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(RefusedError, match="is not a private folder of this user"):
        open_agent(tmp_path)
    with pytest.raises(UsageError, match=r"would have a path of .* bytes, but at most 107 are possible"):
        open_agent(tmp_path / ("x" * 100))


def test_an_agent_loads_nothing_large():
    listing = "import sys, lumctl.training.agent.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "typer", "torch", "sqlalchemy", "paramiko", "yaml", "asyncio"} & set(loaded)
