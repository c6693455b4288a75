from collections import deque

import pytest
from theatre import Theatre, at_work

from lumctl.inventory.running import WithoutSpare
from lumctl.training.ends import End
from lumctl.training.standing import Phase


def running(theatre):
    theatre.does_a_step()
    return theatre.coordinator.document()


def places(document):
    return [rank["accelerator"] for rank in document["ranks"]]


def done(document):
    return [rank["done"] for rank in document["ranks"]]


def test_a_job_starts_with_every_rank_where_the_inventory_says_and_spares_wait(tmp_path):
    theatre = Theatre(tmp_path)
    theatre.start()
    document = running(theatre)
    assert places(document) == ["h0-a", "h1-a", "h2-a", "h3-a"]
    assert done(document) == [1, 1, 1, 1]
    assert [each["accelerator"] for each in document["ready"]] == ["h4-a", "h5-a"]


def test_a_crash_on_a_well_accelerator_restarts_in_place_and_spends_no_spare(theatre):
    theatre.kill("h1-a#1")
    theatre.settle()
    document = running(theatre)
    assert places(document) == ["h0-a", "h1-a", "h2-a", "h3-a"]
    assert document["ranks"][1]["worker"] == "h1-a#2"
    assert done(document) == [2, 2, 2, 2]
    assert theatre.runs == 0
    assert document["recoveries"][0]["replaced_by"] == {}


def test_with_standby_the_ready_process_beside_the_rank_takes_it_over(tmp_path):
    theatre = at_work(Theatre(tmp_path, standby=True))
    running(theatre)
    assert "h1-a#2" in [each["worker"] for each in theatre.coordinator.document()["ready"]]
    theatre.kill("h1-a#1")
    theatre.settle()
    document = running(theatre)
    assert document["ranks"][1]["worker"] == "h1-a#2"
    running(theatre)
    assert "h1-a#3" in [each["worker"] for each in theatre.coordinator.document()["ready"]]


def test_a_dead_accelerator_is_replaced_by_a_spare_and_the_run_of_the_swap_is_told(theatre):
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    theatre.settle()
    document = running(theatre)
    assert places(document) == ["h0-a", "h4-a", "h2-a", "h3-a"]
    assert done(document) == [2, 2, 2, 2]
    (recovery,) = document["recoveries"]
    assert recovery["replaced_by"] == {"h1-a": "h4-a"}
    assert recovery["run"] == "swap-0001"
    marks = recovery["marks"]
    assert 0 <= marks["held"] <= marks["step"]
    assert marks["health"] < marks["planned"] < marks["verified"] < marks["joined"] < marks["step"]


def test_a_step_that_some_had_done_when_another_died_counts(theatre):
    players = theatre.players
    players["h0-a#1"].done = 2  # the optimiser had stepped there
    theatre.kill("h1-a#1")
    theatre.settle()
    assert done(running(theatre)) == [3, 3, 3, 3]


def test_a_process_that_hangs_is_killed_and_its_rank_goes_on(theatre):
    silent = {"tell": "silent", "worker": "h2-a#1", "for_s": 2.0}
    theatre.later("h2", lambda: theatre.coordinator.heard("h2", silent, ""))
    theatre.settle()
    assert "h2-a#1" not in theatre.players
    assert running(theatre)["ranks"][2]["worker"] == "h2-a#2"


def test_a_host_that_is_gone_loses_all_its_ranks(theatre):
    theatre.kill_host("h3")
    theatre.settle()
    assert places(running(theatre)) == ["h0-a", "h1-a", "h2-a", "h4-a"]


def test_the_second_failure_of_two_in_a_row_takes_the_second_spare(theatre):
    for name in ("h1-a", "h2-a"):
        theatre.broken.add(name)
        theatre.kill(f"{name}#1")
        theatre.settle()
        running(theatre)
    assert places(theatre.coordinator.document()) == ["h0-a", "h4-a", "h5-a", "h3-a"]


def test_the_spare_that_dies_while_it_takes_over_is_replaced_as_well(theatre):
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    while not any("replace h1-a" in line for line in theatre.said):
        theatre.turn()
    theatre.broken.add("h4-a")
    theatre.kill("h4-a#1")
    theatre.settle()
    assert places(running(theatre)) == ["h0-a", "h5-a", "h2-a", "h3-a"]


def test_without_a_spare_it_waits_and_goes_on_when_the_accelerator_is_well_again(theatre):
    theatre.broken |= {"h4-a", "h5-a", "h1-a"}
    theatre.kill("h1-a#1")
    theatre.settle()
    assert theatre.coordinator.phase is Phase.RECOVERING
    assert theatre.coordinator.document()["why"] == "no spare is left"
    theatre.broken.discard("h1-a")
    theatre.at += 10
    theatre.coordinator.turn()
    theatre.settle()
    assert places(running(theatre)) == ["h0-a", "h1-a", "h2-a", "h3-a"]


