"""The example as a job of real processes: killed ranks leave no trace in its losses, nor in what it answers."""

import http.client
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from job_desk import WITHIN_S, Desk, Nursery
from served import ask, likeliest

from lumctl.training.example.data import read_losses
from lumctl.training.example.parallelism import WAYS

STEPS, LOST_AFTER = 10, 4


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery(Path(__file__).with_name("example_worker.py"))
    yield nursery
    nursery.close()


@pytest.fixture
def desk(nursery):
    desk = Desk(nursery)
    yield desk
    desk.close()


def ready(desk, *names, program, argv):
    workers = desk.start(*names, program=program, argv=[str(each) for each in argv])
    desk.until(*workers, say="ready")
    return workers


def regroup(desk, crew, lost, spare, generation):
    """As a coordinator does: hold, choose the newest step that everybody can have, load, join."""
    left = [worker for worker in crew if worker is not lost]
    held = {worker.name: said for worker, said in zip(left, desk.hold(left, generation), strict=True)}
    place = crew.index(lost)
    crew = [spare if worker is lost else worker for worker in crew]
    own = {worker.name: set(held[worker.name]["keeps"]["own"]) | {held[worker.name]["done"]} for worker in left}
    copies = {worker.name: set(held[worker.name]["keeps"]["of"].get(str(place), ())) for worker in left}
    if not any(copies.values()):  # all hold the same
        done = max(said["done"] for said in held.values())
        source = next(worker for worker in left if held[worker.name]["done"] == done)
    else:
        done = max(set.intersection(set.union(*copies.values()), *own.values()))
        source = next(worker for worker in left if done in copies[worker.name])
    desk.load(spare, source, done, place, len(crew))
    for worker in left:
        if held[worker.name]["done"] != done:
            desk.load(worker, None if done in own[worker.name] else source, done, crew.index(worker), len(crew))
    desk.joined(crew, generation, done)
    return crew


RAILS = {
    "stages": ["--data", 1, "--stages", 2, "--tensor", 1],
    "shards": ["--data", 2, "--stages", 1, "--tensor", 1, "--sharded"],
}


def trained(desk, folder, way, *, lost=None):
    losses = folder / f"losses-{lost}"
    program, options = ("rails", RAILS[way]) if way in RAILS else ("train", ["--parallel", way])
    argv = [*options, "--steps", STEPS, "--losses", losses]
    *crew, spare = ready(desk, "a", "b", "c", program=program, argv=argv)
    desk.joined(crew, 1)
    if lost is not None:
        desk.until(crew[0], say="stepped", done=LOST_AFTER)
        crew[lost].kill()
        assert crew[lost].ended() == -signal.SIGKILL
        crew = regroup(desk, crew, crew[lost], spare, 2)
    assert [worker.ended() for worker in crew] == [0, 0], [worker.log.read_text() for worker in crew]
    return losses


@pytest.mark.parametrize("way", [*WAYS, *RAILS])
def test_losses_with_a_failure_are_those_without_to_the_last_bit(desk, nursery, tmp_path, way):
    unfailed = trained(desk, tmp_path, way)
    assert list(read_losses(unfailed)) == list(range(STEPS))
    for lost in (0, 1):
        again = Desk(nursery)
        try:
            assert trained(again, tmp_path, way, lost=lost).read_bytes() == unfailed.read_bytes()
        finally:
            again.close()


KILLS = 200 if os.environ.get("LUMCTL_CAMPAIGN") == "1" else 4


@pytest.mark.timeout(60 + 3 * KILLS)
def test_a_hold_is_answered_wherever_in_its_collectives_a_rank_is(nursery, tmp_path):
    choice = random.Random(KILLS)  # noqa: S311 - the same moments in every run
    for number in range(KILLS):
        desk, url = Desk(nursery), tmp_path / f"url-{number}"
        try:
            argv = ["--parallel", "sharded", "--port", 0, "--announce", url, "--patience", WITHIN_S]
            crew = ready(desk, "a", "b", program="serve", argv=argv)
            desk.joined(crew, 1)
            desk.until(*crew, say="stepped")
            client = http.client.HTTPConnection(url.read_text().strip().removeprefix("http://"))
            client.request("POST", "/generate", json.dumps({"prompt": "import ", "tokens": 1000}))
            desk.until(crew[0], say="stepped", times=len(crew[0].all("stepped")) + 5)
            at = time.monotonic() + choice.uniform(0.0, 0.05)
            while (left := at - time.monotonic()) > 0:
                desk.hear(left)
            crew[1].kill()
            desk.hold(crew[:1], 2)
            client.close()
        finally:
            desk.close()


@pytest.mark.parametrize("way", ["pipeline", "sharded"])
def test_requests_wait_for_a_recovery_and_are_answered(desk, tmp_path, way):
    argv = ["--parallel", way, "--port", 0, "--announce", tmp_path / "url", "--patience", WITHIN_S]
    *crew, spare, last = ready(desk, "a", "b", "c", "d", program="serve", argv=argv)
    desk.joined(crew, 1)
    desk.until(*crew, say="stepped")
    url, answers = (tmp_path / "url").read_text().strip(), []
    waiting = threading.Thread(target=lambda: answers.append(ask(url, "import ", 150)))
    waiting.start()
    before = len(crew[0].all("stepped"))
    desk.until(crew[0], say="stepped", times=before + 20)
    crew[1].kill()
    crew = regroup(desk, crew, crew[1], spare, 2)
    while waiting.is_alive():
        desk.hear(0.05)
    waiting.join()
    assert answers == [(200, likeliest("import ", 150))]

    waiting = threading.Thread(target=lambda: answers.append(ask(url, "x", 1000)))
    waiting.start()
    desk.until(crew[0], say="stepped", times=len(crew[0].all("stepped")) + 20)
    crew[0].kill()
    waiting.join()
    assert answers[1] == (None, None)
    crew = regroup(desk, crew, crew[0], last, 3)
    desk.until(last, say="stepped")
    new = (tmp_path / "url").read_text().strip()
    assert new != url
    waiting = threading.Thread(target=lambda: answers.append(ask(new, "def ", 5)))
    waiting.start()
    while waiting.is_alive():
        desk.hear(0.05)
    waiting.join()
    assert answers[2] == (200, likeliest("def ", 5))
    for worker in crew:
        worker.tell("stop", done=worker.last("stepped")["done"] + 20, also=[])
    assert [worker.ended() for worker in crew] == [0, 0], [worker.log.read_text() for worker in crew]
