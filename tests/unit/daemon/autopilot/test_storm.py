"""A rack that is switched off: forty findings in ten seconds, and no swap, neither then nor when it is over."""

import pytest

from lumctl.daemon.autopilot.decision import Response
from lumctl.daemon.autopilot.memory import Event
from lumctl.inventory.policies import How

WORKING = [f"h{host:02}-gpu{gpu}" for host in range(1, 11) for gpu in range(4)]


def storm(scene, *, hosts: bool) -> list[str]:
    """Everything that would have been done while forty components fail within ten seconds, and for two minutes."""
    acts = []
    failing = [f"h{host:02}" for host in range(1, 11)] if hosts else WORKING
    for name in failing:
        scene.now += 10.0 / len(failing)
        scene.fail(name, "host.unreachable" if hosts else "gpu.lost", kind="host" if hosts else "accelerator")
        acts += [d.act for d in scene.decide().values()]
    for _ in range(24):
        scene.now += 5
        acts += [d.act for d in scene.decide().values()]
    return acts


@pytest.mark.parametrize("hosts", [False, True])
def test_no_swap_and_the_breaker_says_why(scene, hosts):
    scene.policy(match={"rules": ("gpu.lost", "host.unreachable"), "kinds": ("accelerator", "host")})
    assert set(storm(scene, hosts=hosts)) == {Response.NOTHING}
    state = scene.memory.breakers["p"]
    assert state.open_since is not None
    assert "hosts of rack64 failed within 300 s" in state.why
    decided = scene.decide()
    assert all("breaker" in [c.name for c in d.conditions if not c.holds] for d in decided.values() if d.policy)


def test_it_closes_and_what_began_before_causes_nothing(scene):
    scene.policy(oldest_s=86_400.0)
    storm(scene, hosts=False)
    for _ in range(30):
        scene.now += 30
        assert not any(decision.act is Response.APPLY for decision in scene.decide().values())
    assert scene.memory.breakers["p"].open_since is None
    scene.now += 600
    for name in WORKING[1:]:
        scene.heal(name)
    stale = scene.decide()[WORKING[0]]
    assert (stale.act, stale.reason) == (Response.NOTHING, "news")
    scene.fail("h12-gpu0")
    scene.now += 31
    assert scene.decide()["h12-gpu0"].act is Response.APPLY


def test_one_that_comes_again_after_it_closed_is_news(scene):
    scene.policy()
    storm(scene, hosts=False)
    for name in WORKING:
        scene.heal(name)
    scene.now += 901
    scene.decide()
    scene.now += 1
    scene.fail(WORKING[0])
    scene.now += 31
    assert scene.decide()[WORKING[0]].act is Response.APPLY


def test_a_restart_neither_forgets_nor_replays(scene, remark):
    policy = scene.policy(oldest_s=86_400.0)
    storm(scene, hosts=False)
    opened_at = scene.memory.breakers[policy.name].open_since
    scene.memory = type(scene.memory)()
    scene.memory.take(
        [remark(opened_at, "autopilot", {"event": Event.BREAKER_OPENED, "policy": "p", "why": "as before"})]
    )
    decided = scene.decide()
    assert decided[WORKING[0]].act is Response.NOTHING
    assert scene.memory.breakers["p"].why == "as before"


def test_planned_work_does_not_open_it(scene):
    scene.policy()
    for host in range(1, 11):
        scene.fail(f"h{host:02}", kind="host", evidence="in maintenance: rack64 by ops")
    scene.fail("h12-gpu0")
    scene.now += 31
    assert scene.decide()["h12-gpu0"].act is Response.APPLY


def test_two_single_faults_far_apart_do_not_open_it(scene):
    scene.policy(how=How.APPLY)
    scene.fail("h01-gpu0")
    scene.now += 3600
    scene.fail("h12-gpu0")
    scene.now += 31
    assert scene.decide()["h12-gpu0"].act is Response.APPLY
