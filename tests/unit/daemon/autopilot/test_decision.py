"""What is decided about one fault, and why: each condition holds until one thing is otherwise."""

from dataclasses import replace

import pytest

from lumctl.daemon.autopilot.decision import Response
from lumctl.daemon.autopilot.memory import Ask, AskState, Event
from lumctl.health.states import State
from lumctl.inventory.job_run import JobHook
from lumctl.inventory.policies import ApprovalTerms, Hours, How, Limits

GPU, OTHER = "h03-gpu2", "h09-gpu1"


def settled(scene, component: str = GPU, **fields) -> None:
    """A fault that has stood for as long as it must."""
    scene.fail(component, **fields)
    scene.now += 31


def test_without_policies_nothing_is_done(scene):
    settled(scene)
    decision = scene.decide()[GPU]
    assert (decision.act, decision.policy, decision.reason) == (Response.NOTHING, None, "no-policy")


def test_a_dead_gpu_is_swapped_once_it_has_stood(scene):
    scene.policy()
    scene.fail(GPU)
    first = scene.decide()[GPU]
    assert (first.act, first.reason, first.until) == (Response.NOTHING, "stands", scene.now + 30)
    scene.now += 29.9
    assert scene.decide()[GPU].act is Response.NOTHING
    scene.now += 0.2
    decision = scene.decide()[GPU]
    assert decision.act is Response.APPLY
    assert all(condition.holds for condition in decision.conditions)
    assert decision.fault.jobs == {"train-a": (GPU,)}


def test_what_changes_in_the_reasons_does_not_make_it_another_decision(scene):
    scene.policy()
    scene.fail(GPU)
    signatures = set()
    for _ in range(5):
        scene.now += 1
        signatures.add(scene.decide()[GPU].signature)
    assert len(signatures) == 1


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        ("XID 999 was seen, not in the catalogue (XID 999)", "known"),
        ("(XID 165)", "known"),
        ("XID 61", "known"),
        ("bus (XID 79)", "allowed"),
    ],
)
def test_an_unknown_xid_never_causes_a_swap(scene, evidence, reason):
    scene.policy(match={"rules": ("gpu.*",), "states": ("failed", "degraded")})
    settled(scene, rule="gpu.xid", evidence=evidence)
    decision = scene.decide()[GPU]
    assert decision.reason == reason
    assert (decision.act is Response.APPLY) is (reason == "allowed")


@pytest.mark.parametrize(
    ("rules", "how", "act"),
    [
        (("*",), How.APPLY, Response.NOTHING),
        (("gpu.*", "gpu.straggler*"), How.PLAN, Response.NOTHING),
        (("*",), How.NOTIFY, Response.NOTIFY),
        (("gpu.straggler",), How.APPLY, Response.APPLY),
        (("gpu.*", "gpu.straggler/late"), How.APPROVE, Response.ASK),
    ],
)
def test_a_late_rank_causes_a_swap_only_by_a_policy_that_names_the_rule(scene, rules, how, act):
    scene.policy(how=how, match={"rules": rules, "states": ("failed", "degraded")})
    settled(scene, rule="gpu.straggler", evidence="late")
    decision = scene.decide()[GPU]
    assert decision.act is act
    assert (decision.reason == "no-policy") is (act is Response.NOTHING)


def test_late_ranks_do_not_open_the_breaker_of_a_failure(scene):
    scene.policy()
    for component in ("h01-gpu0", "h02-gpu0", "h04-gpu0", "h05-gpu0", "h06-gpu0", "h07-gpu0", "h08-gpu0"):
        scene.fail(component, rule="gpu.straggler", evidence="late")
    settled(scene)
    assert scene.decide()[GPU].act is Response.APPLY


def test_a_host_that_is_gone_is_not_four_gpus(scene):
    scene.policy()
    for number in range(4):
        scene.fail(f"h03-gpu{number}")
    scene.now += 31
    decided = scene.decide()
    assert {decided[f"h03-gpu{n}"].reason for n in range(4)} == {"cause"}
    assert "part of host:h03" in decided["h03-gpu0"].because
    assert not any(decision.act is Response.APPLY for decision in decided.values())


