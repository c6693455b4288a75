"""Swaps of a job that a real Slurm runs: drained, requeued, released on the spare's node; and only what is ours."""

import getpass
import re
import socket
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from lumctl_slurm.cluster import SlurmHookEntry
from lumctl_slurm.control import Slurm as Control
from racks import rack_of
from slurm import Slurm

from lumctl import change as engine
from lumctl.cli.top.hosts import scheduled
from lumctl.errors import RefusedError, RolledBackError
from lumctl.jobs import Hooks
from lumctl.jobs.control import Facts, JobContext, Rank
from lumctl.programs import run_program
from lumctl.swap import plan_return, plan_rollback

HOOK = "    hook: {kind: slurm, on_sim: true, timeout_s: 20, nodes: {s0: n0, s1: n1, s2: n2, s3: n3}}\n"
MOVED = "n[0,2-3]"


def edited(text: str) -> str:
    """The four-server rack, whose job ``finetune`` is Slurm's."""
    head, job, rest = text.partition("  - name: finetune\n")
    return head + job + HOOK + rest


@pytest.fixture(scope="module")
def cluster(require_program):
    slurm = Slurm(require_program, 4)
    yield slurm
    slurm.close()


@pytest.fixture
def slurm(cluster, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    yield cluster
    cluster.clear()


@pytest.fixture
def rack(tmp_path):
    yield from rack_of("prototype", tmp_path, edited=edited)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    yield from rack_of("prototype", tmp_path_factory.mktemp("shared"), edited=edited)


@pytest.fixture
def untouched(shared):
    """A rack on which nothing is to change."""
    before, inventory = shared.cells(), shared.inventory
    yield shared
    shared.inventory = shared.context.inventory = inventory
    assert shared.cells() == before


@pytest.fixture
def job(slurm):
    """The job, as it runs on the nodes of its ranks."""
    number = slurm.submit("finetune", "--nodes=3", "--nodelist=n0,n1,n2", "--requeue")
    slurm.runs(number, "n[0-2]")
    return number


def is_as_it_was(slurm, job) -> None:
    slurm.until(lambda: slurm.job(job) == ("RUNNING", "n[0-2]"))
    states = {"n0": "allocated", "n1": "allocated", "n2": "allocated", "n3": "idle"}
    slurm.until(lambda: slurm.states() == states)  # one that was given back is asked again whether it is there
    assert {slurm.reason(node) for node in slurm.names} == {"none"}


def change(rack, **settings) -> None:
    """Change the hook of the job."""
    jobs = rack.inventory.jobs
    job = replace(jobs["finetune"], hook=replace(jobs["finetune"].hook, **settings))
    rack.inventory = rack.context.inventory = replace(rack.inventory, jobs={**jobs, "finetune": job})


def steps(rack, run) -> list[dict]:
    """What the job's control told of each step."""
    return [e.data["hook"] for e in rack.store.journal.of_run(run) if e.kind == "outcome" and "hook" in e.data]


def test_a_swap_moves_it_to_the_spare_s_node_and_a_rollback_moves_it_back(rack, slurm, job):
    result = engine.apply(rack.context, rack.lost())
    assert slurm.job(job) == ("RUNNING", MOVED)
    assert slurm.states() == {"n0": "allocated", "n1": "drained", "n2": "allocated", "n3": "allocated"}
    assert slurm.reason("n1") == f"lumctl {result.run}: s1-gpu0 replaced by s3-gpu0"
    paused, resumed = steps(rack, result.run)
    assert (paused["slurm_job"], paused["is"], paused["drained"], resumed["is"]) == (job, "paused", "n1", "running")
    assert "lumctl" not in slurm("scontrol", "show", "job", job).stdout

    rack.clear()
    slurm.runs(job, MOVED)
    engine.apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(result.run)))
    is_as_it_was(slurm, job)


def test_light_that_is_not_proved_gives_back_what_is_ours(rack, slurm, job):
    plan = rack.lost()
    rack.spoil(plan)
    with pytest.raises(RolledBackError):
        engine.apply(rack.context, plan)
    is_as_it_was(slurm, job)


