"""Lines to agents are lost, and found again: nothing that was said or ordered meanwhile is lost with them."""

import pytest
from theatre import Theatre, at_work

from lumctl.errors import RefusedError
from lumctl.training.ends import End
from lumctl.training.lines import LONGEST_S
from lumctl.training.standing import Phase


def generation(theatre):
    return theatre.coordinator.group.generation


def loses_while(theatre, host, word):
    """Have the line to a host lost just before a word of a worker of it is heard, and found again."""
    hears = theatre.hears

    def deaf(at, message):
        if at == host and message.get("message", {}).get("say") == word:
            theatre.hears = hears
            theatre.lose_line(host)
        else:
            hears(at, message)

    theatre.hears = deaf


@pytest.mark.parametrize("word", ["held", "joined", "stepped"])
def test_what_a_rank_says_while_the_line_is_lost_counts(theatre, word):
    loses_while(theatre, "h2", word)
    theatre.kill("h1-a#1")
    theatre.settle()
    theatre.does_a_step()
    assert theatre.coordinator.trouble is None
    assert generation(theatre) == 2


@pytest.mark.parametrize("word", ["ready", "loaded"])
def test_what_a_new_process_says_while_the_line_is_lost_counts(theatre, word):
    loses_while(theatre, "h1", word)
    theatre.kill("h1-a#1")
    theatre.settle()
    theatre.does_a_step()
    assert generation(theatre) == 2


@pytest.mark.parametrize(("order", "groups"), [("hold", 2), ("load", 2), ("join", 3)])
def test_an_order_that_could_not_be_sent_is_given_again(theatre, order, groups):
    told = theatre.told

    def lost(player, message):
        if player.host == "h1" and message["do"] == order:
            theatre.told = told
            theatre.lose_line("h1")
        else:
            told(player, message)

    theatre.told = lost
    theatre.kill("h0-a#1" if order == "hold" else "h1-a#1")
    theatre.settle()
    theatre.does_a_step()
    assert generation(theatre) == groups


def test_a_job_that_ends_while_lines_are_lost_has_ended_well(theatre):
    for player in [theatre.players[name] for name in theatre.group()]:
        theatre.lose_line(player.host)
        player.last["ended"], player.code = {"say": "ended", "done": 1}, 0
        del theatre.players[player.name]
        theatre.dead.append(player)
    theatre.settle()
    assert theatre.coordinator.phase is Phase.ENDED, theatre.said
    assert theatre.coordinator.end is End.DONE


def test_an_agent_that_is_new_says_nothing_new(theatre):
    said = [*theatre.said]
    for host in ("h0", "h1", "h2", "h3"):
        theatre.restart_agent(host)
    theatre.settle()
    assert theatre.said == said
    assert generation(theatre) == 1
    theatre.does_a_step()


def test_a_word_that_is_said_again_does_not_have_a_job_run_that_has_ended(theatre):
    for player in [theatre.players[name] for name in theatre.group()]:
        theatre.say(player, {"say": "ended", "done": 1})
    theatre.settle()
    for name in theatre.group():
        theatre.exit(name)
    theatre.settle()
    assert theatre.coordinator.phase is Phase.ENDED
    joined = {"say": "joined", "generation": 1, "rank": 1}
    told = {"tell": "said", "worker": "h1-a#1", "message": joined, "at": theatre.at}
    theatre.coordinator.heard("h1", told, "")
    assert theatre.coordinator.phase is Phase.ENDED


def test_a_host_that_is_away_is_tried_again_with_pauses_and_its_ranks_go_on_when_it_is_back(theatre):
    theatre.broken |= {"h4-a", "h5-a"}
    theatre.lose_line("h3", refused=1000)
    theatre.settle()
    known = len(theatre.coordinator.roster.workers)
    before = len(theatre.opened)
    for _ in range(400):
        theatre.at += 0.5
        theatre.coordinator.post(lambda: None)
        theatre.coordinator.turn()
        theatre.settle()
    tried = len(theatre.opened) - before
    assert 200 / LONGEST_S - 1 <= tried <= 200 / LONGEST_S + 6
    assert len(theatre.coordinator.roster.workers) == known
    assert theatre.coordinator.document()["why"] == "host h3 is not heard: no route"
    assert theatre.said.count("host h3 is not heard: no route") == 1
    theatre.refuses.clear()
    theatre.wait(LONGEST_S)
    theatre.does_a_step()
    assert "h3-a#1" in theatre.group()


