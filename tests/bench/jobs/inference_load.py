"""The requests of a load, for locust: prompts whose answers are known, each checked; one line of JSON per request.

Reads $ANNOUNCED (where to ask) and $ANSWERS (a file: prompt to tokens). Writes $LOG: when a request began and ended,
and whether its answer came and was right.
"""

import itertools
import json
import os
import random
import time
from pathlib import Path

from locust import HttpUser, constant_throughput, task

ANSWERS = json.loads(Path(os.environ["ANSWERS"]).read_text())
ANNOUNCED = Path(os.environ["ANNOUNCED"])
LOG = Path(os.environ["LOG"]).open("a", buffering=1)  # noqa: SIM115 - for as long as the load lasts
A_SECOND = float(os.environ["A_SECOND"])


class Client(HttpUser):
    """Asks at a fixed rate, for the continuation of one prompt after the other."""

    wait_time = constant_throughput(A_SECOND)
    network_timeout = connection_timeout = 60.0

    def on_start(self) -> None:
        """Begin with any prompt."""
        self.prompts = itertools.cycle(random.sample(list(ANSWERS), len(ANSWERS)))

    @task
    def ask(self) -> None:
        """One request."""
        began, prompt = time.time(), next(self.prompts)
        url, asked = ANNOUNCED.read_text().strip() + "/generate", {"prompt": prompt, "tokens": len(ANSWERS[prompt])}
        with self.client.post(url, json=asked, name="/generate", catch_response=True) as answer:
            came = answer.status_code == 200
            right = came and answer.json()["tokens"] == ANSWERS[prompt]
            if came and not right:
                answer.failure("a wrong answer")
        LOG.write(json.dumps({"began": began, "ended": time.time(), "came": came, "right": right}) + "\n")
