"""What a swap is asked for: several jobs, whole hosts, components to avoid, ranks that return; and what is refused."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lumctl.change.foreign_circuits import require_foreign_circuits_kept
from lumctl.change.plan import Do, from_document, to_document
from lumctl.errors import RefusedError, UsageError
from lumctl.health.rulebook import looks_at
from lumctl.health.states import ComponentHealth, Finding, State
from lumctl.inventory.model import Lane, Role
from lumctl.inventory.wiring import initial_assignment
from lumctl.swap import plan_reroute, plan_return, plan_swap
from lumctl.swap.request import require_trouble_still
from lumctl.swap.suggestions import nothing_named, the_one_to_replace

DEAD = {"h03-gpu2": State.FAILED, "h10-gpu3": State.FAILED}


@pytest.fixture
def states(rack64, programmed):
    return dict(programmed(rack64.path))


@pytest.fixture
def context(rack64, states):
    driver = SimpleNamespace(capabilities=frozenset())
    store = SimpleNamespace(
        fabric=SimpleNamespace(uncertain_since=lambda _device: None),
        health=SimpleNamespace(transitions=lambda **_: ()),
        journal=SimpleNamespace(latest=lambda _count: ()),
        demands=SimpleNamespace(waiting=tuple),
        runs=SimpleNamespace(moves=lambda **_: ()),
    )
    return SimpleNamespace(
        inventory=rack64,
        target="sim",
        assignment=lambda **_: initial_assignment(rack64),
        known_cells=states.get,
        store=lambda _rack: store,
        devices=SimpleNamespace(changing=lambda _device: driver),
    )


def test_failures_of_two_jobs_are_one_plan_and_the_jobs_are_found(context, rack64, observe):
    plan = plan_swap(context, None, list(DEAD), seen=observe(rack64, failed=DEAD))
    assert [(r.job, r.failed, r.spare) for r in plan.replacements] == [
        ("train-a", "h03-gpu2", "h16-gpu2"),
        ("train-b", "h10-gpu3", "h16-gpu3"),
    ]
    assert set(plan.start.assignment) == {"train-a", "train-b"}
    assign = next(step for step in plan.steps if step.do is Do.ASSIGN)
    assert {job: len(ranks) for job, ranks in assign.data["assignment"].items()} == {"train-a": 32, "train-b": 28}
    assert {change.device for change in plan.changes} == {"rail2", "rail3"}
    require_foreign_circuits_kept(context, plan)
    assert from_document(to_document(plan)) == plan


def test_an_old_plan_is_refused_for_what_is_ok_by_now(context, rack64, observe):
    all_probes = looks_at("gpu.lost").probes

    def observed(*failed, probes=all_probes):
        seen = observe(rack64, failed=dict.fromkeys(failed, State.FAILED))
        read = {name: replace(health, seen=probes) for name, health in seen.report.accelerators.items()}
        return replace(seen, report=replace(seen.report, accelerators=read))

    plan = plan_swap(context, None, list(DEAD), seen=observe(rack64, failed=DEAD))
    plan = replace(plan, faults=tuple(replace(fault, rule="gpu.lost") for fault in plan.faults))
    context.now = lambda: plan.created_at + 31.0
    context.observe = lambda: observed(*DEAD)
    require_trouble_still(context, plan)  # both have still failed
    context.observe = lambda: observed(probes=frozenset())
    require_trouble_still(context, plan)  # nothing shows that the faults are gone
    context.observe = lambda: observed("h10-gpu3")
    with pytest.raises(RefusedError, match=r"^h03-gpu2 is ok by now: the fault for which plan-") as refused:
        require_trouble_still(context, plan)
    assert refused.value.hint == "plan again for what is not: lumctl swap plan --failed h10-gpu3"
    context.observe = observed
    with pytest.raises(RefusedError, match=r"^h03-gpu2, h10-gpu3 are ok by now") as refused:
        require_trouble_still(context, plan)
    assert refused.value.hint.endswith("lumctl swap plan --failed h03-gpu2,h10-gpu3 --even-if-healthy")
    require_trouble_still(context, replace(plan, even_if_healthy=True))
    context.now = lambda: plan.created_at + 30.0  # its own reading is not stale yet
    require_trouble_still(context, plan)


def test_an_old_plan_to_return_is_not_refused_for_what_it_leaves(context, rack64, observe):
    placed = dict(initial_assignment(rack64))
    placed["train-a"] = tuple("h16-gpu2" if name == "h03-gpu2" else name for name in placed["train-a"])
    seen = observe(rack64, failed={"h16-gpu2": State.FAILED}, assignment=placed)
    context.assignment = lambda **_: placed
    plan = plan_return(context, "train-a", seen=seen)
    assert plan.faults
    context.now = lambda: plan.created_at + 31.0
    context.observe = lambda: observe(rack64, assignment=placed)
    require_trouble_still(context, plan)


@pytest.mark.parametrize("job", [None, "train-a"])
def test_a_host_stands_for_all_its_accelerators_that_run_ranks(context, rack64, observe, job):
    dead = {f"h03-gpu{n}": State.UNKNOWN for n in range(4)}
    plan = plan_swap(context, job, ["h03"], seen=observe(rack64, failed=dead))
    assert {(r.failed, r.spare) for r in plan.replacements} == {(f"h03-gpu{n}", f"h16-gpu{n}") for n in range(4)}


def test_a_host_in_trouble_is_reason_enough(context, rack64, observe):
    seen = observe(rack64, failed={"h03-gpu2": State.FAILED})
    with pytest.raises(RefusedError, match="h03-gpu0 was read just now and is ok") as refused:
        plan_swap(context, None, ["h03"], seen=seen)
    assert "--failed h03-gpu2" in refused.value.hint
    health = replace(seen.report.accelerators["h03-gpu2"], id="h03", kind="host")
    seen = replace(seen, report=replace(seen.report, hosts={"h03": health}))
    assert len(plan_swap(context, None, ["h03"], seen=seen).replacements) == 4


@pytest.mark.parametrize(
    ("job", "failed", "says", "hint"),
    [
        ("h03-gpu2", ["h03-gpu2"], "h03-gpu2 is an accelerator, not a job", "swap plan --failed h03-gpu2"),
        ("h03", [], "h03 is a host, not a job", "swap plan --failed h03"),
        ("train-b", ["h03-gpu2"], "is not used by train-b", "it runs rank 18 of train-a"),
        ("train-b", ["h03"], "no accelerator of host h03 runs a rank of train-b", "h03-gpu0, "),
        (None, ["h16"], "no accelerator of host h16 runs a rank of any job", "h16-gpu0, "),
        (None, ["h16-gpu1"], "h16-gpu1 runs no rank of any job .in the inventory it is spare", "job list"),
        (None, ["h33"], "no accelerator 'h33' in the inventory", "did you mean h13"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_told_with_what_to_do(context, rack64, observe, job, failed, says, hint):
    with pytest.raises(UsageError, match=says) as error:
        plan_swap(context, job, failed, seen=observe(rack64, failed=DEAD))
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("job", "says", "hint"),
    [
        (None, "h03-gpu2 is failed: it fell off the bus; h10-gpu3 is", "--failed h03-gpu2,h10-gpu3"),
        ("train-a", "h03-gpu2 is failed", "--failed h03-gpu2"),
    ],
)
def test_where_nothing_is_named_what_fails_is_told_with_the_command_that_repairs_it(
    context, rack64, observe, job, says, hint
):
    error = nothing_named(context, observe(rack64, failed=DEAD), job)
    assert says in error.message
    assert error.hint.endswith(hint)


@pytest.mark.parametrize(("job", "cause"), [("train-a", "h03-gpu2"), ("train-b", "h10-gpu3")])
def test_the_only_fault_of_a_job_is_the_one_to_replace(context, rack64, observe, job, cause):
    remedy = the_one_to_replace(context, observe(rack64, failed=DEAD), job)
    assert (remedy.cause, remedy.replace) == (cause, (cause,))


def test_if_several_could_be_meant_each_command_is_named(context, rack64, observe):
    with pytest.raises(UsageError, match="h03-gpu2 is failed: it fell off the bus; h10-gpu3 is") as refused:
        the_one_to_replace(context, observe(rack64, failed=DEAD), None)
    assert refused.value.hint == (
        "one at a time: lumctl swap plan --failed h03-gpu2; lumctl swap plan --failed h10-gpu3; "
        "or together: lumctl swap plan --failed h03-gpu2,h10-gpu3"
    )


@pytest.mark.parametrize(
    ("reserved", "hint"),
    [
        (["h16-gpu3"], "only one of them can be planned now: lumctl swap plan --failed h03-gpu2"),
        (["h16-gpu2", "h16-gpu3"], "no swap can be planned now: no spare can replace h03-gpu2: "),
    ],
)
def test_a_command_that_would_be_refused_is_not_named(context, rack64, observe, reserved, hint):
    accelerators = {name: replace(rack64.accelerators[name], reserved=True) for name in reserved}
    seen = replace(
        observe(rack64, failed=DEAD), inventory=replace(rack64, accelerators={**rack64.accelerators, **accelerators})
    )
    with pytest.raises(UsageError, match="h03-gpu2 is failed") as refused:
        the_one_to_replace(context, seen, None)
    assert refused.value.hint.startswith(hint)
    assert "together" not in refused.value.hint


def test_the_only_fault_for_which_a_spare_fits_is_the_one_to_replace(context, rack64, observe):
    remedy = the_one_to_replace(context, observe(rack64, failed=DEAD | {"h16-gpu3": State.FAILED}), None)
    assert remedy.cause == "h03-gpu2"


def test_if_no_spare_is_left_the_command_that_waits_for_one_is_named(context, rack64, observe):
    spares = {each.id: State.FAILED for each in rack64.accelerators.values() if each.role is Role.SPARE}
    with pytest.raises(RefusedError, match="no swap repairs the present faults") as refused:
        the_one_to_replace(context, observe(rack64, failed={"h03-gpu2": State.FAILED} | spares), None)
    assert refused.value.hint.endswith("; to wait for a spare: lumctl swap plan --failed h03-gpu2 --queue")


def test_if_nothing_fails_there_is_none_to_replace(context, rack64, observe):
    assert the_one_to_replace(context, observe(rack64), None) is None
    assert the_one_to_replace(context, observe(rack64, failed={"h03-gpu2": State.FAILED}), "train-b") is None


def test_a_fault_that_no_spare_repairs_is_refused_with_what_to_do(context, rack64, observe):
    with pytest.raises(UsageError):
        the_one_to_replace(context, observe(rack64, failed={"h03-gpu2": State.UNKNOWN}), None)


def test_where_all_is_well_and_nothing_is_named_that_is_said(context, rack64, observe):
    error = nothing_named(context, observe(rack64), None)
    assert "all of the jobs' accelerators were read just now and are ok" in error.message


def test_accelerators_of_two_racks_are_two_plans(context, rack64, observe):
    other = {**rack64.accelerators, "h10-gpu3": replace(rack64.accelerators["h10-gpu3"], rack="r2")}
    context.inventory = replace(rack64, accelerators=other)
    with pytest.raises(UsageError, match=r"in 2 racks .r2, rack64.: a plan is for one rack") as error:
        plan_swap(context, None, list(DEAD), seen=observe(rack64, failed=DEAD))
    assert error.value.hint == "lumctl swap plan --failed h03-gpu2; lumctl swap plan --failed h10-gpu3"


def test_one_that_fails_with_the_last_spare_of_another_is_named_with_what_can_be_done(context, rack64, observe):
    seen = observe(rack64, failed={**DEAD, "h05-gpu2": State.FAILED})
    with pytest.raises(RefusedError, match="h16-gpu2: this plan already uses it for h03-gpu2") as refused:
        plan_swap(context, None, [*DEAD, "h05-gpu2"], seen=seen)
    assert refused.value.hint.endswith("--failed h03-gpu2,h10-gpu3")


def test_circuits_are_led_round_a_puc_and_nobody_else_is_touched(context, rack64, observe):
    seen = observe(rack64)
    plan = plan_reroute(context, "train-a", ["rail2/puc/40"], seen=seen)
    assert [c.id for c in plan.add] == [c.id for c in plan.remove] == ["train-a/18-19"]
    assert [step.do for step in plan.steps] == [Do.CHECK, Do.PROGRAM, Do.VERIFY]
    assert (("rail2", 40) in plan.remove[0].pucs, ("rail2", 40) in plan.add[0].pucs) == (True, False)
    assert plan.steps[-1].data["circuits"] == ["train-a/18-19"]
    require_foreign_circuits_kept(context, plan)
    forged = replace(plan, steps=plan.steps[:-1]).sealed()
    with pytest.raises(RefusedError, match="without a proof"):
        require_foreign_circuits_kept(context, forged)


def test_who_says_it_leads_the_circuit_of_a_job_that_it_does_not_pin_is_refused(context, rack64, observe):
    plan = plan_reroute(context, "train-a", ["rail2/puc/40"], seen=observe(rack64))
    unpinned = replace(plan, start=replace(plan.start, assignment={}), add=plan.add).sealed()
    with pytest.raises(RefusedError, match="would change circuit train-a/18-19"):
        require_foreign_circuits_kept(context, unpinned)


def test_who_says_it_leads_a_circuit_elsewhere_must_make_the_way(context, rack64, observe):
    usual = plan_swap(context, "train-a", ["h03-gpu2"], even_if_healthy=True, seen=observe(rack64))
    staying = tuple(step for step in usual.steps if step.do is not Do.ASSIGN)
    forged = replace(usual, add=usual.remove, steps=staying).sealed()  # its cells lead to the spare all the same
    with pytest.raises(RefusedError, match="would reroute circuit train-a/17-18 of train-a, and does not program"):
        require_foreign_circuits_kept(context, forged)


@pytest.mark.parametrize(
    ("job", "avoid", "kind", "says"),
    [
        ("train-b", "rail2/puc/40", RefusedError, "no circuit of train-b passes rail2/puc/40: nothing to reroute"),
        (None, "rail2/puc/40,rail9/puc/1", UsageError, "rail9"),
        ("train-a", "rail2", UsageError, "cannot be routed around rail2: all its circuits"),
        ("train-a", "rail2/port/0", UsageError, "no lane is connected to rail2/port/0"),
        ("train-a", "rail2/port/12", RefusedError, "h03-gpu2-a carries train-a/17-18.* h03-gpu2 has no lane to spare"),
        ("train-a", "h03-gpu2-b", RefusedError, "h03-gpu2-b carries train-a/18-19.* no lane to spare: h03-gpu2-a"),
        ("train-a", "rail2/puc/8", RefusedError, "train-a/17-18 cannot be routed around rail2/puc/8: no route exists"),
    ],
)
def test_what_cannot_be_avoided_says_why(context, rack64, observe, job, avoid, kind, says):
    with pytest.raises(kind, match=says) as error:
        plan_reroute(context, job, avoid.split(","), seen=observe(rack64))
    if says.startswith("no circuit of train-b"):
        assert error.value.hint == "train-a/18-19 does; lumctl swap plan train-a --avoid rail2/puc/40"


@pytest.mark.parametrize(
    ("other", "state", "says"),
    [
        ({}, State.FAILED, "h03-gpu2-c is failed"),
        ({"lane": Lane("rail3", 0, 0)}, State.OK, "h03-gpu2-c leads to rail3"),
        ({"lane": Lane("rail2", 0, 1)}, State.OK, "h03-gpu2-c has separate ports"),
    ],
)
def test_a_free_lane_that_is_of_no_use_is_named(context, rack64, observe, other, state, says):
    third = replace(rack64.transponders["h03-gpu2-b"], id="h03-gpu2-c", **other)
    context.inventory = replace(rack64, transponders={**rack64.transponders, third.id: third})
    seen = observe(context.inventory)
    link = ComponentHealth(third.id, "link", state, read_at=100.0)
    seen = replace(seen, report=replace(seen.report, links={**seen.report.links, third.id: link}))
    with pytest.raises(RefusedError, match=f"h03-gpu2 has no lane to spare: .*{says}"):
        plan_reroute(context, "train-a", ["h03-gpu2-a"], seen=seen)


def test_a_dying_transponder_is_avoided_by_replacing_its_accelerator(context, rack64, observe):
    plan = plan_swap(context, None, ["h03-gpu2"], avoid=["h03-gpu2-a"], even_if_healthy=True, seen=observe(rack64))
    assert plan.replacements[0].spare == "h16-gpu2"
    with pytest.raises(RefusedError, match="h16-gpu2: its lane h16-gpu2-b must be avoided"):
        plan_swap(context, None, ["h03-gpu2"], avoid=["h16-gpu2-b"], even_if_healthy=True, seen=observe(rack64))


def test_new_circuits_and_old_ones_of_the_job_keep_off_a_puc(context, rack64, observe):
    seen = observe(rack64, failed={"h03-gpu2": State.FAILED})
    usual = plan_swap(context, None, ["h03-gpu2"], seen=seen)
    busy = {puc for circuit in usual.keep if circuit.owner == "train-a" for _, puc in circuit.pucs}
    avoid = next(puc for _, puc in usual.add[1].pucs[5:] if puc not in busy)
    plan = plan_swap(context, None, ["h03-gpu2"], avoid=[f"rail2/puc/{avoid}"], seen=seen)
    assert all(("rail2", avoid) not in circuit.pucs for circuit in plan.add)


def swapped(seen, **places):
    ranks = list(seen.assignment["train-a"])
    for rank, accelerator in places.items():
        ranks[int(rank[1:])] = accelerator
    return {**seen.assignment, "train-a": tuple(ranks)}


def test_a_rank_returns_when_its_accelerator_is_well_again(context, rack64, observe, states):
    out = plan_swap(context, None, ["h03-gpu2"], even_if_healthy=True, seen=observe(rack64))
    states["rail2"] = {**states["rail2"], **{c.puc: type(states["rail2"][0])(c.after) for c in out.changes}}
    placed = swapped(observe(rack64), r18="h16-gpu2")
    context.assignment = lambda **_: placed
    seen = observe(rack64, assignment=placed)
    plan = plan_return(context, "train-a", seen=seen)
    assert [(r.rank, r.failed, r.spare) for r in plan.replacements] == [(18, "h16-gpu2", "h03-gpu2")]
    assert plan.kind == "swap"
    assert plan.undoes is None
    home = next(step for step in plan.steps if step.do is Do.ASSIGN).data["assignment"]["train-a"]
    assert tuple(home) == rack64.jobs["train-a"].ranks
    require_foreign_circuits_kept(context, plan)
    ill = replace(
        seen.report.accelerators["h03-gpu2"],
        state=State.DISABLED,
        disabled=True,
        otherwise=State.OK,
        findings=(Finding("h03-gpu2", "test", State.FAILED, "it fell off the bus", "", 1.0),),
    )
    report = replace(seen.report, accelerators={**seen.report.accelerators, "h03-gpu2": ill})
    with pytest.raises(RefusedError, match="rank 18 stays on h16-gpu2: h03-gpu2 is failed: it fell off the bus"):
        plan_return(context, "train-a", seen=replace(seen, report=report))
    well = replace(ill, findings=())
    report = replace(seen.report, accelerators={**seen.report.accelerators, "h03-gpu2": well})
    assert plan_return(context, "train-a", seen=replace(seen, report=report)).replacements == plan.replacements


def test_there_is_nothing_to_return_where_all_is_as_written(context, rack64, observe):
    with pytest.raises(RefusedError, match="every rank of train-a runs where the inventory says"):
        plan_return(context, "train-a", seen=observe(rack64))


@pytest.mark.parametrize(
    ("spare", "ill", "hint"),
    [
        (
            None,
            "h16-gpu2",
            "see why: lumctl health explain h16-gpu2; once it is healthy again, try: lumctl swap plan --failed",
        ),
        ("h16-gpu0", None, "let lumctl choose the spare: lumctl swap plan --failed h03-gpu2"),
        ("h16-gpu0", "h16-gpu2", "letting lumctl choose the spare does not help: no spare can replace h03-gpu2: "),
    ],
)
def test_where_no_spare_fits_the_hint_is_about_what_keeps_it(context, rack64, observe, spare, ill, hint):
    failed = {"h03-gpu2": State.FAILED} | ({ill: State.FAILED} if ill else {})
    with pytest.raises(RefusedError, match="no spare can replace h03-gpu2") as refused:
        plan_swap(context, None, ["h03-gpu2"], [spare] if spare else [], seen=observe(rack64, failed=failed))
    assert refused.value.hint.startswith(hint)


def test_the_hint_of_a_refusal_keeps_the_options_and_is_not_refused_itself(context, rack64, observe):
    seen = observe(rack64, failed={"h16-gpu3": State.FAILED})
    with pytest.raises(RefusedError, match="no spare can replace h10-gpu3") as refused:
        plan_swap(context, None, ["h03-gpu2", "h10-gpu3"], even_if_healthy=True, seen=seen)
    assert refused.value.hint == ("the others can be replaced: lumctl swap plan --failed h03-gpu2 --even-if-healthy")
    plan_swap(context, None, ["h03-gpu2"], even_if_healthy=True, seen=seen)
