"""Devices are asked side by side, and nobody waits again for one that did not answer in time."""

import threading
import time

import pytest

from lumctl.context.device_answers import DeviceAnswers


@pytest.fixture
def asked():
    """Devices of which ``slow`` answers when its gate is opened."""

    class Asked:
        def __init__(self):
            self.gate = threading.Event()
            self.questions = []
            self.said = {"well": None, "slow": None, "ill": "refused"}
            self.answers = DeviceAnswers(self.said, self.ask)

        def ask(self, device):
            self.questions.append(device)
            if device == "slow":
                assert self.gate.wait(30)
            return self.said[device]

    made = Asked()
    yield made
    made.gate.set()
    made.answers.close()


def test_without_a_limit_every_answer_is_awaited(asked):
    asked.gate.set()
    asked.answers.begin()
    assert asked.answers.gathered(None) == {"well": None, "slow": None, "ill": "refused"}


def test_one_that_is_slow_is_waited_for_once_and_never_asked_twice_at_a_time(asked):
    asked.answers.begin()
    assert asked.answers.gathered(0.2) == {"well": None, "ill": "refused"}
    begun = time.monotonic()
    asked.answers.begin()
    assert asked.answers.gathered(30.0) == {"well": None, "ill": "refused"}
    assert time.monotonic() - begun < 15
    assert asked.questions.count("slow") == 1
    assert asked.questions.count("well") == 2


def test_an_answer_that_comes_late_counts_from_then_on(asked):
    asked.answers.begin()
    assert "slow" not in asked.answers.gathered(0.0)
    asked.gate.set()
    assert asked.answers.gathered(None)["slow"] is None
    asked.said["slow"] = "gone"
    asked.answers.begin()
    assert asked.answers.gathered(None)["slow"] == "gone"


def test_an_unexpected_error_is_heard_and_the_next_question_is_asked(asked):
    asked.gate.set()
    del asked.said["well"]
    asked.answers.begin()
    with pytest.raises(KeyError):
        asked.answers.gathered(None)
    asked.said["well"] = None
    asked.answers.begin()
    assert asked.answers.gathered(None)["well"] is None