def test_what_ranks_have_is_not_lost_when_no_host_is_heard_for_a_while(tmp_path):
    theatre = at_work(Theatre(tmp_path, layout="unique"))
    for number in range(6):
        theatre.lose_line(f"h{number}", refused=5)
    theatre.come_to_rest()
    theatre.does_a_step()
    assert {player.done for player in theatre.players.values() if player.name in theatre.group()} == {2}
    assert theatre.group() == {f"h{number}-a#1" for number in range(4)}


def test_a_process_that_lost_its_rank_while_its_host_was_away_is_ended(theatre):
    theatre.broken.add("h3-a")
    theatre.lose_line("h3", refused=4)
    while theatre.coordinator.phase is Phase.RUNNING:
        assert theatre.turn()
    theatre.settle()
    theatre.does_a_step()
    assert "h3-a#1" in theatre.players
    theatre.come_to_rest()
    assert "h3-a#1" not in theatre.players
    theatre.does_a_step()


def test_a_job_whose_host_is_away_at_the_start_starts_when_it_is_back(tmp_path):
    theatre = Theatre(tmp_path)
    theatre.refuses["h1"] = 5
    for host in theatre.coordinator.hosts():
        theatre.coordinator.lines.open(host)
    theatre.settle()
    assert theatre.coordinator.phase is Phase.STARTING
    assert theatre.coordinator.document()["why"] == "host h1 is not heard: no route"
    theatre.come_to_rest()
    theatre.does_a_step()
    assert len([worker for worker in theatre.coordinator.roster if worker.accelerator == "h1-a"]) == 1


def test_the_line_to_a_host_that_had_nothing_to_do_with_the_job_is_opened_when_it_has(tmp_path):
    theatre = Theatre(tmp_path)
    theatre.coordinator.places._ready_on = lambda: ["h4-a"]
    at_work(theatre)
    assert "h5" not in theatre.opened
    theatre.placed[0] = "h5-a"
    answers = []
    theatre.coordinator.post(lambda: theatre.coordinator.asked({"ask": "resume"}, answers.append))
    theatre.coordinator.turn()
    theatre.settle()
    assert answers == [{"state": "running"}]
    theatre.does_a_step()


@pytest.mark.parametrize("message", [{"say": "held"}, {"say": "saved", "done": 1}, {"say": "stepped"}, "held"])
def test_a_word_that_cannot_be_understood_is_told_and_the_job_goes_on(theatre, message):
    told = {"tell": "said", "worker": "h1-a#1", "message": message, "at": 1}
    theatre.coordinator.heard("h1", told, "")
    assert theatre.said[-1].startswith("h1: what its agent tells is not understood")
    theatre.does_a_step()


def test_who_loses_an_agent_to_another_leaves_the_job_as_it_is(theatre):
    asked = []
    object.__setattr__(theatre.means, "ask", lambda host, message: bool(asked.append((host, message))) or True)
    theatre.coordinator.post(lambda: theatre.coordinator.heard("h0", {"tell": "taken", "by": "pid 7 on other"}, ""))
    with pytest.raises(RefusedError, match="the agent on h0 works for pid 7 on other") as refused:
        theatre.coordinator.run()
    assert "--take" in refused.value.hint
    assert asked == []


def test_an_agent_that_has_not_noticed_that_our_line_was_lost_is_tried_again(theatre):
    object.__setattr__(theatre.means, "who", "pid 1 on here (00c0ffee)")
    taken = {"tell": "taken", "by": theatre.means.who}
    theatre.coordinator.heard("h0", taken, "")
    theatre.lose_line("h0")
    theatre.settle()
    theatre.does_a_step()


def test_who_takes_the_job_over_asks_the_hosts_too_whose_accelerators_were_replaced(theatre):
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    assert "h1-a" not in theatre.placed
    theatre.restart_lumctl()
    assert "h1" in theatre.coordinator.hosts()
