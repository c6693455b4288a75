"""A served model under ``lumctl job run``: requests wait for a recovery, or fail cleanly, and no answer is wrong."""

import itertools
import random
import sys
import threading

import pytest
from campaigning import campaign
from running_jobs import RunningJob
from served import WITHIN_S, Asked, ask, likeliest, turns
from small_rack import of_two_ranks

pytestmark = pytest.mark.timeout(300)  # not that it takes so long: machines may be busy

UNDER_WAY = 10
"""Turns after which a request that needs more of them is on its way."""
FAILURES = 6


class ServedJob(RunningJob):
    """A job that serves. Requests wait ``patience_s`` for a recovery."""

    def __init__(self, way: str, *, patience_s: float = WITHIN_S, **more: object) -> None:
        options = ["--parallel", way, "--port", "0", "--patience", str(patience_s)]
        super().__init__(command=[sys.executable, "-m", "lumctl.training.example.serve", *options], **more)

    def _set_up(self, name, command, run, edited) -> None:
        super()._set_up(name, [*command, "--announce", str(self.home / "url")], run, edited)

    @property
    def url(self) -> str:
        """Where rank 0 answers."""
        return (self.home / "url").read_text().strip()

    def under_way(self, prompt: str, tokens: int) -> Asked:
        """A request that is being worked on."""
        asked, before = Asked(self.url, prompt, tokens), turns(self.url)
        self.wait(lambda: turns(self.url) >= before + UNDER_WAY)
        assert asked.waits
        return asked


@campaign
def test_a_request_that_is_under_way_waits_for_the_swap_of_a_rank() -> None:
    with ServedJob("pipeline", edited=of_two_ranks) as job:
        job.run()
        job.until(lambda found: found["done"] >= 3 and len(found["ready"]) == 1)
        assert ask(job.url, "def ", 5) == (200, likeliest("def ", 5))
        asked = job.under_way("import ", 60)
        job.lose("h2-gpu0")
        assert asked.answer() == (200, likeliest("import ", 60))
        assert job.recovered()["replaced_by"] == {"h2-gpu0": "h5-gpu0"}
        assert ask(job.url, "class ", 5) == (200, likeliest("class ", 5))
        job.stop()


@campaign
def test_the_rank_that_answers_is_lost_and_another_answers() -> None:
    with ServedJob("pipeline", edited=of_two_ranks) as job:
        job.run()
        job.until(lambda found: found["done"] >= 3 and len(found["ready"]) == 1)
        asked = job.under_way("import ", 300)
        job.kill(1)
        assert asked.answer() == (200, likeliest("import ", 300))
        assert job.recovered()["replaced_by"] == {}
        before, asked = job.url, job.under_way("x", 1000)
        job.lose("h1-gpu0")
        assert asked.answer() == (None, None)  # its connection is gone with it
        assert job.recovered(2)["replaced_by"] == {"h1-gpu0": "h5-gpu0"}
        assert job.url != before
        assert ask(job.url, "class ", 5) == (200, likeliest("class ", 5))
        job.stop()


@campaign
@pytest.mark.parametrize("way", ["pipeline", "replicated", "sharded", "tensor"])
def test_no_answer_is_wrong_however_often_ranks_are_killed(way: str) -> None:
    choice = random.Random(FAILURES)  # noqa: S311 - the same ranks in every run
    expected = {f"{letter} = ": likeliest(f"{letter} = ", 40) for letter in "abcd"}
    answers: list[tuple[str, int | None, list[int] | None]] = []
    over = threading.Event()

    def client(job: ServedJob) -> None:
        for prompt in itertools.cycle(expected):
            if over.is_set():
                return
            answers.append((prompt, *ask(job.url, prompt, 40)))

    with ServedJob(way, standby=True) as job:
        job.run()
        job.until(lambda found: found["done"] >= 3 and len(found["ready"]) >= 2)
        clients = [threading.Thread(target=client, args=(job,)) for _ in range(3)]
        for each in clients:
            each.start()
        try:
            for number in range(1, FAILURES + 1):
                rank = choice.randrange(4)
                if number == FAILURES:
                    job.lose(job.placed()[rank])
                else:
                    job.kill(rank)
                job.recovered(number)
                so_far = len(answers)
                job.wait(lambda: len([each for each in answers[so_far:] if each[1] == 200]) >= 6)  # noqa: B023
        finally:
            over.set()
            for each in clients:
                each.join(2 * WITHIN_S)
        job.stop()
    assert {status for _, status, _ in answers} <= {200, 503, None}
    assert all(tokens == expected[prompt] for prompt, status, tokens in answers if status == 200)
