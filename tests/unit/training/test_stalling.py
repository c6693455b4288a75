"""All live, and nothing goes on: what all wait for has not come within its time."""

import pytest
from theatre import Theatre

from lumctl.inventory.running import PAUSED_WITHIN_S
from lumctl.training.standing import Phase


def steps(theatre):
    theatre.does_a_step()
    assert len({rank["done"] for rank in theatre.coordinator.document()["ranks"]}) == 1


def test_a_job_that_does_no_step_is_looked_at_and_forms_its_group_anew(theatre):
    generation = theatre.coordinator.group.generation
    theatre.wait(theatre.run_as.stall_s - 1)
    assert theatre.coordinator.group.generation == generation
    theatre.wait(2)
    assert theatre.coordinator.group.generation == generation + 1
    steps(theatre)
    assert any("no step was done within 600 s" in line for line in theatre.said)
    assert theatre.runs == 0


def test_an_accelerator_that_is_found_lost_then_is_replaced(theatre):
    theatre.broken.add("h2-a")
    theatre.wait(theatre.run_as.stall_s)
    theatre.come_to_rest()
    steps(theatre)
    assert theatre.placed == ["h0-a", "h1-a", "h4-a", "h3-a"]


def test_it_waits_for_light_that_is_missing_and_says_so_and_goes_on_with_it(theatre):
    theatre.dark = "no light: c3"
    theatre.wait(theatre.run_as.stall_s)
    for _ in range(5):
        theatre.wait(10)
        assert theatre.coordinator.phase is Phase.RECOVERING
        assert theatre.coordinator.document()["why"] == "no light: c3"
    assert [line for line in theatre.said if "no light: c3" in line] == [
        "no light: c3; the job waits for it, and looks every 5 s"
    ]
    assert theatre.coordinator.document()["state"] == "waiting"
    theatre.dark = ""
    theatre.wait(10)
    steps(theatre)


def test_a_rank_that_crashes_goes_on_in_a_light_that_was_good_enough_until_then(theatre):
    theatre.dark = "no light: c3"
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    theatre.dark = ""
    steps(theatre)


def test_a_group_that_is_not_found_has_light_and_accelerators_looked_at(theatre):
    theatre.mute.add("h3-a#1")
    theatre.kill("h1-a#1")
    theatre.settle()
    assert theatre.coordinator.phase is Phase.RECOVERING
    theatre.mute.clear()
    theatre.wait(theatre.run_as.stall_s)  # it has never said that it holds
    assert any("h3-a#1" in line and "does not hold within 600 s" in line for line in theatre.said)
    steps(theatre)
    theatre.kill("h1-a#2")
    while not theatre.coordinator.group.told or theatre.coordinator.phase is Phase.RUNNING:
        assert theatre.turn()
    theatre.mute.update(theatre.players)  # nobody finds the others
    theatre.settle()
    theatre.mute.clear()
    theatre.broken.add("h2-a")
    theatre.wait(PAUSED_WITHIN_S)
    assert any("the ranks found no group within 60 s" in line for line in theatre.said)
    theatre.come_to_rest()
    steps(theatre)
    assert "h2-a" not in theatre.placed


@pytest.mark.parametrize("layout", ["replicated", "unique"])
def test_a_process_that_never_loads_its_state_is_killed_and_another_takes_the_rank(tmp_path, layout):
    theatre = Theatre(tmp_path, layout=layout)
    theatre.start()
    steps(theatre)
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    while (spare := theatre.coordinator.roster.get("h4-a#1")) is None or spare.loading is None:
        assert theatre.turn()
    theatre.mute.add("h4-a#1")
    theatre.at += theatre.run_as.stall_s
    for _ in range(100):
        theatre.turn()
    assert any("h4-a#1" in line and "has not loaded its state within 600 s" in line for line in theatre.said)
    theatre.come_to_rest()
    steps(theatre)


def test_a_job_that_is_paused_for_longer_than_a_step_may_take_stays_so(theatre):
    answers = []
    theatre.coordinator.asked({"ask": "pause"}, answers.append)
    theatre.settle()
    theatre.wait(theatre.run_as.stall_s)
    theatre.wait(theatre.run_as.stall_s)
    assert answers == [{"state": "paused"}]
    assert theatre.coordinator.phase is Phase.PAUSED
    theatre.coordinator.asked({"ask": "resume"}, answers.append)
    theatre.wait(0)
    steps(theatre)


def test_what_has_been_said_before_the_end_of_the_time_counts(theatre):
    generation = theatre.coordinator.group.generation
    assert theatre.step()
    theatre.at += theatre.run_as.stall_s  # as if the coordinator had been stopped meanwhile
    theatre.settle()
    assert theatre.coordinator.group.generation == generation
    steps(theatre)


def test_who_does_not_leave_the_step_that_failed_is_told_and_ended_at_last(theatre):
    theatre.mute.add("h3-a#1")
    theatre.kill("h1-a#1")
    theatre.settle()
    for _ in range(125):
        theatre.wait(1)
    told = [line.rpartition(" (") for line in theatre.said if "waiting" in line]
    assert [words for words, _, _ in told] == ["recovering: waiting for h3-a to leave the step"] * 3
    assert [float(late.partition(" ")[0]) for _, _, late in told] == pytest.approx([30, 60, 120], abs=5)
    assert theatre.coordinator.document()["why"].startswith("waiting for h3-a to leave the step (12")
    theatre.wait(theatre.run_as.stall_s)
    theatre.come_to_rest()
    assert "h3-a#1" not in theatre.players
    steps(theatre)