def test_a_node_that_somebody_else_drained_is_left_as_it_is(rack, slurm, job):
    slurm("scontrol", "update", "nodename=n1", "state=drain", "reason=fan 3 is loud")
    plan = rack.lost()
    result = engine.apply(rack.context, plan)
    told = "node n1 was draining by somebody else: fan 3 is loud; it is left unchanged"
    assert steps(rack, result.run)[0]["said"] == told
    assert (slurm.reason("n1"), slurm.job(job)) == ("fan 3 is loud", ("RUNNING", MOVED))


def test_so_is_it_when_a_swap_is_taken_back_and_so_is_a_job_that_somebody_else_holds(rack, slurm, job):
    slurm("scontrol", "requeuehold", job)
    slurm("scontrol", "update", "nodename=n1", "state=drain", "reason=fan 3 is loud")
    slurm.until(lambda: slurm.job(job)[0] == "PENDING")
    plan = rack.lost()
    rack.spoil(plan)
    with pytest.raises(RolledBackError):
        engine.apply(rack.context, plan)
    assert (slurm.reason("n1"), slurm.job(job)[0]) == ("fan 3 is loud", "PENDING")
    rack.clear()
    result = engine.apply(rack.context, rack.lost())
    assert (slurm.job(job)[0], slurm.reason("n1")) == ("PENDING", "fan 3 is loud")
    assert f"scontrol release {job}" in steps(rack, result.run)[1]["said"]
    slurm("scontrol", "release", job)
    slurm("scontrol", "update", f"jobid={job}", "StartTime=now+1")
    slurm.until(lambda: slurm.job(job) == ("RUNNING", MOVED))  # it goes where its light is


def test_a_spare_s_node_that_somebody_else_drained_lets_the_job_wait_and_says_so(rack, slurm, job):
    change(rack, timeout_s=2.0)
    slurm("scontrol", "update", "nodename=n3", "state=drain", "reason=for a guest")
    result = engine.apply(rack.context, rack.lost())
    said = steps(rack, result.run)[1]["said"]
    assert "node n3 is drained, but not by lumctl (for a guest): it stays so" in said
    assert f"job {job} waits: " in said
    assert (slurm.job(job)[0], slurm.reason("n3")) == ("PENDING", "for a guest")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "Slurm has no job named nobody in its queue"),
        (("--no-requeue", "--nodes=3", "--nodelist=n0,n1,n2"), "was not requeued"),
        (("--nodes=1", "--nodelist=n3"), "runs on n3, but lumctl has it on n0, n1, n2"),
    ],
    ids=["absent", "never-requeued", "elsewhere"],
)
def test_what_cannot_be_requeued_is_refused_and_nothing_is_touched(untouched, slurm, options, says):
    if not options:
        settings = untouched.context.inventory.jobs["finetune"].hook.settings.model_copy(update={"job": "nobody"})
        change(untouched, settings=settings)
    number = slurm.submit("finetune", *(options or ("--nodes=1",)))
    slurm.until(lambda: slurm.job(number)[0] == "RUNNING")
    states = slurm.states()
    with pytest.raises((RefusedError, RolledBackError), match=says):
        engine.apply(untouched.context, untouched.lost())
    assert slurm.job(number)[0] == "RUNNING"
    slurm.until(lambda: slurm.states() == states)


def test_two_jobs_of_one_name_are_told_of(untouched, slurm, job):
    other = slurm.submit("finetune", "--nodes=1", "--hold")
    with pytest.raises(RefusedError, match=f"2 of job named finetune: {job} of .*, {other} of|{other} of .*, {job} of"):
        engine.apply(untouched.context, untouched.lost())
    assert slurm.job(job)[0] == "RUNNING"


