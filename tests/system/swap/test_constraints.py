"""What a job requires of its spares is read on their hosts when they are chosen; each refusal says what is amiss."""

import pytest

from lumctl.change import apply
from lumctl.swap import plan_swap
from lumctl.swap.demand_queue import queue_demands, queue_entries
from lumctl.swap.explanations import NoSpareError

LOST, SPARES = "h1-gpu0", ("h5-gpu0", "h5-gpu1")


@pytest.fixture
def rack_with(rack_of, tmp_path):
    made = []

    def make(constraints: str):
        written = f"    spares: {constraints}\n    links:\n"
        made.append(rack_of("ring8", tmp_path, edited=lambda text: text.replace("    links:\n", written)))
        return next(made[-1])

    yield make
    for each in made:
        next(each, None)


def objections(plan):
    return {each.spare: " ".join(each.reasons) for each in plan.candidates}


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        ('{driver: ["1.*", "2.*"]}', r"has driver [\d.]+, but train needs 1.\* or 2.\*"),
        ('{firmware: ["96.*"]}', r"has firmware 95.02.66.00.02, but train needs 96.\*"),
        ("{free_memory_gib: 96}", r"has 80.0 GiB of free memory \(0.0 in use\), but train needs 96"),
        ("{most_loss_db: 0.5}", r"would lose \d+.\d dB, more than the 0.5 of train"),
    ],
)
def test_a_spare_without_what_the_job_needs_is_refused_with_what_it_has(rack_with, constraints, says):
    rack = rack_with(constraints)
    rack.sim.inject(LOST, "gpu-lost")
    with pytest.raises(NoSpareError, match=f"{SPARES[0]}: .*{says}.*{SPARES[1]}: .*{says}"):
        plan_swap(rack.context, None, [LOST])


def test_a_spare_that_has_all_of_it_is_taken(rack_with):
    rack = rack_with('{driver: ["*"], firmware: ["95.*"], free_memory_gib: 40, most_loss_db: 30}')
    rack.sim.inject(LOST, "gpu-lost")
    apply(rack.context, plan_swap(rack.context, None, [LOST]))
    assert rack.context.assignment()["train"][0] in SPARES


def test_of_two_that_are_lost_on_different_hosts_one_waits_if_the_spares_share_theirs(rack_with):
    rack = rack_with("{hosts: different}")
    failed = [LOST, "h2-gpu0"]
    for each in failed:
        rack.sim.inject(each, "gpu-lost")
    with pytest.raises(NoSpareError, match="cannot be replaced together: train requires spares on different hosts"):
        plan_swap(rack.context, None, failed)
    first = plan_swap(rack.context, None, failed[:1])
    assert first.replacements[0].spare in SPARES
    apply(rack.context, first)
    (taken,) = {each.spare for each in first.replacements}
    (left,) = set(SPARES) - {taken}
    with pytest.raises(NoSpareError, match=f"{left}: is on h5 like {taken} of train"):
        plan_swap(rack.context, None, failed[1:])


def test_a_demand_that_no_single_host_can_ever_serve_is_refused_and_one_that_it_can_is_served(rack_with):
    rack = rack_with("{hosts: same}")
    three = [LOST, "h1-gpu1", "h2-gpu0"]
    for each in (*three, *SPARES):
        rack.sim.inject(each, "gpu-lost")
    seen = rack.context.observe()
    with pytest.raises(Exception, match="it needs 3"):
        queue_demands(rack.store, seen, "ring8", three, why="none", who="ann@console")
    queue_demands(rack.store, seen, "ring8", three[:2], why="none", who="ann@console")
    for each in SPARES:
        rack.sim.clear(each)
    entries, _ = queue_entries(rack.store.demands.waiting(), rack.context.observe(), "ring8")
    assert [set(each.given) for each in entries] == [set(SPARES)]
    apply(rack.context, plan_swap(rack.context, None, three[:2]))
