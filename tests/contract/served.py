"""A client of the served example, and what it has to be answered."""

import http.client
import json
import threading

import torch

from lumctl.training.example.model import SIZES, Llama

WITHIN_S = 60.0
"""For whatever must come: machines are slow, and slow is not wrong."""


def ask(url: str, prompt: str, tokens: int) -> tuple[int | None, list[int] | None]:
    """Have a text continued with: the status and the tokens; two times ``None`` where the connection ends instead."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WITHIN_S)
    try:
        connection.request("POST", "/generate", json.dumps({"prompt": prompt, "tokens": tokens}))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()).get("tokens")
    except (ConnectionError, http.client.HTTPException):
        return None, None
    finally:
        connection.close()


def turns(url: str) -> int:
    """How many turns the rank that answers there has led."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WITHIN_S)
    try:
        connection.request("GET", "/health")
        return json.loads(connection.getresponse().read())["turns"]
    finally:
        connection.close()


def likeliest(prompt: str, count: int) -> list[int]:
    """The tokens that one process alone makes."""
    model, tokens = Llama(SIZES["tiny"], seed=1), list(prompt.encode())
    with torch.no_grad():
        for _ in range(count):
            tokens.append(int(model(torch.tensor([tokens[-SIZES["tiny"].context :]]))[0, -1].argmax()))
    return tokens[-count:]


class Asked:
    """One request on its way, in a thread of its own."""

    def __init__(self, url: str, prompt: str, tokens: int) -> None:
        self._answers: list[tuple[int | None, list[int] | None]] = []
        self._thread = threading.Thread(target=lambda: self._answers.append(ask(url, prompt, tokens)), daemon=True)
        self._thread.start()

    @property
    def waits(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    def answer(self) -> tuple[int | None, list[int] | None]:
        """The answer, when it is here."""
        self._thread.join(2 * WITHIN_S)
        (answer,) = self._answers
        return answer
