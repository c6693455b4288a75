"""Whatever fails, in drawn sequences: a hundred by default, 1,500 of each kind with LUMCTL_CAMPAIGN set."""

import os
import random

import pytest
from fake_cluster import FakeCluster
from searched_workers import require_all_searched

from lumctl.training.coordinator import requests
from lumctl.training.coordinator.state import JobStage

SEEDS = 1500 if os.environ.get("LUMCTL_CAMPAIGN") else 100


def play(cluster, draw, hang=0.0, away=0.0):
    """Steps, deaths of processes and of accelerators, processes that only beat, lost lines, runs by hand: as drawn."""
    for _ in range(draw.randrange(20, 200)):
        chance, names = draw.random(), sorted(cluster.processes)
        if chance < 0.06 and names:
            victim = draw.choice(names)
            if draw.random() < 0.4 and len(cluster.broken) < 2:
                cluster.broken.add(cluster.processes[victim].accelerator)
            cluster.kill(victim)
        elif chance < 0.06 + hang and names:
            cluster.mute |= {name for name in [draw.choice(names)] if cluster.processes[name].ready}
        elif chance < 0.06 + 2 * hang:
            cluster.wait(cluster.run.stall_s)
        elif chance < 0.06 + 2 * hang + away:
            beside(cluster, draw)
        elif chance < 0.3:
            cluster.step()
        else:
            cluster.turn()
        if cluster.state.phase.over:
            return


def beside(cluster, draw):
    """What happens to lines, agents and lumctl itself, and what persons do meanwhile."""
    host = f"h{draw.randrange(6)}"
    match draw.randrange(6):
        case 0 | 1:
            cluster.lose_line(host, refused=draw.choice([0, 0, 1, 4]))
        case 2:
            cluster.restart_agent(host)
        case 3 | 4:
            cluster.by_hand(draw.choice([None, None, 0, 1, 2, 3]))
        case 5 if not cluster.locked:
            cluster.restart_lumctl()
        case _:
            cluster.at += 1


def done(cluster):
    return [rank["done"] for rank in requests.document(cluster.state)["ranks"]]


@pytest.mark.parametrize(("layout", "phases"), [("replicated", False), ("unique", False), ("unique", True)])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_fails_when_the_job_runs_again_or_says_why_not(tmp_path, layout, phases, seed):
    """The processes complain about every broken rule; see the cluster."""
    draw = random.Random(seed)  # noqa: S311 - the same choices in every run
    standby = draw.random() < 0.5
    cluster = FakeCluster(tmp_path, seed=seed, layout=layout, standby=standby, restarts=50, phases=phases)
    cluster.start()
    play(cluster, draw, hang=0.02 * (seed % 2), away=0.04 * (seed // 2 % 3))
    cluster.come_to_rest()
    for _ in range(20):
        if not cluster.mute & cluster.processes.keys():
            break
        cluster.wait(cluster.run.stall_s)
        cluster.come_to_rest()
        for name in cluster.mute & cluster.processes.keys() - cluster.group():
            cluster.kill(name)  # it has no rank: nobody misses it
        cluster.come_to_rest()
    phase, said = cluster.state.phase, cluster.said
    if phase is JobStage.STOPPED:
        have = [p for p in cluster.processes.values() if p.done and "joined" in p.last and p.host in cluster.lines]
        assert layout == "unique" or not have, said
        assert "no checkpoint of all ranks was written" in cluster.state.why_ended, said
        return
    if phase in {JobStage.STARTING, JobStage.RECOVERING}:
        assert requests.document(cluster.state)["why"] == "no spare is left", said
        return
    before = max(done(cluster))
    cluster.does_a_step()
    assert set(done(cluster)) == {before + 1}


@pytest.mark.parametrize("layout", ["replicated", "unique"])
@pytest.mark.parametrize("seed", range(SEEDS // 4))
def test_what_is_looked_up_is_what_a_search_finds_after_each_event(tmp_path, layout, seed):
    draw = random.Random(seed)  # noqa: S311 - the same choices in every run
    cluster = FakeCluster(tmp_path, seed=seed, layout=layout, standby=draw.random() < 0.5, restarts=50)
    turn = cluster.turn

    def searched():
        happened = turn()
        require_all_searched(cluster.state, cluster.lines)
        return happened

    cluster.turn = searched
    cluster.start()
    play(cluster, draw, hang=0.02 * (seed % 2), away=0.04 * (seed // 2 % 3))
    cluster.come_to_rest()
