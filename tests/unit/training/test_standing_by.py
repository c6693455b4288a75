"""Processes that wait for a rank: where, and what follows when they cannot start."""

import pytest
from theatre import Theatre, at_work

from lumctl.errors import UnreachableError
from lumctl.inventory.running import WithoutSpare
from lumctl.training.standing import Phase


def steps(theatre, number=1):
    for _ in range(number):
        theatre.does_a_step()


def crash_on(theatre, accelerators):
    """Have each process die that is started there from now on; gives the names of those that were started."""
    started, ask = [], theatre.ask

    def crash(host, message):
        found = ask(host, message)
        if found and message["ask"] == "start" and message["accelerator"] in accelerators:
            started.append(message["worker"])
            theatre.kill(message["worker"])
        return found

    object.__setattr__(theatre.means, "ask", crash)
    return started


def test_processes_beside_the_ranks_that_cannot_start_do_not_stop_a_job_that_runs_well(tmp_path):
    theatre = Theatre(tmp_path, standby=True)
    theatre.start()
    started = crash_on(theatre, theatre.placed)
    steps(theatre, 50)
    assert len(started) == 4
    assert theatre.coordinator.fruitless == 0


def test_a_spare_that_always_crashes_is_started_with_growing_pauses_and_told_once(tmp_path):
    theatre = at_work(Theatre(tmp_path))
    started = crash_on(theatre, {"h4-a"})
    theatre.kill("h4-a#1")
    for _ in range(500):
        theatre.at += 1
        steps(theatre)
    assert 5 <= len(started) <= 9
    assert len([line for line in theatre.said if "before it was ready" in line]) == 1


def test_a_spare_that_gets_ready_again_is_waited_for_anew_when_it_dies(tmp_path):
    theatre = at_work(Theatre(tmp_path))
    ask = theatre.means.ask
    crash_on(theatre, {"h4-a"})
    theatre.kill("h4-a#1")
    steps(theatre, 3)
    object.__setattr__(theatre.means, "ask", ask)
    theatre.at += 10
    steps(theatre, 2)
    assert "h4-a" in [each["accelerator"] for each in theatre.coordinator.document()["ready"]]
    assert not theatre.coordinator.standby.waits("h4-a", theatre.at)


def test_the_store_is_not_read_with_each_step_and_may_be_away(tmp_path):
    theatre = at_work(Theatre(tmp_path))
    reads, places = [], theatre.coordinator.places

    def down():
        reads.append(theatre.at)
        raise UnreachableError("the store does not answer")

    places._ready_on = places._placement = down
    steps(theatre, 10)
    assert reads == []
    theatre.kill("h4-a#1")
    steps(theatre, 10)
    assert len(reads) == 1
    assert theatre.said.count("the store cannot be read, what it said last holds: the store does not answer") == 1
    assert "h4-a" in [each["accelerator"] for each in theatre.coordinator.document()["ready"]]
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    steps(theatre)


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_rank_that_was_given_up_comes_back_when_it_is_placed_elsewhere(tmp_path, by_hand):
    theatre = at_work(Theatre(tmp_path, without_spare=WithoutSpare.SHRINK))
    theatre.broken |= {"h4-a", "h5-a", "h1-a"}
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    steps(theatre)
    assert len(theatre.group()) == 3
    theatre.broken.clear()
    theatre.placed[1] = "h4-a"
    if by_hand:
        theatre.by_hand()
    else:
        theatre.kill("h0-a#1")
    theatre.come_to_rest()
    steps(theatre)
    placed = [rank["accelerator"] for rank in theatre.coordinator.document()["ranks"]]
    assert placed == ["h0-a", "h4-a", "h2-a", "h3-a"]


@pytest.mark.parametrize("how", ["it ends", "it never ends"])
def test_none_is_started_where_one_is_dying_until_it_has_ended(tmp_path, how):
    theatre = at_work(Theatre(tmp_path, seed=1))
    hears = theatre.hears
    ends = []
    theatre.hears = lambda host, message: ends.append(message) if message["tell"] == "exited" else hears(host, message)
    theatre.kill("h1-a#1")
    theatre.settle()
    assert [each["worker"] for each in ends] == ["h1-a#1"]
    assert [name for name in theatre.players if name.startswith("h1-a")] == []
    theatre.hears = hears
    if how == "it ends":
        theatre.later("h1-a#1", lambda: hears("h1", ends[0]))
        theatre.settle()
    else:
        theatre.wait(theatre.run_as.stall_s)
    assert [name for name in theatre.players if name.startswith("h1-a")] == ["h1-a#2"]
    assert theatre.coordinator.phase is Phase.RUNNING


def test_what_a_host_loses_at_once_is_replaced_by_one_run(tmp_path, monkeypatch):
    theatre = at_work(Theatre(tmp_path))
    real = theatre.coordinator.host_of
    monkeypatch.setattr(theatre.coordinator, "host_of", lambda name: "h1" if name == "h2-a" else real(name))
    theatre.broken |= {"h1-a", "h2-a"}
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    assert theatre.runs == 1
    assert set(theatre.placed) == {"h0-a", "h4-a", "h5-a", "h3-a"}
    assert "h2-a#1" not in theatre.players
    assert theatre.coordinator.phase is Phase.RUNNING
