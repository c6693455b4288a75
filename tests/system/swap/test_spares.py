"""``lumctl spare list`` agrees with assignment and devices: through a swap, its rollback, a return, and kill -9."""

import json
import os
import signal
import sys
import time
from dataclasses import replace

import pytest

from lumctl.change import apply
from lumctl.change.resumption import abort, resume
from lumctl.spares.ledger import SpareState
from lumctl.swap import plan_return, plan_rollback, plan_swap
from lumctl.swap.spare_pool import pool_ledgers, ranks_to_replace

SPARE, HOME = "s3-gpu0", "s1-gpu0"
FREE = {SPARE: (SpareState.FREE, None)}
RANK = ("finetune", 1)


@pytest.fixture(scope="module")
def rack(rack_of, tmp_path_factory):
    made = rack_of("prototype", tmp_path_factory.mktemp("spares"))
    yield next(made)
    next(made, None)


def pool(context):
    (found,) = pool_ledgers(context, context.observe(), racks=["prototype"])
    return found


def states(context):
    return {e.accelerator.id: (e.state, e.move.run if e.move else None) for e in pool(context).entries}


def lit(rack, accelerator):
    """Whether the lanes of an accelerator really transmit; all of them do, or none."""
    on = rack.transmitters()
    (found,) = {on[lane.id] for lane in rack.inventory.transponders_of(accelerator)}
    return found


def later(rack):
    """When the lease of a dead engine has ended."""
    return rack.another_context(now=lambda: time.time() + 60)


def test_through_a_swap_its_rollback_and_a_return(rack):
    assert states(rack.context) == FREE
    plan = rack.lost()
    (need,) = pool(rack.context).needs
    assert (need.failed.accelerator, need.failed.rank, need.served) == (HOME, 1, True)

    swap = apply(rack.context, plan).run
    taken = {SPARE: (SpareState.TAKEN, swap), HOME: (SpareState.IN_REPAIR, swap)}
    assert states(rack.context) == taken
    by_id = {entry.accelerator.id: entry for entry in pool(rack.context).entries}
    assert (by_id[SPARE].place, by_id[HOME].home, by_id[HOME].taken_by) == (RANK, RANK, SPARE)
    assert "fallen off" in by_id[HOME].reasons[0] or "off the bus" in by_id[HOME].reasons[0]
    assert (lit(rack, SPARE), lit(rack, HOME)) == (True, False)
    assert pool(rack.context).needs == ()

    rack.clear()
    rollback = apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(swap))).run
    assert states(rack.context) == FREE
    again = apply(rack.context, plan_rollback(rack.context, rack.store.runs.get(rollback))).run
    assert states(rack.context) == {SPARE: (SpareState.TAKEN, again), HOME: (SpareState.REPAIRED, again)}
    (entry,) = [e for e in pool(rack.context).entries if e.state is SpareState.REPAIRED]
    assert entry.reasons == ()

    apply(rack.context, plan_return(rack.context, "finetune"))
    assert states(rack.context) == FREE
    assert all(rack.ok_circuits("finetune"))


@pytest.mark.parametrize("finish", [resume, abort])
@pytest.mark.parametrize("write", [2, 4, 6, "last"])
def test_after_kill_9_at_a_write_of_the_journal(rack, write, finish):
    plan = plan_swap(rack.context, "finetune", [HOME], even_if_healthy=True)
    run = killed(rack, plan, write)
    assert rack.context.assignment()["finetune"][1] == HOME  # the placement is recorded with the end of the run
    assert states(rack.context)[SPARE] == (SpareState.MOVING, run.id)
    with later(rack) as context:
        (entry,) = [each for each in pool(context).entries if each.accelerator.id == SPARE]
        assert entry.interrupted
        finish(context, context.store("prototype").runs.get(run.id))
    if finish is resume:
        assert states(rack.context) == {SPARE: (SpareState.TAKEN, run.id), HOME: (SpareState.REPAIRED, run.id)}
        assert rack.context.assignment()["finetune"][1] == SPARE
        assert (lit(rack, SPARE), lit(rack, HOME)) == (True, False)
        apply(rack.context, plan_return(rack.context, "finetune"))
    assert states(rack.context) == FREE
    assert rack.context.assignment()["finetune"][1] == HOME
    assert lit(rack, HOME)
    assert all(rack.ok_circuits("finetune"))


def killed(rack, plan, write):
    """Kill an engine and its guard before a write into the journal, or when only the placement is to be recorded."""
    last = {"stands_after": str(len(plan.steps) - 1)}
    how = last if write == "last" else {"before": write, "signal": signal.SIGSTOP}
    with rack.engine(plan, **how) as engine:
        rack.await_stop(engine)
        os.kill(rack.guard, signal.SIGKILL)
        engine.kill()
    run = rack.store.runs.all()[0]
    assert run.state == "running"
    return run