def test_a_controller_that_is_down_is_told_of_and_nothing_is_done(untouched, slurm, job, monkeypatch, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = free.getsockname()[1]
    text = (slurm.folder / "slurm.conf").read_text()
    text = re.sub("(?m)^SlurmctldPort=.*", f"SlurmctldPort={nobody}", text)
    (tmp_path / "slurm.conf").write_text(text.replace("MessageTimeout=5", "MessageTimeout=1"))
    plan = untouched.lost()
    with monkeypatch.context() as patched:
        patched.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
        with pytest.raises((RefusedError, RolledBackError), match="Unable to contact slurm controller") as error:
            engine.apply(untouched.context, plan)
    assert "slurmctld" in str(error.value.hint)
    is_as_it_was(slurm, job)


def test_its_state_is_told(untouched, slurm, job):
    hooks = Hooks(untouched.context, "finetune")
    assert hooks.status() == "running"
    slurm("scontrol", "requeuehold", job)
    slurm.until(lambda: slurm.job(job)[0] == "PENDING")
    assert hooks.status() == "paused"
    slurm("scontrol", "release", job)
    assert hooks.status() == "running"  # it may begin at any moment
    slurm("scancel", job)
    slurm.until(lambda: slurm.job(job)[0] == "CANCELLED")
    assert hooks.status() == "stopped"


FACTS, ON_N0 = Facts("swap-1", ["n0-g0"], ["n0-g1"]), [Rank(0, "n0-g0", "n0", 0)]


@pytest.fixture
def control(slurm):  # noqa: ARG001 - the one that Slurm's commands find
    """The control of job ``train`` on ``n0``; a function of the test's is called before each command."""

    def control(before=lambda _argv: None):
        def run(argv, **more):
            before(argv)
            return run_program(argv, **{key: value for key, value in more.items() if key != "act"})

        settings = SlurmHookEntry.model_validate({"kind": "slurm"})
        where = (Path("inventory.yaml"), lambda: ON_N0, lambda accelerator: accelerator.partition("-")[0], str)
        return Control(JobContext("train", "rack", 20.0, settings, *where, run, time.monotonic, time.sleep))

    return control


def test_one_that_ended_at_the_beginning_of_a_second_is_not_started_in_that_second(slurm, control):
    number = slurm.submit("train", "--nodes=1", "--nodelist=n0", "--requeue")
    slurm.runs(number, "n0")
    time.sleep(-time.time() % 1)  # slurmd would refuse what is allotted to a job in the second in which it ended it
    control().pause(FACTS, ON_N0)
    assert control().resume(FACTS, ON_N0)["is"] == "running"
    slurm.until(lambda: slurm.script_runs(number))
    assert slurm.job(number) == ("RUNNING", "n0")


def held_and_marked(slurm, number) -> tuple[bool, str]:
    """Whether a job has no priority, and what we wrote to it."""
    asked = ("squeue", "--noheader", f"--jobs={number}")
    comment = slurm(*asked, "--Format=admin_comment:100").stdout.strip()
    return slurm(*asked, "--format=%Q").stdout.strip() == "0", comment


def begins_before_it_is_held(slurm, number):
    """Have a job that waits begin after it was looked at and before it is held, which Slurm takes all the same."""

    def before(argv):
        if argv[:2] == ["scontrol", "hold"]:
            slurm("scontrol", "update", f"jobid={number}", "StartTime=now")
            slurm.runs(number, "n0")

    return before


def test_one_that_begins_before_it_is_held_is_requeued_and_released(slurm, control):
    number = slurm.submit("train", "--nodes=1", "--nodelist=n0", "--requeue", "--begin=now+1hour")
    told = control(begins_before_it_is_held(slurm, number)).pause(FACTS, ON_N0)
    assert (told["was"], told["is"], slurm.job(number)[0]) == ("running", "paused", "PENDING")
    assert held_and_marked(slurm, number) == (True, "lumctl swap-1: requeued")
    assert control().resume(FACTS, ON_N0)["is"] == "running"
    assert (slurm.job(number), held_and_marked(slurm, number)) == (("RUNNING", "n0"), (False, ""))


def test_one_that_begins_and_is_never_requeued_is_not_left_held(slurm, control):
    number = slurm.submit("train", "--nodes=1", "--nodelist=n0", "--no-requeue", "--begin=now+1hour")
    with pytest.raises(RefusedError, match=f"job {number} was not requeued"):
        control(begins_before_it_is_held(slurm, number)).pause(FACTS, ON_N0)
    assert (slurm.job(number), held_and_marked(slurm, number)) == (("RUNNING", "n0"), (False, ""))


def test_one_that_runs_and_was_held_by_a_run_that_was_cut_is_released(slurm, control):
    number = slurm.submit("train", "--nodes=1", "--nodelist=n0", "--requeue")
    slurm.until(lambda: slurm.job(number)[0] == "RUNNING")
    slurm("scontrol", "update", f"jobid={number}", "AdminComment=lumctl swap-1: held")
    slurm("scontrol", "hold", number)
    assert held_and_marked(slurm, number)[0]
    control().resume(FACTS, ON_N0)
    assert (slurm.job(number), held_and_marked(slurm, number)) == (("RUNNING", "n0"), (False, ""))


def test_whose_job_runs_on_an_accelerator_and_on_its_host(slurm, untouched, job):
    other = slurm.submit("other", "--nodes=1", "--nodelist=n3")
    slurm.runs(other, "n3")
    hooks, user = Hooks(untouched.context, "finetune", only_asks=True), getpass.getuser()
    (own,) = hooks.scheduled()
    assert (own.id, own.user, own.state, own.name) == (job, user, "RUNNING", "finetune")
    assert re.fullmatch(r"[\d:-]+", own.elapsed)
    assert [each.id for each in hooks.scheduled("s0")] == [job]
    assert [(each.id, each.name) for each in hooks.scheduled("s3")] == [(other, "other")]
    cx = SimpleNamespace(inventory=untouched.inventory, target="sim")
    facts = dict(scheduled(cx, "s0-gpu0"))
    # Each row is read on its own, so a second may pass between the two.
    told = f"{job} (finetune) of {user}, RUNNING, for "
    assert [facts[row].startswith(told) for row in ("job finetune", "on s0")] == [True, True]
    assert list(dict(scheduled(cx, "s3-gpu0"))) == ["on s3"]
    assert scheduled(cx, "mesh") == ()


@pytest.mark.usefixtures("slurm")
def test_a_scheduler_that_does_not_tell_is_unknown(untouched, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/no/such/slurm.conf")
    cx = SimpleNamespace(inventory=untouched.inventory, target="sim")
    facts = dict(scheduled(cx, "s0-gpu0"))
    assert facts.keys() == {"job finetune", "on s0"}
    assert all(said.startswith("unknown: ") for said in facts.values())


def with_filler(text: str) -> str:
    """The same rack, with a filler job of Slurm's on its spare."""
    hook = "{kind: slurm, on_sim: true, timeout_s: 20, nodes: {s3: n3}}"
    return f"{edited(text)}\nfillers:\n  - {{name: batch, ranks: s3-gpu0, hook: {hook}}}\n"


def test_a_filler_job_on_a_spare_is_requeued_and_held_until_the_rank_has_returned(tmp_path, slurm, job):
    filler = slurm.submit("batch", "--nodes=1", "--nodelist=n3", "--requeue")
    slurm.runs(filler, "n3")
    made = rack_of("prototype", tmp_path, edited=with_filler)
    rack = next(made)
    try:
        engine.apply(rack.context, rack.lost())
        assert slurm.job(job) == ("RUNNING", MOVED)
        assert slurm.job(filler)[0] == "PENDING"
        assert slurm.states()["n1"] == "drained"  # by the job that lost a rank; the filler job asks nothing of n1

        rack.clear()
        with rack.another_context() as later:  # the session to the host was cut
            engine.apply(later, plan_return(later, "finetune"))
        slurm.runs(job, "n[0-2]")
        slurm.runs(filler, "n3")
        assert {slurm.reason(node) for node in slurm.names} == {"none"}
    finally:
        next(made, None)
