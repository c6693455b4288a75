"""A job that somebody holds stays so until it is resumed, whatever fails meanwhile."""

from theatre import Theatre

from lumctl.errors import UnreachableError
from lumctl.training.ends import End
from lumctl.training.standing import Phase

PLACES = ["h0-a", "h1-a", "h2-a", "h3-a"]


def asks(theatre, what):
    answers = []
    theatre.coordinator.post(lambda: theatre.coordinator.asked({"ask": what}, answers.append))
    theatre.coordinator.turn()
    return answers


def steps_at(theatre, places):
    theatre.does_a_step()
    assert [rank["accelerator"] for rank in theatre.coordinator.document()["ranks"]] == places


def holds(theatre):
    assert theatre.coordinator.document()["state"] == "paused"
    assert not theatre.step()
    theatre.wait(20)
    assert theatre.coordinator.document()["state"] == "paused"


def resumes(theatre, places):
    theatre.placed[:] = places
    answers = asks(theatre, "resume")
    theatre.come_to_rest()
    assert answers == [{"state": "running"}]
    steps_at(theatre, places)


def test_a_pause_during_a_recovery_is_kept_until_it_is_resumed(theatre):
    theatre.kill("h1-a#1")
    while theatre.coordinator.phase is not Phase.RECOVERING:
        theatre.turn()
    answers = asks(theatre, "pause")
    theatre.settle()
    assert answers == [{"state": "paused"}]
    holds(theatre)
    resumes(theatre, ["h0-a", "h1-a", "h4-a", "h3-a"])


def test_a_pause_while_a_group_is_formed_is_answered_and_kept(theatre):
    theatre.kill("h1-a#1")
    while not theatre.coordinator.group.told or theatre.coordinator.phase is Phase.RUNNING:
        assert theatre.turn()
    answers = asks(theatre, "pause")
    theatre.settle()
    assert answers == [{"state": "paused"}]
    holds(theatre)
    resumes(theatre, PLACES)


def test_a_process_that_dies_while_the_job_is_held_does_not_have_it_go_on(theatre):
    asks(theatre, "pause")
    theatre.settle()
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    holds(theatre)
    resumes(theatre, ["h0-a", "h1-a", "h2-a", "h5-a"])


def test_a_job_that_nobody_resumes_any_more_can_be_stopped(theatre):
    asks(theatre, "pause")
    theatre.settle()
    theatre.kill("h1-a#1")
    theatre.come_to_rest()
    asks(theatre, "stop")
    theatre.settle()
    assert theatre.coordinator.phase is Phase.STOPPED
    assert theatre.coordinator.end is End.STOPPED


def test_a_resume_reads_the_placement_of_a_job_that_runs(theatre):
    resumes(theatre, ["h0-a", "h1-a", "h4-a", "h3-a"])
    generation = theatre.coordinator.group.generation
    resumes(theatre, ["h0-a", "h1-a", "h4-a", "h3-a"])
    assert theatre.coordinator.group.generation == generation


def test_a_pause_at_the_start_holds_the_first_group(tmp_path):
    theatre = Theatre(tmp_path)
    for host in theatre.coordinator.hosts():
        theatre.open(host)
    answers = asks(theatre, "pause")
    theatre.settle()
    assert answers == [{"state": "paused"}]
    holds(theatre)
    resumes(theatre, ["h0-a", "h1-a", "h2-a", "h5-a"])


def test_lumctl_that_is_killed_while_the_job_holds_is_followed_by_one_that_has_it_go_on(theatre):
    asks(theatre, "pause")
    theatre.settle()
    assert all(theatre.players[name].parked for name in theatre.group())
    theatre.restart_lumctl()
    theatre.settle()
    assert theatre.coordinator.group.generation > 2
    steps_at(theatre, PLACES)


def test_lumctl_that_is_killed_while_some_hold_is_followed_by_one_that_has_all_hold(theatre):
    theatre.lose_line("h2", refused=9)
    asks(theatre, "pause")
    while theatre.players["h0-a#1"].last.get("held") is None:
        theatre.turn()
    theatre.refuses.clear()
    theatre.restart_lumctl()
    theatre.settle()
    steps_at(theatre, PLACES)


def test_a_store_that_cannot_be_read_is_told_to_who_pauses_and_the_job_runs(theatre):
    def down():
        raise UnreachableError("the store does not answer")

    means = theatre.coordinator.places
    read, means._placement = means._placement, down
    assert asks(theatre, "pause") == [{"error": "the store does not answer"}]
    steps_at(theatre, PLACES)
    means._placement = read
    asks(theatre, "pause")
    theatre.settle()
    means._placement = down
    assert asks(theatre, "resume") == [{"error": "the store does not answer"}]
    holds(theatre)
    means._placement = read
    resumes(theatre, PLACES)


def test_a_run_is_done_when_its_light_is_right_though_another_failure_keeps_the_job(theatre):
    answers = asks(theatre, "pause")
    theatre.settle()
    theatre.placed[1] = "h4-a"
    theatre.broken.add("h2-a")
    theatre.kill("h2-a#1")
    asked = theatre.coordinator.asked
    theatre.coordinator.post(lambda: asked({"ask": "resume"}, answers.append))
    theatre.coordinator.turn()
    theatre.come_to_rest()
    assert answers == [{"state": "paused"}, {"state": "recovering"}]
    assert theatre.placed == ["h0-a", "h4-a", "h5-a", "h3-a"]
    assert theatre.coordinator.phase is Phase.RUNNING
