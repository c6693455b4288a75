"""What the next lumctl knows of a job: who is at work, what was written, and what has happened before it came."""

import pytest
from theatre import Theatre, at_work

from lumctl.training.standing import Phase


class Ending(Theatre):
    """Workers that write, as they are told to stop, what real ones would, say so, and end."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.written = set()

    def told(self, player, message):
        super().told(player, message)
        if message["do"] == "stop":
            self.later(player.name, lambda: self.ends(player, *player.stopped))

    def ends(self, player, done, also):
        if player.name not in self.players:
            return
        for rank in [*([player.rank] if player.rank is not None and player.done == done else []), *also]:
            path = f"/{player.host}/step-{done}-rank-{rank}.pt"
            self.written.add(path)
            self.tells(player, {"say": "saved", "done": done, "path": path, "rank": rank})
        self.tells(player, {"say": "ended", "done": player.done})
        self.kill(player.name)

    def tells(self, player, message):
        player.last[message["say"]] = message
        self.hears(player.host, {"tell": "said", "worker": player.name, "message": message, "at": self.at})

    def asks_to_stop(self):
        """Ask for a stop at once, and play it to its end; the answer."""
        answers = []
        self.coordinator.post(lambda: self.coordinator.asked({"ask": "stop"}, answers.append))
        self.coordinator.turn()
        self.settle()
        assert self.coordinator.phase is Phase.STOPPED
        self.coordinator.answer_stops()
        return answers[0]


@pytest.mark.parametrize("layout", ["replicated", "unique"])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
def test_a_stop_after_a_takeover_names_what_all_ranks_have_written(tmp_path, layout, settled, swapped):
    theatre = at_work(Ending(tmp_path, layout=layout))
    if swapped:
        theatre.broken.add("h1-a")
        theatre.kill("h1-a#1")
        theatre.settle()
        theatre.does_a_step()
    done = 2 if swapped else 1
    theatre.restart_lumctl()
    if settled:
        theatre.settle()
    answer = theatre.asks_to_stop()
    hosts = ["h0", "h4" if swapped else "h1", "h2", "h3"]
    assert answer["saved"] == sorted(f"/{host}/step-{done}-rank-{rank}.pt" for rank, host in enumerate(hosts))
    assert set(answer["saved"]) == theatre.written
    assert (answer["state"], answer["done"]) == ("stopped", done)


def test_a_stop_before_anybody_is_known_stops_a_job_that_has_not_begun(tmp_path):
    theatre = Ending(tmp_path)
    for host in theatre.coordinator.hosts():
        theatre.coordinator.lines.open(host)
    assert theatre.asks_to_stop() == {"state": "stopped", "done": 0, "saved": []}
    assert theatre.players == {}


def test_one_that_writes_for_a_rank_that_is_lost_names_both(tmp_path):
    theatre = at_work(Ending(tmp_path, layout="unique"))
    theatre.no_light = True
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    theatre.settle()
    answer = theatre.asks_to_stop()
    assert set(answer["saved"]) == theatre.written
    assert "/h2/step-1-rank-1.pt" in answer["saved"]
    assert len(answer["saved"]) == 4


def kept_by(theatre):
    """Have it kept how the job stands, as lumctl does in the job's folder."""
    kept = []
    object.__setattr__(theatre.means, "keep", kept.append)
    return kept


def test_recoveries_of_before_are_told_by_whoever_takes_over(tmp_path):
    theatre = at_work(Theatre(tmp_path))
    kept = kept_by(theatre)
    theatre.kill("h1-a#1")
    theatre.settle()
    theatre.does_a_step()
    before = kept[-1]["recoveries"]
    assert [each["failed"] for each in before] == [["h1-a"]]
    object.__setattr__(theatre.means, "before", tuple(before))
    theatre.restart_lumctl()
    theatre.settle()
    assert theatre.coordinator.document()["recoveries"] == before
    theatre.kill("h2-a#1")
    theatre.settle()
    theatre.does_a_step()
    assert [each["failed"] for each in kept[-1]["recoveries"]] == [["h1-a"], ["h2-a"]]


def test_a_job_that_begins_anew_has_had_no_recovery(tmp_path):
    theatre = Theatre(tmp_path)
    object.__setattr__(theatre.means, "before", ({"failed": ["h1-a"]},))
    at_work(theatre)
    assert theatre.coordinator.document()["recoveries"] == []


def test_how_a_job_has_ended_is_kept(tmp_path, monkeypatch):
    theatre = at_work(Ending(tmp_path))
    kept = kept_by(theatre)
    coordinator = theatre.coordinator
    theatre.asks_to_stop()
    monkeypatch.setattr(coordinator, "_await", lambda *_: None)
    monkeypatch.setattr(coordinator, "_await_ends", lambda: None)
    coordinator.run()
    last = kept[-1]
    assert (last["state"], last["done"], last["why"]) == ("stopped", 1, "somebody asked for it")
    assert set(last["saved"]) == theatre.written
    assert last["ended_at"] == theatre.at


@pytest.mark.parametrize("ended", [True, False])
def test_why_a_job_has_stopped_in_a_recovery_is_told(tmp_path, ended):
    theatre = at_work(Theatre(tmp_path))
    theatre.no_light = True
    theatre.broken.add("h1-a")
    theatre.kill("h1-a#1")
    theatre.settle()
    coordinator = theatre.coordinator
    assert (coordinator.document()["state"], coordinator.document()["why"]) == ("waiting", "no spare is left")
    assert coordinator.phase is Phase.RECOVERING
    assert [line for line in theatre.said if "no spare is left" in line] == [
        "no spare is left; the job waits until h1-a is well or a swap can be had, and tries every 5 s"
    ]
    for _ in range(3):
        theatre.wait(6)
    assert sum("no spare is left" in line for line in theatre.said) == 1
    if ended:
        coordinator.stop("somebody asked for it")
        theatre.settle()
        assert coordinator.document()["why"] == "somebody asked for it"
    else:
        theatre.no_light = False
        theatre.wait(6)
        theatre.does_a_step()
        assert coordinator.document()["state"] == "running"
