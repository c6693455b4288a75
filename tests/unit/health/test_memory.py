"""What looks leave for the next one: since when, what sticks, what must last, and what a look cannot tell."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumctl.fleet.readings import ProbeStatus, XidEvent
from lumctl.health.memory import Memory, merged
from lumctl.health.rulebook import verdict
from lumctl.health.states import State

GPU, HOST, LANE = "h03-gpu2", "h03", "h03-gpu2-a"


def gpu(watched, name=GPU):
    return watched.report.accelerators[name]


def rules(health):
    return [(finding.rule, finding.case) for finding in health.findings]


def lose(watched, attempts, host=HOST):
    watched.rack.host(host, reachable=False, error="no route to host", attempts=attempts)


def find(watched, host=HOST):
    watched.rack.host(host, reachable=True, error=None, attempts=0)


def test_a_finding_keeps_the_time_at_which_it_first_stood(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    first = watched.look().accelerators[GPU].findings[0].since
    for _ in range(5):
        watched.look()
    assert gpu(watched).findings[0].since == first
    watched.rack.gpu(GPU, remap_pending=False)
    assert watched.look().accelerators[GPU].findings == ()
    watched.rack.gpu(GPU, remap_pending=True)
    assert watched.look().accelerators[GPU].findings[0].since > first


def test_a_hard_fault_comes_and_goes_at_once(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    assert watched.look(1).accelerators[GPU].state is State.FAILED
    watched.rack.gpu(GPU, remap_failed=False)
    assert watched.look(1).accelerators[GPU].state is State.OK


def test_a_fault_that_sticks_is_counted_from_stable_recovery(watched):
    window = verdict("gpu.temperature", "core").clears_after_s
    watched.rack.gpu(GPU, temperature_c=93.0)
    watched.look()
    watched.rack.gpu(GPU, temperature_c=60.0)
    assert watched.look(10).accelerators[GPU].state is State.DEGRADED
    assert "last seen 10 s ago" in gpu(watched).findings[0].evidence
    watched.rack.gpu(GPU, temperature_c=93.0)
    watched.look(10)
    watched.rack.gpu(GPU, temperature_c=60.0)
    watched.look(10)
    began = watched.now
    while watched.look(5).accelerators[GPU].state is State.DEGRADED:
        assert watched.now - began < window
    assert watched.now - began == window


def test_what_must_last_is_no_fault_before(watched):
    line = verdict("gpu.pcie-link", "narrow")
    watched.rack.gpu(GPU, pcie_width=8, pcie_width_max=16)
    for look in range(1, line.appears_looks):
        assert watched.look(10).accelerators[GPU].state is State.OK, look
    assert rules(watched.look(10).accelerators[GPU]) == [("gpu.pcie-link", "narrow")]
    assert gpu(watched).findings[0].since == watched.now - 20


def test_the_same_reading_shown_again_is_no_second_sight_of_it(watched):
    watched.rack.gpu(GPU, pcie_width=8, pcie_width_max=16)
    watched.look()
    watched.frozen.add(HOST)
    for _ in range(20):
        watched.look(1)
    assert gpu(watched).state is State.OK


def test_an_idle_gpu_may_lower_its_link(watched):
    watched.rack.gpu(GPU, pcie_generation=1, pcie_generation_max=5, pcie_width=8, pcie_width_max=16)
    watched.rack.gpu(GPU, utilization_percent=0.0)
    for _ in range(10):
        assert watched.look().accelerators[GPU].state is State.OK


def test_a_hung_kernel_is_told_after_five_minutes(watched):
    watched.rack.gpu(
        GPU, utilization_percent=100.0, memory_utilization_percent=0.0, power_w=120.0, power_limit_w=700.0,
        pcie_tx_kb_s=300.0, pcie_rx_kb_s=500.0,
    )  # fmt: skip
    appeared = next(n for n in range(1, 60) if watched.look(10).accelerators[GPU].state is State.DEGRADED)
    assert appeared == 31
    assert rules(gpu(watched)) == [("gpu.hung", "no-progress")]


@pytest.mark.parametrize("busy", [{"memory_utilization_percent": 20.0}, {"power_w": 400.0}, {"pcie_tx_kb_s": 1e6}])
def test_a_gpu_that_moves_anything_does_not_hang(watched, busy):
    quiet = {"utilization_percent": 100.0, "memory_utilization_percent": 0.0, "power_w": 120.0, "power_limit_w": 700.0}
    watched.rack.gpu(GPU, **(quiet | {"pcie_tx_kb_s": 300.0, "pcie_rx_kb_s": 500.0} | busy))
    for _ in range(60):
        assert watched.look(10).accelerators[GPU].state is State.OK


def test_clocks_that_are_held_down_for_most_of_ten_minutes_degrade(watched):
    watched.rack.gpu(GPU, throttle_reasons=frozenset({"hw_thermal_slowdown"}))
    minutes = [watched.look(60).accelerators[GPU].state for _ in range(6)]
    assert minutes == [State.OK] * 5 + [State.DEGRADED]
    assert rules(gpu(watched)) == [("gpu.throttled", "lasting"), ("gpu.throttled", "noted")]
    watched.rack.gpu(GPU, throttle_reasons=frozenset())
    for _ in range(10):
        watched.look(60)
    assert gpu(watched).state is State.OK


def test_a_look_that_cannot_tell_neither_clears_nor_starts_anything(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    since = watched.look().accelerators[GPU].findings[0].since
    # The probe hangs: the reading grows old, and is then no reading at all.
    watched.frozen.add(HOST)
    watched.rack.probe(HOST, "gpu", ProbeStatus.TIMED_OUT)
    for _ in range(6):
        assert watched.look().accelerators[GPU].state in {State.FAILED, State.UNKNOWN}
    assert gpu(watched).state is State.UNKNOWN
    watched.frozen.clear()
    watched.rack.probe(HOST, "gpu", ProbeStatus.OK)
    assert watched.look().accelerators[GPU].state is State.FAILED
    assert gpu(watched).findings[0].since == since


def test_a_finding_whose_probe_tells_nothing_is_neither_confirmed_nor_refuted(watched):
    event = XidEvent(watched.now, "0000:9b:00", 79, "Xid 79")
    watched.rack.host(HOST, xids=(event,))
    assert watched.look().accelerators[GPU].state is State.FAILED
    # Without the kernel log nobody can say that it is over.
    watched.rack.host(HOST, xids=())
    watched.rack.probe(HOST, "kernel", ProbeStatus.TIMED_OUT)
    assert watched.look().accelerators[GPU].state is State.FAILED
    watched.rack.probe(HOST, "kernel", ProbeStatus.OK)
    assert watched.look().accelerators[GPU].state is State.OK


def test_three_misses_make_a_lost_host(watched):
    seen = []
    for attempts in (1, 2, 3, 4):
        lose(watched, attempts)
        host = watched.look().hosts[HOST]
        seen.append((host.state, host.findings[0].rule))
        assert gpu(watched).state is State.UNKNOWN
    assert seen == [(State.UNKNOWN, "host.missed")] * 2 + [(State.FAILED, "host.unreachable")] * 2
    find(watched)
    assert watched.look().hosts[HOST].state is State.OK
    assert gpu(watched).state is State.OK


def test_the_first_miss_counts_for_one_who_asks_just_once(watched):
    lose(watched, 0)
    assert watched.look().hosts[HOST].state is State.FAILED


def test_a_lost_host_is_not_only_missed_because_somebody_counts_anew(watched):
    lose(watched, 3)
    watched.look()
    watched.restart()
    lose(watched, 1)
    host = watched.look().hosts[HOST]
    assert (host.state, host.findings[0].rule) == (State.FAILED, "host.unreachable")


def test_a_host_key_problem_is_no_miss(watched):
    watched.rack.host(HOST, reachable=False, host_key_problem=True, attempts=1, error="h03: host key changed")
    assert watched.look().hosts[HOST].findings[0].case == "host-key"


def test_what_is_remembered_survives_a_restart(watched):
    watched.rack.gpu(GPU, remap_pending=True, temperature_c=93.0)
    watched.look()
    watched.rack.gpu(GPU, temperature_c=60.0)
    before = watched.look(10)
    watched.restart()
    assert [f.since for f in watched.look(0).accelerators[GPU].findings] == [
        f.since for f in before.accelerators[GPU].findings
    ]


def test_after_a_long_sleep_old_stories_are_not_told_again(watched):
    watched.rack.gpu(GPU, temperature_c=93.0)
    watched.look()
    watched.rack.gpu(GPU, temperature_c=60.0)
    watched.restart()
    # It would stick for half a minute; nobody looked for an hour.
    assert watched.look(3600).accelerators[GPU].state is State.OK


def test_after_more_than_a_day_nothing_is_remembered(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    watched.restart()
    assert watched.look(100_000).accelerators[GPU].findings[0].since == watched.now


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        {},
        {"version": 2},
        {"version": 1, "history": 3},
        {"version": 1, "history": {"trends": [["accelerator"]]}},
        {"version": 1, "standing": {"marks": [["host", "h03", "host.unreachable", "no-session", "", "x"]]}},
        {"version": 1, "acknowledged": {"a": "wonderful"}},
        {"version": 1, "quiet_until": [1, 2]},
    ],
)
def test_a_document_of_somebody_else_is_a_first_look(watched, nonsense):
    watched.memory = Memory(nonsense)
    assert {h.state for group in watched.look().groups().values() for h in group.values()} == {State.OK}


def test_what_the_inventory_no_longer_has_is_forgotten(watched):
    watched.rack.gpu(GPU, remap_failed=True)
    watched.look()
    inventory = watched.rack.inventory
    kept = {name: host for name, host in inventory.hosts.items() if name != HOST}
    smaller = replace(
        inventory,
        hosts=kept,
        accelerators={n: a for n, a in inventory.accelerators.items() if a.host != HOST},
        transponders={n: t for n, t in inventory.transponders.items() if t.host != HOST},
        jobs={},
    )
    watched.rack.inventory, watched.rack.assignment = smaller, {}
    watched.look()
    assert HOST not in json.dumps(watched.memory.document())


def test_the_document_stays_small_whatever_a_host_says(watched):
    for look in range(40):
        events = tuple(XidEvent(watched.now, "0000:9b:00", 200 + look * 50 + n, "x" * 5000) for n in range(50))
        watched.rack.host(HOST, xids=events)
        watched.count(LANE, symbol_error=look * 1000, **{f"made_up_{look}_{n}": look for n in range(50)})
        watched.look(5)
    assert len(json.dumps(watched.memory.document())) < 200_000
    # What is not remembered is told all the same.
    assert len(gpu(watched).findings) == 50


def test_memories_of_two_racks_are_laid_together(watched):
    watched.rack.gpu(GPU, remap_pending=True)
    watched.look()
    one = json.loads(json.dumps(watched.memory.document()))
    other = json.loads(json.dumps(watched.memory.document()).replace("h03-gpu2", "x03-gpu2").replace('"h03"', '"x03"'))
    other["standing"]["looked_at"] -= 5
    both = merged([one, {"version": 99}, other])
    assert {mark[1] for mark in both["standing"]["marks"]} == {"h03-gpu2", "x03-gpu2"}
    assert both["standing"]["looked_at"] == watched.now
    assert merged([]) == {}
    Memory(both).document()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hot", "cool", "narrow", "wide", "lost", "found", "hung", "asked", "errors", "down", "up"]),
        st.sampled_from([1.0, 10.0, 40.0, 400.0]),
    ),
    max_size=12,
)


def take(watched, step, number):
    match step:
        case "hot" | "cool":
            watched.rack.gpu(GPU, temperature_c=95.0 if step == "hot" else 50.0)
        case "narrow" | "wide":
            watched.rack.gpu(GPU, pcie_width=8 if step == "narrow" else 16, pcie_width_max=16)
        case "lost":
            lose(watched, number + 1)
        case "found":
            find(watched)
        case "hung" | "asked":
            watched.frozen = {HOST} if step == "hung" else set()
        case "errors":
            watched.count(LANE, symbol_error=100 * number, link_downed=number)
        case "down" | "up":
            watched.carrier(LANE, number, up=step == "up")


PROPERTY = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@PROPERTY
@given(STEPS)
def test_a_restart_between_any_two_looks_changes_nothing(collected, watch, steps):
    kept, restarted = watch(collected("rack64")), watch(collected("rack64"))
    for number, (step, seconds) in enumerate(steps):
        take(kept, step, number)
        take(restarted, step, number)
        restarted.restart()
        assert restarted.look(seconds) == kept.look(seconds)


@PROPERTY
@given(STEPS)
def test_no_order_of_looks_makes_ok_of_what_is_not_known(collected, watch, steps):
    watched = watch(collected("rack64"))
    for number, (step, seconds) in enumerate(steps):
        take(watched, step, number)
        report = watched.look(seconds)
        unread = HOST in watched.frozen and watched.now - watched.rack.hosts[HOST].taken_at > 30
        if unread or not watched.rack.hosts[HOST].reachable:
            behind = [h for n, h in (report.accelerators | report.links).items() if n.startswith(HOST)]
            assert {health.state for health in (*behind, report.hosts[HOST])} <= {State.UNKNOWN, State.FAILED}
        for group in report.groups().values():
            assert not [h for h in group.values() if h.state is State.OK and h.otherwise is not State.OK]


@PROPERTY
@given(st.lists(st.booleans(), min_size=1, max_size=20), st.sampled_from([5.0, 10.0, 20.0]))
def test_a_fault_is_never_told_later_nor_for_shorter_than_it_is_seen(collected, watch, seen, tick_s):
    watched = watch(collected("rack64"))
    sticks_s = verdict("gpu.temperature", "core").clears_after_s
    last_seen = None
    for hot in seen:
        watched.rack.gpu(GPU, temperature_c=95.0 if hot else 50.0)
        told = watched.look(tick_s).accelerators[GPU].state is State.DEGRADED
        last_seen = watched.now if hot else last_seen
        if hot:
            assert told
        elif told:
            # Never longer than it sticks after the first look that was well.
            assert watched.now - last_seen <= sticks_s + tick_s


def test_many_looks_of_many_processes_in_one_minute_are_one_sample(watched):
    watched.now = 60.0 * (watched.now // 60)
    watched.rack.gpu(GPU, throttle_reasons=frozenset({"hw_thermal_slowdown"}))
    for _ in range(10):
        watched.look(5)
        watched.restart()
    assert gpu(watched).state is State.OK
