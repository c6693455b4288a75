"""Whatever fails, in drawn sequences: a hundred by default, 1,500 of each kind with LUMCTL_CAMPAIGN set."""

import os
import random

import pytest
from theatre import Theatre

from lumctl.training.standing import Phase

SEEDS = 1500 if os.environ.get("LUMCTL_CAMPAIGN") else 100


def play(theatre, draw, hang=0.0, away=0.0):
    """Steps, deaths of processes and of accelerators, processes that only beat, lost lines, runs by hand: as drawn."""
    for _ in range(draw.randrange(20, 200)):
        chance, names = draw.random(), sorted(theatre.players)
        if chance < 0.06 and names:
            victim = draw.choice(names)
            if draw.random() < 0.4 and len(theatre.broken) < 2:
                theatre.broken.add(theatre.players[victim].accelerator)
            theatre.kill(victim)
        elif chance < 0.06 + hang and names:
            theatre.mute |= {name for name in [draw.choice(names)] if theatre.players[name].ready}
        elif chance < 0.06 + 2 * hang:
            theatre.wait(theatre.run_as.stall_s)
        elif chance < 0.06 + 2 * hang + away:
            beside(theatre, draw)
        elif chance < 0.3:
            theatre.step()
        else:
            theatre.turn()
        if theatre.coordinator.phase.over:
            return


def beside(theatre, draw):
    """What happens to lines, agents and lumctl itself, and what persons do meanwhile."""
    host = f"h{draw.randrange(6)}"
    match draw.randrange(6):
        case 0 | 1:
            theatre.lose_line(host, refused=draw.choice([0, 0, 1, 4]))
        case 2:
            theatre.restart_agent(host)
        case 3 | 4:
            theatre.by_hand(draw.choice([None, None, 0, 1, 2, 3]))
        case 5 if not theatre.locked:
            theatre.restart_lumctl()
        case _:
            theatre.at += 1


def done(theatre):
    return [rank["done"] for rank in theatre.coordinator.document()["ranks"]]


@pytest.mark.parametrize("layout", ["replicated", "unique"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_fails_when_the_job_runs_again_or_says_why_not(tmp_path, layout, seed):
    """The players complain about every broken rule; see the theatre."""
    draw = random.Random(seed)  # noqa: S311 - the same choices in every run
    theatre = Theatre(tmp_path, seed=seed, layout=layout, standby=draw.random() < 0.5, restarts=50)
    theatre.start()
    play(theatre, draw, hang=0.02 * (seed % 2), away=0.04 * (seed // 2 % 3))
    theatre.come_to_rest()
    for _ in range(20):
        if not theatre.mute & theatre.players.keys():
            break
        theatre.wait(theatre.run_as.stall_s)
        theatre.come_to_rest()
        for name in theatre.mute & theatre.players.keys() - theatre.group():
            theatre.kill(name)  # it has no rank: nobody misses it
        theatre.come_to_rest()
    phase, said = theatre.coordinator.phase, theatre.said
    if phase is Phase.STOPPED:
        have = [p for p in theatre.players.values() if p.done and "joined" in p.last and p.host in theatre.lines]
        assert layout == "unique" or not have, said
        assert "no checkpoint of all ranks was written" in theatre.coordinator.why_ended, said
        return
    if phase in {Phase.STARTING, Phase.RECOVERING}:
        assert theatre.coordinator.document()["why"] == "no spare is left", said
        return
    before = max(done(theatre))
    theatre.does_a_step()
    assert set(done(theatre)) == {before + 1}
