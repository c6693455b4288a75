"""What the next lumctl knows of a job: who is at work, what was written, and what has happened before it came."""

import pytest
from fake_cluster import FakeCluster, at_work

from lumctl.training.coordinator import job_end, requests
from lumctl.training.coordinator.state import JobStage


class Ending(FakeCluster):
    """Workers that write, as they are told to stop, what real ones would, say so, and end."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.written = set()

    def told(self, process, message):
        super().told(process, message)
        if message["do"] == "stop":
            self.later(process.name, lambda: self.ends(process, *process.stopped))

    def ends(self, process, done, also):
        if process.name not in self.processes:
            return
        for rank in [*([process.rank] if process.rank is not None and process.done == done else []), *also]:
            path = f"/{process.host}/step-{done}-rank-{rank}.pt"
            self.written.add(path)
            self.tells(process, {"say": "saved", "done": done, "path": path, "rank": rank})
        self.tells(process, {"say": "ended", "done": process.done})
        self.kill(process.name)

    def tells(self, process, message):
        process.last[message["say"]] = message
        self.hears(process.host, {"tell": "said", "worker": process.name, "message": message, "at": self.at})

    def asks_to_stop(self):
        """Ask for a stop at once, and play it to its end; the answer."""
        answers = []
        self.coordinator.post(requests.receive, {"ask": "stop"}, answers.append)
        self.coordinator.turn()
        self.settle()
        assert self.state.phase is JobStage.STOPPED
        requests.report_stopped(self.state)
        return answers[0]


@pytest.mark.parametrize("layout", ["replicated", "unique"])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_a_stop_after_a_takeover_names_what_all_ranks_have_written(tmp_path, layout, settled, swapped):
    cluster = at_work(Ending(tmp_path, layout=layout))
    if swapped:
        cluster.broken.add("h1-a")
        cluster.kill("h1-a#1")
        cluster.settle()
        cluster.does_a_step()
    done = 2 if swapped else 1
    cluster.restart_lumctl()
    if settled:
        cluster.settle()
    answer = cluster.asks_to_stop()
    hosts = ["h0", "h4" if swapped else "h1", "h2", "h3"]
    assert answer["saved"] == sorted(f"/{host}/step-{done}-rank-{rank}.pt" for rank, host in enumerate(hosts))
    assert set(answer["saved"]) == cluster.written
    assert (answer["state"], answer["done"]) == ("stopped", done)


def test_a_stop_before_anybody_is_known_stops_a_job_that_has_not_begun(tmp_path):
    cluster = Ending(tmp_path)
    for host in cluster.state.hosts():
        cluster.state.lines.open(host)
    assert cluster.asks_to_stop() == {"state": "stopped", "done": 0, "saved": []}
    assert cluster.processes == {}


def test_one_that_writes_for_a_rank_that_is_lost_names_both(tmp_path):
    cluster = at_work(Ending(tmp_path, layout="unique"))
    cluster.no_light = True
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    cluster.settle()
    answer = cluster.asks_to_stop()
    assert set(answer["saved"]) == cluster.written
    assert "/h2/step-1-rank-1.pt" in answer["saved"]
    assert len(answer["saved"]) == 4


def kept_by(cluster):
    """Have it kept how the job stands, as lumctl does in the job's folder."""
    kept = []
    object.__setattr__(cluster.effects, "keep", kept.append)
    return kept


def test_recoveries_of_before_are_told_by_whoever_takes_over(tmp_path):
    cluster = at_work(FakeCluster(tmp_path))
    kept = kept_by(cluster)
    cluster.kill("h1-a#1")
    cluster.settle()
    cluster.does_a_step()
    before = kept[-1]["recoveries"]
    assert [each["failed"] for each in before] == [["h1-a"]]
    object.__setattr__(cluster.effects, "before", tuple(before))
    cluster.restart_lumctl()
    cluster.settle()
    assert requests.document(cluster.state)["recoveries"] == before
    cluster.kill("h2-a#1")
    cluster.settle()
    cluster.does_a_step()
    assert [each["failed"] for each in kept[-1]["recoveries"]] == [["h1-a"], ["h2-a"]]


def test_a_job_that_begins_anew_has_had_no_recovery(tmp_path):
    cluster = FakeCluster(tmp_path)
    object.__setattr__(cluster.effects, "before", ({"failed": ["h1-a"]},))
    at_work(cluster)
    assert requests.document(cluster.state)["recoveries"] == []


def test_how_a_job_has_ended_is_kept(tmp_path, monkeypatch):
    cluster = at_work(Ending(tmp_path))
    kept = kept_by(cluster)
    coordinator = cluster.coordinator
    cluster.asks_to_stop()
    monkeypatch.setattr(coordinator, "_take_work", lambda until: setattr(cluster, "at", until))  # nothing is reported
    coordinator.run()
    last = kept[-1]
    assert (last["state"], last["done"], last["why"]) == ("stopped", 1, "an operator requested it")
    assert set(last["saved"]) == cluster.written
    assert last["ended_at"] == cluster.at


@pytest.mark.parametrize("ended", [True, False])
def test_why_a_job_has_stopped_in_a_recovery_is_told(tmp_path, ended):
    cluster = at_work(FakeCluster(tmp_path))
    cluster.no_light = True
    cluster.broken.add("h1-a")
    cluster.kill("h1-a#1")
    cluster.settle()
    coordinator = cluster.coordinator
    assert (requests.document(coordinator.state)["state"], requests.document(coordinator.state)["why"]) == (
        "waiting",
        "no spare is left",
    )
    assert coordinator.state.phase is JobStage.RECOVERING
    assert [line for line in cluster.said if "no spare is left" in line] == [
        "no spare is left; the job waits until h1-a is healthy or a swap is possible, and tries every 5 s"
    ]
    for _ in range(3):
        cluster.wait(6)
    assert sum("no spare is left" in line for line in cluster.said) == 1
    if ended:
        job_end.stop(coordinator.state, "an operator requested it")
        cluster.settle()
        assert requests.document(coordinator.state)["why"] == "an operator requested it"
    else:
        cluster.no_light = False
        cluster.wait(6)
        cluster.does_a_step()
        assert requests.document(coordinator.state)["state"] == "running"