def test_a_policy_for_hosts_replaces_all_that_run_on_one(scene):
    scene.policy(match={"rules": ("host.unreachable",), "kinds": ("host",)})
    settled(scene, "h03", rule="host.unreachable", kind="host")
    decision = scene.decide()["h03"]
    assert decision.act is Response.APPLY
    assert decision.fault.jobs == {"train-a": tuple(f"h03-gpu{n}" for n in range(4))}


def test_what_is_in_maintenance_is_left_alone(scene):
    scene.policy()
    settled(scene)
    scene.states["accelerator", GPU] = replace(
        scene.states["accelerator", GPU], after=State.DISABLED, evidence="in maintenance: h03 by ops"
    )
    assert GPU not in scene.decide()


def test_what_is_acknowledged_is_left_alone(scene):
    from lumctl.daemon.autopilot.decision import decide_one
    from lumctl.daemon.autopilot.faults import faults_of

    scene.policy()
    settled(scene)
    trouble = faults_of(scene.look())[0]
    known = replace(trouble, findings=(replace(trouble.findings[0], acknowledged="by ops: on it"),))
    decision = decide_one(scene.policies, known, scene.look(), scene.memory, {}, now=scene.now)
    assert (decision.act, decision.because) == (Response.NOTHING, "acknowledged by ops: on it")


def test_a_spare_that_dies_works_in_no_job(scene):
    scene.policy()
    settled(scene, "h16-gpu0")
    assert scene.decide()["h16-gpu0"].reason == "works"


def test_an_old_finding_is_left_to_people(scene):
    scene.policy(oldest_s=900.0)
    scene.fail(GPU)
    scene.now += 900
    assert scene.decide()[GPU].act is Response.APPLY
    scene.now += 1
    assert scene.decide()[GPU].reason == "age"
    # Who waits in the queue for a spare is served whenever one returns.
    scene.memory.queued = frozenset({GPU})
    assert scene.decide()[GPU].act is Response.APPLY


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"quiet": ("h03-*",)}, "quiet"),
        ({"limits": Limits(rack_hour=0)}, "rack-hour"),
        ({"hours": (Hours(frozenset({0}), 0, 1),)}, "hours"),
    ],
)
def test_what_a_policy_forbids(scene, fields, reason):
    scene.policy(**fields)
    settled(scene)
    assert scene.decide()[GPU].reason == reason


@pytest.mark.parametrize(
    "match", [{"components": ("h04-*",)}, {"jobs": ("train-b",)}, {"rules": ("gpu.ecc",)}, {"states": ("degraded",)}]
)
def test_what_a_policy_does_not_speak_of(scene, match):
    scene.policy(match=match)
    settled(scene)
    assert scene.decide()[GPU].reason == "no-policy"


def test_the_first_policy_that_matches_decides(scene):
    scene.policy(How.NOTIFY, name="first", match={"jobs": ("train-a",)})
    scene.policy(How.APPLY, name="second")
    settled(scene)
    assert (scene.decide()[GPU].policy.name, scene.decide()[GPU].act) == ("first", Response.NOTIFY)


def test_attempts_are_counted_and_one_that_never_began_is_not(scene):
    scene.policy(cool_down_s=0.0)
    settled(scene)
    told = {"policy": "p", "key": f"accelerator:{GPU}", "accelerators": [GPU]}
    scene.remark(Event.ATTEMPT, plan="plan-1", **told)
    scene.remark(Event.OUTCOME, plan="plan-1", outcome="refused")
    assert scene.decide()[GPU].act is Response.APPLY
    scene.remark(Event.ATTEMPT, plan="plan-2", **told)
    missing = [c.name for c in scene.decide()[GPU].conditions if not c.holds]
    assert missing == ["accelerator-week", "rack-hour"]
    scene.now += 7 * 86_400 + 1
    scene.fail(GPU)
    scene.now += 31
    assert scene.decide()[GPU].act is Response.APPLY


def test_after_any_change_of_the_rack_it_cools_down(scene):
    scene.policy(cool_down_s=600.0)
    settled(scene)
    scene.memory.last_change = scene.now - 100
    decision = scene.decide()[GPU]
    assert (decision.reason, decision.until) == ("cool-down", scene.now + 500)


@pytest.mark.parametrize("event", [Event.STOP, Event.HALT])
def test_once_stopped_it_needs_a_person_to_start(scene, event):
    scene.policy()
    settled(scene)
    scene.remark(event, who="ops@console", comment="", why="how swap-0001 ended is not known")
    assert scene.decide()[GPU].reason in {"switch", "halt"}
    scene.remark(Event.START, who="ops@console")
    assert scene.decide()[GPU].act is Response.APPLY