def test_after_kill_9_between_the_placement_and_the_end_of_a_run(rack_of, tmp_path):
    hook = '  - name: finetune\n    hook: {pause: ["true"], resume: ["true"], on_sim: true}\n'
    made = rack_of("prototype", tmp_path, edited=lambda text: text.replace("  - name: finetune\n", hook))
    rack = next(made)
    try:
        plan = plan_swap(rack.context, "finetune", [HOME], even_if_healthy=True)
        assert plan.steps[-1].resumes_job
        run = killed(rack, plan, 8)  # only the resumed job is to be recorded, with the end
        assert rack.context.assignment()["finetune"][1] == SPARE
        # The rank is placed, but the run may still take it back.
        assert states(rack.context)[SPARE] == (SpareState.MOVING, run.id)
        assert states(rack.context)[HOME] == (SpareState.MOVING, run.id)
        with later(rack) as context:
            abort(context, context.store("prototype").runs.get(run.id))
        assert states(rack.context) == FREE
        assert rack.context.assignment()["finetune"][1] == HOME
        assert lit(rack, HOME)
    finally:
        next(made, None)


def test_an_unread_spare_is_unknown_and_no_rank_can_have_it(rack):
    rack.sim.inject("s3", "unreachable")
    try:
        seen = rack.context.observe()
        assert states(rack.context)[SPARE][0] is SpareState.UNKNOWN
        reasons = [reason for each in ranks_to_replace(seen, SPARE) for reason in each.reasons]
        assert reasons
        assert all("is unknown" in reason or "lane" in reason for reason in reasons)
    finally:
        rack.clear()


def test_the_commands(shell_of, rack):
    lumctl = shell_of(rack.inventory.path, rack.folder / "sim")
    lumctl("fabric", "apply", "--yes", "--as-written", code=0)
    rack.sim.inject(HOME, "gpu-lost")
    try:
        listed = lumctl("spare", "list", code=0).stdout
        assert "1 spare for 3 ranks: 1 free, 0 taken, 0 out" in listed
        assert "1 rank needs a spare now (s1-gpu0): a spare fits it: lumctl swap plan" in " ".join(listed.split())
        plan = json.loads(lumctl("swap", "plan", "finetune", "--failed", HOME, "-o", "json", code=0).stdout)["id"]
        lumctl("swap", "apply", plan, "--yes", code=0)
        listed = lumctl("spare", "list", code=0).stdout
        assert "repair s1-gpu0; then return 1 rank of finetune:\n    lumctl swap plan finetune --back" in listed
        assert lumctl("spare", "list", "--free", "-o", "name", code=0).stdout == ""
        rack.clear()
        document = json.loads(lumctl("spare", "list", "-o", "json", code=0).stdout)
        assert document["schema"] == "lumctl/spares/v1"
        assert [(e["accelerator"], e["state"], e["rank"]) for e in document["spares"]] == [
            (SPARE, "taken", 1),
            (HOME, "repaired", 1),
        ]
        command = document["spares"][1]["command"].split()[1:]
        back = json.loads(lumctl(*command, "-o", "json", code=0).stdout)["id"]
        lumctl("swap", "apply", back, "--yes", code=0)
        shown = json.loads(lumctl("spare", "show", SPARE, "-o", "json", code=0).stdout)
        assert (shown["schema"], shown["state"]) == ("lumctl/spare/v1", "free")
        assert [(each["from"], each["to"]) for each in shown["history"]] == [(SPARE, HOME), (HOME, SPARE)]
        assert [(each["job"], each["ranks"], each["can"]) for each in shown["replaces"]] == [
            ("finetune", [0, 1, 2], True)
        ]
        assert "took rank 1 of finetune from s1-gpu0" in lumctl("spare", "show", SPARE, code=0).stdout
    finally:
        rack.clear()


@pytest.mark.usefixtures("ssh_client")
def test_a_spare_whose_host_openssh_serves_is_read_taken_and_given_back(rack_of, serve_ssh, tmp_path):
    made = rack_of("prototype", tmp_path)
    rack = next(made)
    try:
        server = rack.sim.folder
        forward = f"{sys.executable} -m lumctl.sim.hosts.forward {server / 'control.sock'} s3"
        openssh = replace(serve_ssh(server / "client_key", forward), host="s3")
        openssh.known_hosts.write_text((server / "known_hosts").read_text() + openssh.known_hosts.read_text())
        ours = rack.sim.endpoints()
        with rack.another_context(replace(ours, hosts={**ours.hosts, "s3": openssh})) as context:
            assert states(context) == FREE
            rack.sim.inject(HOME, "gpu-lost")
            swap = apply(context, plan_swap(context, "finetune", [HOME])).run
            assert states(context)[SPARE] == (SpareState.TAKEN, swap)
            assert lit(rack, SPARE)
            apply(context, plan_rollback(context, context.store("prototype").runs.get(swap)))
            assert states(context)[SPARE] == (SpareState.FREE, None)
            assert context.assignment()["finetune"][1] == HOME
    finally:
        next(made, None)
