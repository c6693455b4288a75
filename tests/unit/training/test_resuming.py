"""Who may have a held job go on: not the run that has taken its own swap back."""

from theatre import Theatre
from theatre_runs import Pair, Plan

from lumctl.errors import RolledBackError
from lumctl.training.standing import Phase


class TakenBack(Theatre):
    """A rack whose light lies: each swap is undone, which has the job go on where it was."""

    def look(self, accelerators, _failed_only):
        if not self.no_light:
            super().look(accelerators, _failed_only)
            return
        plan = Plan([Pair("train", "h1-a", "h4-a", 1)])
        answers = self.answers = []
        for play in (
            lambda: self.coordinator.looked({"h1-a": "it is lost"}),
            lambda: self.coordinator.planned(plan),
            lambda: self.coordinator.asked({"ask": "pause"}, answers.append),
            lambda: self.coordinator.asked({"ask": "resume"}, answers.append),
            lambda: self.coordinator.not_healed(RolledBackError("rolled back", run="swap-0001")),
        ):
            self.later("healer", play)


def waiting(theatre):
    """Have its job start and lose an accelerator, for which no swap is to be had."""
    theatre.start()
    theatre.no_light = True
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    theatre.settle()
    return theatre


def test_no_rank_is_started_on_a_lost_gpu_by_a_swap_that_is_taken_back(tmp_path) -> None:
    theatre = waiting(TakenBack(tmp_path))
    coordinator = theatre.coordinator
    assert coordinator.phase is Phase.RECOVERING
    assert theatre.answers == [{"state": "paused"}, {"state": "recovering"}]
    assert "h1-a#2" not in theatre.players
    assert coordinator.trouble.why == "rolled back"
    theatre.no_light = False
    theatre.come_to_rest()
    assert coordinator.phase is Phase.RUNNING
    assert "h1-a" not in [worker.accelerator for worker in coordinator.members()]


def test_a_job_that_waits_goes_on_when_a_person_has_replaced_what_failed(tmp_path) -> None:
    theatre = waiting(Theatre(tmp_path))
    coordinator = theatre.coordinator
    answers = []
    coordinator.asked({"ask": "resume"}, answers.append)
    assert answers == [{"state": "recovering"}]
    coordinator.post(lambda: coordinator.asked({"ask": "pause"}, answers.append))
    coordinator.turn()
    theatre.placed[1] = "h5-a"
    coordinator.post(lambda: coordinator.asked({"ask": "resume"}, answers.append))
    coordinator.turn()
    theatre.settle()
    assert answers[1:] == [{"state": "paused"}, {"state": "running"}]
    assert theatre.coordinator.phase is Phase.RUNNING
