"""Where the light shows the jobs: from what receivers hear to who runs which rank, or to what does not tell."""

import pytest

from lumctl.inventory.load import example, load_inventory
from lumctl.inventory.wiring import circuits_of, initial_assignment
from lumctl.swap.adoption import shown_by


def heard_under(inventory, **placed):
    """What every receiver hears while the jobs run so."""
    circuits = circuits_of(inventory, {**initial_assignment(inventory), **placed})
    return {receiver: transmitter for circuit in circuits for receiver, transmitter in circuit.receivers}


def replaced(inventory, job, **spares):
    """The placement of a job in which ranks (``r7="h16-gpu0"``) have been given to other accelerators."""
    ranks = list(inventory.jobs[job].ranks)
    for rank, spare in spares.items():
        ranks[int(rank[1:])] = spare
    return tuple(ranks)


def test_where_nothing_was_swapped_the_inventory_is_right(inventory):
    shown = shown_by(inventory, next(iter(inventory.racks)), heard_under(inventory), initial_assignment(inventory))
    assert shown.elsewhere == {}
    assert all(job.is_determined and job.ranks == shown.placed[name] for name, job in shown.jobs.items())


def test_spares_that_took_ranks_are_found_in_each_job(rack64):
    a = replaced(rack64, "train-a", r0="h16-gpu0", r8="h16-gpu1")
    b = replaced(rack64, "train-b", r14="h16-gpu2")
    heard = heard_under(rack64, **{"train-a": a, "train-b": b})
    shown = shown_by(rack64, "rack64", heard, initial_assignment(rack64))
    assert shown.elsewhere == {"train-a": a, "train-b": b}


def test_a_circuit_that_is_dark_does_not_hide_who_runs_its_ranks(rack64):
    """Each of them has another one."""
    a = replaced(rack64, "train-a", r0="h16-gpu0")
    heard = heard_under(rack64, **{"train-a": a})
    dark = {lane.id for lane in rack64.transponders_of("h16-gpu0")[:1]}
    heard = {receiver: sender for receiver, sender in heard.items() if not {receiver, sender} & dark}
    assert shown_by(rack64, "rack64", heard, initial_assignment(rack64)).elsewhere == {"train-a": a}


def test_a_rank_without_light_is_named(rack64):
    a = replaced(rack64, "train-a", r0="h16-gpu0")
    dark = {lane.id for lane in rack64.transponders_of("h16-gpu0")}
    heard = {r: t for r, t in heard_under(rack64, **{"train-a": a}).items() if not {r, t} & dark}
    job = shown_by(rack64, "rack64", heard, initial_assignment(rack64)).jobs["train-a"]
    assert (job.unseen, job.is_determined) == ((0,), False)


def test_a_ring_that_could_begin_at_any_of_its_ranks_is_not_determined():
    """By the record it runs the other way round: each rotation differs as much."""
    prototype = load_inventory(example("prototype"))
    recorded = {"finetune": ("s1-gpu0", "s0-gpu0", "s2-gpu0")}
    job = shown_by(prototype, "prototype", heard_under(prototype), recorded).jobs["finetune"]
    assert (len(job.rivals), job.is_determined) == (2, False)


def test_what_an_operator_says_is_held_against_the_light(rack64):
    a = replaced(rack64, "train-a", r0="h16-gpu0")
    heard, placed = heard_under(rack64, **{"train-a": a}), initial_assignment(rack64)
    assert shown_by(rack64, "rack64", heard, placed, given={"train-a": a}).jobs["train-a"].rivals == ()
    wrong = replaced(rack64, "train-a", r1="h16-gpu0")
    assert shown_by(rack64, "rack64", heard, placed, given={"train-a": wrong}).jobs["train-a"].rivals == (a,)


@pytest.mark.parametrize("heard", [{}, {"s0-gpu0-a": "s0-gpu0-b"}])
def test_a_rack_without_light_determines_nothing(inventory, heard):
    if not set(heard) <= set(inventory.transponders):
        heard = {}
    shown = shown_by(inventory, next(iter(inventory.racks)), heard, initial_assignment(inventory))
    assert shown.elsewhere == {}
    assert not any(job.is_determined for job in shown.jobs.values())