def test_without_a_spare_it_shrinks_if_told_to(tmp_path):
    theatre = at_work(Theatre(tmp_path, without_spare=WithoutSpare.SHRINK))
    theatre.broken |= {"h4-a", "h5-a", "h1-a"}
    theatre.kill("h1-a#1")
    theatre.settle()
    document = running(theatre)
    assert places(document) == ["h0-a", "h2-a", "h3-a"]
    assert [rank["rank"] for rank in document["ranks"]] == [0, 1, 2]


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_without_a_spare_it_stops_with_a_checkpoint_if_told_to(tmp_path, layout):
    theatre = at_work(Theatre(tmp_path, without_spare=WithoutSpare.STOP, layout=layout))
    theatre.broken |= {"h4-a", "h5-a", "h1-a"}
    theatre.kill("h1-a#1")
    theatre.settle()
    assert theatre.coordinator.phase is Phase.STOPPED
    assert theatre.coordinator.end is End.NO_SPARE
    stopped = {p.rank: p.stopped for p in theatre.players.values() if p.rank is not None}
    assert {done for done, _ in stopped.values()} == {1}
    also = [rank for _, ranks in stopped.values() for rank in ranks]
    assert also == ([1] if layout == "unique" else [])


def test_each_ranks_own_state_comes_from_its_keeper(tmp_path):
    theatre = at_work(Theatre(tmp_path, layout="unique"))
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    theatre.settle()
    assert done(running(theatre)) == [2, 2, 2, 2]


def test_a_pause_by_hand_holds_all_and_a_resume_goes_on_at_the_new_place(theatre):
    answers = []
    theatre.later("person", lambda: theatre.coordinator.asked({"ask": "pause"}, answers.append))
    theatre.settle()
    assert answers == [{"state": "paused"}]
    assert theatre.coordinator.phase is Phase.PAUSED
    theatre.placed[2] = "h5-a"
    theatre.later("person", lambda: theatre.coordinator.asked({"ask": "resume"}, answers.append))
    theatre.settle()
    assert answers[-1] == {"state": "running"}
    assert places(running(theatre)) == ["h0-a", "h1-a", "h5-a", "h3-a"]
    assert "h2-a#1" not in theatre.players


def test_a_new_coordinator_takes_a_running_job_over(tmp_path):
    theatre = Theatre(tmp_path)
    theatre.start()
    before = running(theatre)
    successor = Theatre(tmp_path)
    successor.players = theatre.players
    successor.start()
    after = running(successor)
    assert [rank["worker"] for rank in after["ranks"]] == [rank["worker"] for rank in before["ranks"]]
    assert done(after) == [2, 2, 2, 2]


def test_what_died_while_no_coordinator_looked_is_recovered_by_the_next(tmp_path):
    theatre = at_work(Theatre(tmp_path))
    del theatre.players["h2-a#1"]
    successor = Theatre(tmp_path)
    successor.players = theatre.players
    successor.start()
    document = running(successor)
    assert done(document) == [2, 2, 2, 2]
    assert document["ranks"][2]["accelerator"] == "h2-a"


def test_a_program_that_never_gets_ready_stops_the_job(tmp_path):
    theatre = Theatre(tmp_path)
    theatre.ready = lambda _player: {"say": "failed", "error": "no module named nothing"}
    ask = theatre.ask

    def ask_and_die(host, message):
        found = ask(host, message)
        if message["ask"] == "start":
            theatre.kill(message["worker"])
        return found

    object.__setattr__(theatre.means, "ask", ask_and_die)
    for host in theatre.coordinator.hosts():
        theatre.open(host)
    theatre.settle()
    assert theatre.coordinator.phase is Phase.STOPPED
    assert "before it was ready" in theatre.coordinator.why_ended


def test_failures_without_a_step_between_them_stop_the_job(tmp_path):
    theatre = at_work(Theatre(tmp_path, restarts=2))
    for number in (1, 2, 3):
        theatre.kill(f"h0-a#{number}")
        theatre.settle()
    assert theatre.coordinator.phase is Phase.STOPPED
    assert "no step done in between" in theatre.coordinator.why_ended


def test_whose_state_a_worker_has_is_known_though_it_says_late_that_it_had_joined(tmp_path):
    theatre = Theatre(tmp_path)
    for host in theatre.coordinator.hosts():
        theatre.open(host)
    while not any(player.joining for player in theatre.players.values()):
        theatre.turn()
    assert theatre.step()
    assert theatre.step()
    of_one, of_others = ([one for one in theatre.says if (one[0] == "h3-a#1") is so] for so in (True, False))
    theatre.says = deque(of_one[:1])
    theatre.turn()
    theatre.kill("h3-a#1")
    theatre.turn()
    theatre.says.extendleft(reversed(of_others))  # said in the group that they have been told to leave
    theatre.settle()
    assert done(running(theatre)) == [3, 3, 3, 3]
