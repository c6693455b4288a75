"""Who may have a held job continue: not the run that has taken its own swap back."""

from fake_cluster import FakeCluster
from fake_runs import Pair, Plan

from lumctl.errors import RolledBackError
from lumctl.training.coordinator import failures, requests
from lumctl.training.coordinator.state import JobStage


class TakenBack(FakeCluster):
    """A rack whose light lies: each swap is undone, which has the job continue where it was."""

    def examine(self, accelerators, _failed_only):
        if not self.no_light:
            super().examine(accelerators, _failed_only)
            return
        plan = Plan([Pair("train", "h1-a", "h4-a", 1)])
        answers = self.answers = []
        for play in (
            lambda: failures.examined(self.state, {"h1-a": "it is lost"}),
            lambda: failures.planned(self.state, plan),
            lambda: requests.receive(self.state, {"ask": "pause"}, answers.append),
            lambda: requests.receive(self.state, {"ask": "resume"}, answers.append),
            lambda: failures.not_repaired(self.state, RolledBackError("rolled back", run="swap-0001")),
        ):
            self.later("healer", play)


def waiting(cluster):
    """Have its job start and lose an accelerator, for which no swap is to be had."""
    cluster.start()
    cluster.no_light = True
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    cluster.settle()
    return cluster


def test_no_rank_is_started_on_a_lost_gpu_by_a_swap_that_is_taken_back(tmp_path) -> None:
    cluster = waiting(TakenBack(tmp_path))
    coordinator = cluster.coordinator
    assert coordinator.state.phase is JobStage.RECOVERING
    assert cluster.answers == [{"state": "paused"}, {"state": "recovering"}]
    assert "h1-a#2" not in cluster.processes
    assert coordinator.state.recovery.why == "rolled back"
    cluster.no_light = False
    cluster.come_to_rest()
    assert coordinator.state.phase is JobStage.RUNNING
    assert "h1-a" not in [worker.accelerator for worker in coordinator.state.living_members()]


def test_a_job_that_waits_goes_on_when_a_person_has_replaced_what_failed(tmp_path) -> None:
    cluster = waiting(FakeCluster(tmp_path))
    coordinator = cluster.coordinator
    answers = []
    requests.receive(coordinator.state, {"ask": "resume"}, answers.append)
    assert answers == [{"state": "recovering"}]
    coordinator.post(requests.receive, {"ask": "pause"}, answers.append)
    coordinator.turn()
    cluster.placed[1] = "h5-a"
    coordinator.post(requests.receive, {"ask": "resume"}, answers.append)
    coordinator.turn()
    cluster.settle()
    assert answers[1:] == [{"state": "paused"}, {"state": "running"}]
    assert cluster.state.phase is JobStage.RUNNING
