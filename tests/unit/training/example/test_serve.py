"""The queue and its HTTP side, with a model that is alone; recovery is played by turns that do not come."""

import http.client
import json
import threading
from contextlib import contextmanager

import pytest
import torch

from lumctl.errors import UnreachableError
from lumctl.training.example.model import SIZES, Llama
from lumctl.training.example.serve import MOST_TOGETHER, MOST_WAITING, BusyError, HttpServer, RequestQueue, lead
from lumctl.training.example.served_models import SERVED, served

PATIENCE_S = 30


@pytest.fixture
def queue():
    return RequestQueue(patience_s=PATIENCE_S)


@pytest.fixture
def front(queue):
    front = HttpServer("127.0.0.1", 0, queue, patience_s=2.5)
    yield front
    front.close()


@contextmanager
def turning(queue, way="pipeline"):
    """Turns are done meanwhile."""
    ours = served(way, SIZES["tiny"], seed=1)
    ours.shape(0, 1)
    ending = threading.Event()

    def turn():
        while not ending.is_set():
            lead(ours, queue, 1)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def ask(front, body, *, path="/generate", method="POST", headers=None):
    connection = http.client.HTTPConnection(front.url.removeprefix("http://"), timeout=PATIENCE_S)
    try:
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body), headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers
    finally:
        connection.close()


def likeliest(prompt, count):
    """Token by token, by the whole model, over what fits into its context."""
    model, tokens = Llama(SIZES["tiny"], seed=1), list(prompt.encode())
    with torch.no_grad():
        for _ in range(count):
            tokens.append(int(model(torch.tensor([tokens[-SIZES["tiny"].context :]]))[0, -1].argmax()))
    return tokens[-count:]


@pytest.mark.parametrize("way", SERVED)
@pytest.mark.parametrize("prompt", ["import os", "def f(x):\n    return " * 3])
def test_an_answer_is_what_the_whole_model_says(queue, front, prompt, way):
    with turning(queue, way):
        status, answer, _ = ask(front, {"prompt": prompt, "tokens": 5})
    assert (status, answer["tokens"]) == (200, likeliest(prompt, 5))
    assert answer["text"] == bytes(answer["tokens"]).decode(errors="replace")


def test_requests_of_any_length_are_worked_on_together(queue):
    answers = {}
    prompts = ["a" * length for length in range(1, MOST_TOGETHER + 3)]
    threads = [
        threading.Thread(target=lambda prompt=prompt: answers.update({prompt: queue.ask(list(prompt.encode()), 3)}))
        for prompt in prompts
    ]
    for thread in threads:
        thread.start()
    with turning(queue):
        for thread in threads:
            thread.join()
    assert answers == {prompt: likeliest(prompt, 3) for prompt in prompts}


def test_a_turn_without_requests_is_a_turn(queue, front):
    ours = served("sharded", SIZES["tiny"], seed=1)
    ours.shape(0, 1)
    lead(ours, queue, 1)
    status, answer, _ = ask(front, None, path="/health", method="GET")
    assert (status, answer["turns"]) == (200, 1)


def test_a_turn_that_broke_is_done_again_and_nothing_is_lost_or_twice(queue):
    class Breaks:
        """Fails in every other turn, as when another rank dies."""

        size = SIZES["tiny"]
        calls = 0

        def logits(self, tokens):
            self.calls += 1
            if self.calls % 2:
                raise RuntimeError("Connection closed by peer")
            return torch.nn.functional.one_hot(tokens + 1, 256)

    made = []
    thread = threading.Thread(target=lambda: made.append(queue.ask([10], 3)))
    thread.start()
    breaks = Breaks()
    while thread.is_alive():
        try:
            lead(breaks, queue, 1)
        except RuntimeError:
            continue
    thread.join()
    assert made == [[11, 12, 13]]
    assert breaks.calls == 6


def test_who_waits_longer_than_its_patience_is_told_when_to_ask_again(front):
    front._queue._patience_s = 0.05
    status, answer, headers = ask(front, {"prompt": "x", "tokens": 1})
    assert (status, headers["Retry-After"]) == (503, "3")
    assert "being replaced" in answer["error"]
    assert front._queue.batch(wait_s=0) == []
    assert ask(front, None, path="/health", method="GET")[0] == 503


def test_requests_of_a_rank_that_serves_no_more_are_refused(queue, front):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ask(front, {"prompt": "x"})))
    thread.start()
    assert queue.batch(wait_s=PATIENCE_S)
    queue.close()
    thread.join()
    assert answers[0][0] == 503
    with pytest.raises(BusyError, match="no longer serves requests"):
        queue.ask([1], 1)


def test_no_more_wait_than_there_is_room_for(queue):
    refused = []

    def one():
        try:
            queue.ask([1], 1)
        except BusyError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(MOST_WAITING + 3)]
    for thread in threads:
        thread.start()
    for thread in threads[-3:]:
        thread.join(0)
    while (batch := queue.batch(wait_s=0.2)) or any(thread.is_alive() for thread in threads):
        if len(refused) == 3:
            queue.finish(batch, [0] * len(batch))
    for thread in threads:
        thread.join()
    assert refused == ["too many requests are waiting"] * 3


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "not JSON"),
        (b"[" * 60_000, 400, "not JSON"),
        (b"\xff", 400, "not JSON"),
        ([1], 400, "prompt"),
        ({"prompt": ""}, 400, "prompt"),
        ({"prompt": 3}, 400, "prompt"),
        ({"prompt": "x", "tokens": 0}, 400, "from 1 to 1024"),
        ({"prompt": "x", "tokens": 1025}, 400, "from 1 to 1024"),
        ({"prompt": "x", "tokens": True}, 400, "from 1 to 1024"),
        ({"prompt": "x", "tokens": "9"}, 400, "from 1 to 1024"),
        (b" " * (64 * 1024 + 1), 413, "65536 bytes"),
    ],
)
def test_what_is_no_request_is_refused_with_a_reason(front, body, status, reason):
    got, answer, _ = ask(front, body)
    assert (got, reason in answer["error"]) == (status, True)


def test_a_request_says_its_length(front):
    assert ask(front, b"", headers={"Content-Length": "many"})[0] == 411


def test_there_is_nothing_else_here(front):
    assert ask(front, {}, path="/other")[0] == 404
    assert ask(front, None, path="/", method="GET")[0] == 404


def test_an_address_that_is_taken_is_said_so(queue, front):
    port = int(front.url.rsplit(":", 1)[1])
    with pytest.raises(UnreachableError, match=f"cannot listen on 127.0.0.1:{port}"):
        HttpServer("127.0.0.1", port, queue, patience_s=1)
