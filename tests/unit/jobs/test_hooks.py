"""Hooks of jobs as real programs: what they are told, what their answers mean, and that none outlives who asked."""

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lumctl.context import Context
from lumctl.errors import ExitCode, RefusedError
from lumctl.inventory.job_run import JobHook
from lumctl.inventory.load import example, load_inventory
from lumctl.jobs import HookFailedError, HookRefusedError, Hooks, passed_over, require_hooks, without_hook
from lumctl.jobs.hooks import ON_SIM, Facts, may_take_s, never_on_sim
from lumctl.store import store_at

SOON_S = 20.0
TELLS = """#!/bin/sh
env | grep ^LUMCTL_ | sort >> {folder}/told
echo "$LUMCTL_ACT" >> {folder}/acts
"""
PAUSES = TELLS + "echo paused > {folder}/state\n"
RESUMES = TELLS + "echo running > {folder}/state\n"
STATES = "#!/bin/sh\ncat {folder}/state\n"
FACTS = Facts("swap-0007", ["s1-gpu0"], ["s3-gpu0"])


class Job:
    """The job ``finetune`` of the four-server rack, whose hook is made of scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hook = JobHook(self.script("pause", PAUSES), self.script("resume", RESUMES), timeout_s=SOON_S)
        self.state("running")

    def script(self, name: str, text: str) -> tuple[str, ...]:
        path = self.folder / name
        path.write_text(text.replace("{folder}", str(self.folder)))
        path.chmod(0o755)
        return (str(path),)

    def with_status(self, text: str = STATES) -> None:
        self.hook = replace(self.hook, status=self.script("status", text))

    def state(self, word: str) -> None:
        (self.folder / "state").write_text(word + "\n")

    @property
    def acts(self) -> list[str]:
        acts = self.folder / "acts"
        return acts.read_text().split() if acts.exists() else []

    @property
    def inventory(self):
        inventory = load_inventory(example("prototype"))
        jobs = {**inventory.jobs, "finetune": replace(inventory.jobs["finetune"], hook=self.hook)}
        return replace(inventory, jobs=jobs)

    def context(self, target: str = "rack") -> Context:
        return Context(self.inventory, target, store=lambda _rack: store_at(str(self.folder / "store")))


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


@pytest.fixture
def hooks(job):
    """The hooks of the job as it is then."""
    opened = []

    def made(target="rack"):
        opened.append(job.context(target))
        return Hooks(opened[-1], "finetune", FACTS)

    yield made
    for context in opened:
        context.close()


def test_it_is_told_of_its_run_by_the_environment_and_not_by_a_shell(job, hooks):
    job.hook = replace(job.hook, pause=(*job.hook.pause, f"$(touch {job.folder}/never)"))
    assert hooks().pause() == {"was": "running", "is": "paused"}
    told = dict(line.split("=", 1) for line in (job.folder / "told").read_text().splitlines())
    ranks = json.loads(told.pop("LUMCTL_RANKS"))
    assert ranks == [{"rank": n, "accelerator": f"s{n}-gpu0", "host": f"s{n}"} for n in range(3)]
    assert {key: told[key] for key in told if key in {f"LUMCTL_{word}" for word in WORDS}} == {
        "LUMCTL_JOB": "finetune",
        "LUMCTL_ACT": "pause",
        "LUMCTL_RACK": "prototype",
        "LUMCTL_TARGET": "rack",
        "LUMCTL_RUN": "swap-0007",
        "LUMCTL_FAILED": "s1-gpu0",
        "LUMCTL_SPARES": "s3-gpu0",
    }
    assert not (job.folder / "never").exists()


WORDS = ("JOB", "ACT", "RACK", "TARGET", "RUN", "FAILED", "SPARES")


def test_a_job_that_is_quiet_already_is_not_paused_and_one_that_runs_not_resumed(job, hooks):
    job.with_status()
    job.state("stopped")
    assert hooks().pause() == {"was": "stopped", "is": "stopped"}
    job.state("running")
    assert hooks().resume() == {"was": "running", "is": "running"}
    assert job.acts == []
    assert hooks().pause()["is"] == "paused"
    assert hooks().resume()["was"] == "paused"
    assert job.acts == ["pause", "resume"]


def test_one_that_says_no_is_told_of_with_its_last_line_and_nothing_of_it_moves_a_cursor(job, hooks):
    job.script("pause", "#!/bin/sh\nprintf 'why\\nthe queue is \\033[2Jclosed\\n'\nexit 3\n")
    with pytest.raises(HookRefusedError, match=r"exit code 3: the queue is \[2Jclosed$") as error:
        hooks().pause()
    assert error.value.exit_code is ExitCode.REFUSED


def test_its_last_lines_are_kept(job, hooks):
    job.script("resume", "#!/bin/sh\nfor i in 1 2 3 4 5 6 7; do echo line $i; done\n")
    assert hooks().resume()["said"] == "\n".join(f"line {n}" for n in range(3, 8))


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("LUMCTL_RUNS_AT=s0-gpu0,s3-gpu0", "s0-gpu0,s3-gpu0"),
        ("LUMCTL_RUNS_AT=s9\nmoved\n  LUMCTL_RUNS_AT=s0, s3", "s0,s3"),
        ("LUMCTL_RUNS_AT=", None),
        ("ranks: 0-7", None),
        ("LUMCTL_RANKS=[]", None),
    ],
)
def test_where_the_job_runs_is_known_if_a_hook_says_so_and_not_otherwise(job, hooks, line, ranks):
    job.script("resume", f"#!/bin/sh\necho '{line}'\necho queued\n")
    told = hooks().resume()
    assert (told.get("ranks"), told["said"].splitlines()[-1]) == (ranks, "queued")
    assert "RUNS_AT" not in told["said"]
    job.with_status(f"#!/bin/sh\necho running\necho '{line}'\n")
    assert hooks().resume() == {"was": "running", "is": "running"} | ({} if ranks is None else {"ranks": ranks})


def test_a_line_that_names_a_thousand_ranks_is_read_whole(job, hooks):
    names = ",".join(f"h{number:04}-gpu0" for number in range(1000))
    job.script("resume", f"#!/bin/sh\necho LUMCTL_RUNS_AT={names}\n")
    assert hooks().resume()["ranks"] == names


def test_one_that_takes_too_long_is_ended_with_all_that_it_started(job, hooks):
    job.script("pause", "#!/bin/sh\ntrap '' TERM\nsleep 300 &\necho $! > {folder}/child\nwait\nsleep 300\n")
    job.hook = replace(job.hook, timeout_s=0.5)
    with pytest.raises(HookFailedError, match=r"did not end within 0.5 s and was killed"):
        hooks().pause()
    assert is_gone(int((job.folder / "child").read_text()))


def test_one_that_is_asked_to_end_may_take_its_time(job, hooks):
    job.script("pause", "#!/bin/sh\ntrap 'echo saved; exit 0' TERM\nsleep 300 & wait\n")
    job.hook = replace(job.hook, timeout_s=0.5)
    with pytest.raises(HookFailedError, match=r"was killed: saved"):
        hooks().pause()


def test_one_that_a_signal_has_ended_did_not_say_no(job, hooks):
    job.script("pause", "#!/bin/sh\nkill -KILL $$\n")
    with pytest.raises(HookFailedError, match=r"exit code 137"):
        hooks().pause()


def test_a_pause_that_does_not_pause_is_found_out(job, hooks):
    job.with_status()
    job.script("pause", "#!/bin/sh\n")
    with pytest.raises(HookFailedError, match="the job is still running"):
        hooks().pause()


@pytest.mark.parametrize("says", ["echo perhaps", "echo running; exit 1", "true"])
def test_a_status_that_does_not_tell_is_no_leave_to_go_on(job, hooks, says):
    job.with_status(f"#!/bin/sh\n{says}\n")
    with pytest.raises(HookFailedError, match="is unknown: its status hook did not report it"):
        hooks().status()
    with pytest.raises(HookRefusedError, match="did not report it"):
        hooks().pause()
    assert job.acts == []


def test_the_first_word_of_a_status_counts(job, hooks):
    job.with_status("#!/bin/sh\necho 'Running since noon'\n")
    assert hooks().status() == "running"
    job.with_status("#!/bin/sh\necho 'stopped by hand'\n")
    assert hooks().status() == "stopped"


def test_a_program_that_is_not_there_is_found_out_before_anything_is_touched(job):
    job.hook = replace(job.hook, status=("no-such-program",))
    with job.context() as context, pytest.raises(RefusedError, match="the status hook of job finetune cannot be run"):
        require_hooks(context, ["finetune"])
    (job.folder / "pause").chmod(0o644)
    with job.context() as context, pytest.raises(RefusedError, match="pause is not executable"):
        require_hooks(context, ["finetune"])


def test_a_simulator_s_job_is_not_the_real_one(job):
    with job.context("sim") as context:
        assert passed_over(context, "finetune") == ON_SIM
        require_hooks(context, ["finetune"])
    job.hook = replace(job.hook, on_sim=True)
    with job.context("sim") as context:
        assert passed_over(context, "finetune") is None
    assert never_on_sim(job.inventory).jobs["finetune"].hook == replace(job.hook, on_sim=False)


def test_jobs_without_a_hook_are_named(job, hooks):
    inventory = load_inventory(example("prototype"))
    assert without_hook(job.inventory, ["finetune"]) == ()
    (warning,) = without_hook(inventory, ["finetune"])
    assert warning.startswith("job finetune has no hook: pause or stop it")
    assert (may_take_s(inventory, "finetune"), may_take_s(job.inventory, "finetune")) == (0.0, 75.0)
    job.hook = None
    with pytest.raises(RefusedError, match="job finetune has no hook in"):
        hooks()


ASKS = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_hooks import Job
from lumctl.jobs import Hooks
job = Job(Path({folder!r}))
told = "echo $$ > {folder}/hook.tmp; mv {folder}/hook.tmp {folder}/hook"
job.script("pause", f"#!/bin/sh\\n{{told}}; trap '' TERM; sleep 300; sleep 300\\n")
with job.context() as context:
    print("asking", flush=True)
    Hooks(context, "finetune").pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells a program elsewhere that its parent has died")
def test_no_hook_outlives_who_asked_and_the_next_one_waits_for_its_end(job, hooks):
    code = ASKS.format(path=[str(Path(__file__).parent)], folder=str(job.folder))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout.readline() == "asking\n"
        watched = os.pidfd_open(eventually(job.folder / "hook"))  # before it can end
        os.kill(asking.pid, signal.SIGKILL)
    job.script("pause", PAUSES)
    try:
        hooks().pause()
        assert select.select([watched], [], [], 0)[0], "the next hook ran beside it"
    finally:
        os.close(watched)


def eventually(path: Path) -> int:
    """The process that a file names, once it is there."""
    import time

    ends = time.monotonic() + SOON_S
    while not path.exists():
        assert time.monotonic() < ends
        time.sleep(0.01)
    return int(path.read_text())


def is_gone(pid: int) -> bool:
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], SOON_S)[0])
    finally:
        os.close(watched)