def test_notices_are_given_once_for_each_finding(scene):
    scene.policy(How.NOTIFY)
    settled(scene)
    assert scene.decide()[GPU].act is Response.NOTIFY
    scene.remark(Event.TOLD, key=f"accelerator:{GPU}", policy="p")
    assert scene.decide()[GPU].reason == "told"
    scene.heal(GPU)
    scene.now += 60
    settled(scene)
    assert scene.decide()[GPU].act is Response.NOTIFY


class TestApproval:
    @pytest.fixture
    def asked(self, scene):
        scene.policy(How.APPROVE, approval=ApprovalTerms(expires_s=600.0))
        settled(scene)
        assert scene.decide()[GPU].act is Response.ASK
        scene.remark(Event.ASKED, key=f"accelerator:{GPU}", policy="p", plan="plan-1")
        scene.memory.asks["plan-1"] = Ask("plan-1", scene.now, scene.now + 600, AskState.ASKED)
        return scene

    def answered(self, scene, state: AskState) -> None:
        scene.memory.asks["plan-1"] = replace(scene.memory.asks["plan-1"], state=state, by="ops")

    def test_it_waits(self, asked):
        decision = asked.decide()[GPU]
        assert (decision.act, decision.plan) == (Response.WAIT, "plan-1")

    def test_it_is_applied_after_a_yes_however_old_it_has_become(self, asked):
        asked.policies[0] = replace(asked.policies[0], oldest_s=60.0)
        asked.now += 300
        assert asked.decide()[GPU].act is Response.WAIT
        self.answered(asked, AskState.APPROVED)
        decision = asked.decide()[GPU]
        assert (decision.act, decision.plan) == (Response.APPLY, "plan-1")

    def test_after_a_no_nothing_is_done(self, asked):
        self.answered(asked, AskState.REJECTED)
        assert asked.decide()[GPU].reason == "rejected"

    def test_an_approval_ends(self, asked):
        self.answered(asked, AskState.APPROVED)
        asked.now += 600
        assert asked.decide()[GPU].reason == "expired"

    def test_a_plan_that_went_stale_is_asked_for_anew(self, asked):
        self.answered(asked, AskState.SPENT)
        assert asked.decide()[GPU].act is Response.ASK

    def test_an_approval_is_of_one_fault(self, asked):
        self.answered(asked, AskState.APPROVED)
        asked.heal(GPU)
        asked.now += 60
        settled(asked)
        assert asked.decide()[GPU].act is Response.ASK


def test_a_rack_whose_hosts_were_missed_once_is_no_trouble_yet(scene):
    scene.policy(match={"rules": ("host.*",), "kinds": ("host",)})
    for host in range(1, 17):
        scene.fail(f"h{host:02}", "host.missed", kind="host", after=State.UNKNOWN)
    assert [incident.id for incident in scene.look().report.incidents] == ["rack:rack64"]
    assert scene.decide() == {}


@pytest.mark.parametrize(
    ("how", "act"), [(How.APPLY, Response.NOTHING), (How.APPROVE, Response.NOTHING), (How.PLAN, Response.PLAN)]
)
def test_what_only_a_person_can_stop_is_left_to_people(scene, how, act):
    """The policy may apply swaps, but the job that would be moved has no hook."""
    jobs = scene.inventory.jobs
    scene.inventory = replace(scene.inventory, jobs={**jobs, "train-a": replace(jobs["train-a"], needs_no_pause=False)})
    scene.policy(how)
    settled(scene)
    decision = scene.decide()[GPU]
    assert decision.act is act
    if act is Response.NOTHING:
        assert decision.reason == "pause"
        assert decision.because == (
            "only an operator can stop train-a before its light paths change: give it a hook, or needs_no_pause: true"
        )


def test_a_job_with_a_hook_is_paused_by_it(scene):
    jobs = scene.inventory.jobs
    hooked = replace(jobs["train-a"], needs_no_pause=False, hook=JobHook(("true",), ("true",)))
    scene.inventory = replace(scene.inventory, jobs={**jobs, "train-a": hooked})
    scene.policy()
    settled(scene)
    assert scene.decide()[GPU].act is Response.APPLY
